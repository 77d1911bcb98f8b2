// SPDX-License-Identifier: Apache-2.0
//
// A model that was compiled for another CPU, in a program that an emulator runs.
#pragma once

#include <cstdio>
#include <string>
#include <sys/types.h>
#include <vector>

#include "compiler/emit/Compile.h"
#include "emulated/Messages.h"
#include "llvm/Support/Error.h"

namespace kiln::fuzz {

class Emulator {
public:
  /// `script`: "SCRIPT link PROGRAM OBJECT..." links tests/fuzz/emulated/model.cpp with a model's objects,
  /// "SCRIPT run PROGRAM" runs that.
  static llvm::Expected<std::unique_ptr<Emulator>> start(const std::string &script, llvm::ArrayRef<ObjectFile> objects);
  ~Emulator();

  /// What is put there the program takes, once it is sent.
  Messages &messages() { return *channel; }
  /// Sends what was put, and takes the words of the answer: none, unless the program found something wrong or died.
  llvm::Error answer();
  /// Whether it was the emulator that died, at an assertion of its own.
  bool isAtFault() const { return isBroken; }

private:
  Emulator() = default;
  llvm::Error link(const std::string &script, llvm::ArrayRef<ObjectFile> objects);
  llvm::Error run(const std::string &script);
  int stop();

  std::string folder; // with the program and what it says of errors, removed in the end
  bool isBroken = false;
  pid_t child = -1;
  std::FILE *from = nullptr, *to = nullptr;
  std::unique_ptr<Messages> channel;
};

} // namespace kiln::fuzz
