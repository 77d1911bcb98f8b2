// SPDX-License-Identifier: Apache-2.0
//
// A library in Halide's namespace, in place of Halide: one half of it uses LLVM 14, the other one LLVM 22.
#pragma once

#include <stdexcept>
#include <string>

namespace Halide {

struct CompileError : std::runtime_error {
  using runtime_error::runtime_error;
  ~CompileError() override;
};

/// Return the assembly of a function that returns 7, and the version of LLVM.
std::string compileOld();
std::string compileNew();

[[noreturn]] void fail();

} // namespace Halide
