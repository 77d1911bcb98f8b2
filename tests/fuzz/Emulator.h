// SPDX-License-Identifier: Apache-2.0
//
// A model that was compiled for another CPU, in a program that an emulator runs.
#pragma once

#include "compiler/tuner/Runner.h"
#include "emulated/Messages.h"

namespace kiln::fuzz {

class Emulator {
public:
  /// `script`: links tests/fuzz/emulated/model.cpp with a model's objects and runs that (Runner.h).
  static llvm::Expected<std::unique_ptr<Emulator>> start(const std::string &script, llvm::ArrayRef<ObjectFile> objects);

  /// What is put there the program takes, once it is sent.
  Messages &messages() { return runner->messages(); }
  /// Sends what was put, and takes the words of the answer: none, unless the program found something wrong or died.
  llvm::Error answer();
  /// Whether it was the emulator that died, at an assertion of its own.
  bool isAtFault() const { return isBroken; }

private:
  Emulator(TemporaryFolder folder, std::unique_ptr<Runner> runner)
      : folder(std::move(folder)), runner(std::move(runner)) {}

  TemporaryFolder folder;
  std::unique_ptr<Runner> runner;
  bool isBroken = false;
};

} // namespace kiln::fuzz
