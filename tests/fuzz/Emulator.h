// SPDX-License-Identifier: Apache-2.0
//
// A model that is compiled for another CPU, in a program that an emulator runs.
#pragma once

#include "compiler/tuner/Runner.h"
#include "emulated/Messages.h"

namespace kiln::fuzz {

class Emulator {
public:
  /// Starts the emulator. `script` links tests/fuzz/emulated/model.cpp with a model's objects and runs the program
  /// (Runner.h).
  static llvm::Expected<std::unique_ptr<Emulator>> start(const std::string &script, llvm::ArrayRef<ObjectFile> objects);

  /// The channel to the program; a message is sent once it is complete.
  Messages &messages() { return runner->messages(); }
  /// Sends the message and receives the answer's error message, which is empty unless the program detected an error or
  /// died.
  llvm::Error answer();
  /// Whether the emulator itself died, at one of its own assertions.
  bool isAtFault() const { return isBroken; }

private:
  Emulator(TemporaryFolder folder, std::unique_ptr<Runner> runner)
      : folder(std::move(folder)), runner(std::move(runner)) {}

  TemporaryFolder folder;
  std::unique_ptr<Runner> runner;
  bool isBroken = false;
};

} // namespace kiln::fuzz
