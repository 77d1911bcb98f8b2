// SPDX-License-Identifier: Apache-2.0
// Distinguishes crashes of a library that a fuzz target calls from crashes of the fuzzed code.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <sys/types.h>

namespace kiln_fuzz {

/// A child process that receives each input first. It is replaced when it dies.
class LibraryProbe {
public:
  using Work = std::function<void(const std::string &input)>;

  explicit LibraryProbe(Work work) : work(std::move(work)) {}
  ~LibraryProbe() { stop(); }
  LibraryProbe(const LibraryProbe &) = delete;

  /// Whether the work on an input ends by a signal, or does not end within ten seconds, in code of a shared library. A
  /// fault in the program itself, whatever called it, does not count, nor does a sanitizer's report: they recur in the
  /// caller, where libFuzzer reports them.
  bool crashes(const std::string &input);

private:
  void start();
  int stop();

  Work work;
  pid_t child = -1;
  std::FILE *inputs = nullptr;
  std::FILE *answers = nullptr;
};

} // namespace kiln_fuzz
