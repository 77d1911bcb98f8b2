// SPDX-License-Identifier: Apache-2.0
//
// What stops a parse or a launch. Thrown inside the interpreter only: its public functions return the words.
#pragma once

#include <stdexcept>
#include <string>

namespace kiln::ptx {

/// A mistake of the PTX text.
struct SyntaxFault : std::runtime_error {
  SyntaxFault(unsigned line, const std::string &words) : std::runtime_error(words), line(line) {}
  unsigned line;
};

/// A mistake of the running kernel. `lane` is the thread of the warp that made it; negative: the warp as a whole.
struct Fault : std::runtime_error {
  explicit Fault(const std::string &words, int lane = -1) : std::runtime_error(words), lane(lane) {}
  int lane;
};

} // namespace kiln::ptx
