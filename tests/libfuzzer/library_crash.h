// SPDX-License-Identifier: Apache-2.0
// Crashes of a library that a fuzz target calls, told from those of what is fuzzed.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <sys/types.h>

namespace kiln_fuzz {

/// A child process that is given the inputs first, as long as it lives; then another takes its place.
class LibraryProbe {
public:
  using Work = std::function<void(const std::string &input)>;

  explicit LibraryProbe(Work work) : work(std::move(work)) {}
  ~LibraryProbe() { stop(); }
  LibraryProbe(const LibraryProbe &) = delete;

  /// Whether the work on an input ends by a signal, or not within ten seconds, in code of a shared library. A fault in
  /// the program itself, whatever called it, is not one, nor is a report of a sanitizer: the caller meets these again,
  /// where libFuzzer sees them.
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
