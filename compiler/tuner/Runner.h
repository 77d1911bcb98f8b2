// SPDX-License-Identifier: Apache-2.0
//
// A program on another machine, which a user-supplied script links and runs: on a board over ssh, in an emulator, or in
// a WebAssembly engine.
//
//   SCRIPT link PROGRAM FILE...   links objects and archives, in that order, to a program
//   SCRIPT run PROGRAM            runs it; its standard input and output are the script's
#pragma once

#include "compiler/object/Object.h"
#include "compiler/tuner/Messages.h"

#include <memory>
#include <sys/types.h>
#include <utility>

namespace kiln {

/// A directory that is removed with its contents by the destructor. A process that is killed leaves it in place, so
/// child processes that may be killed use a directory of their parent.
class TemporaryFolder {
public:
  static llvm::Expected<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder &&other) noexcept : name(std::exchange(other.name, "")) {}
  ~TemporaryFolder();

  const std::string &path() const { return name; }

private:
  explicit TemporaryFolder(std::string name) : name(std::move(name)) {}
  std::string name;
};

class Runner {
public:
  /// Links the files in the folder, replacing an earlier program, and starts the program. Fails with the script's
  /// output. The program ends with this process.
  static llvm::Expected<std::unique_ptr<Runner>> start(const std::string &script, const std::string &folder,
                                                       llvm::ArrayRef<ObjectFile> files);
  /// Ends the program.
  ~Runner();
  Runner(const Runner &) = delete;
  Runner &operator=(const Runner &) = delete;

  /// Returns the channel to the program.
  Messages &messages() { return *channel; }
  /// Fails if the program has ended, with its status and its standard error.
  llvm::Error check();

private:
  explicit Runner(std::string folder) : folder(std::move(folder)) {}
  llvm::Error link(const std::string &script, llvm::ArrayRef<ObjectFile> files);
  llvm::Error run(const std::string &script);
  int stop();

  std::string folder; // with the program and logs
  pid_t child = -1;
  std::FILE *from = nullptr, *to = nullptr;
  std::unique_ptr<Messages> channel;
};

} // namespace kiln
