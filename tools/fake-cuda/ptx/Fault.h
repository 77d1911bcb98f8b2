// SPDX-License-Identifier: Apache-2.0
//
// Errors that stop a parse or a launch. They are thrown only inside the interpreter: its public functions return the
// message.
#pragma once

#include <stdexcept>
#include <string>

namespace kiln::ptx {

/// An error in the PTX text.
struct SyntaxFault : std::runtime_error {
  SyntaxFault(unsigned line, const std::string &words) : std::runtime_error(words), line(line) {}
  unsigned line;
};

/// An error of the running kernel. `lane` is the thread of the warp that caused it; negative: the warp as a whole.
struct Fault : std::runtime_error {
  explicit Fault(const std::string &words, int lane = -1) : std::runtime_error(words), lane(lane) {}
  int lane;
};

} // namespace kiln::ptx
