// SPDX-License-Identifier: Apache-2.0
//
// A kernel function through a strategy and Halide to an object. No Halide in this header.
#pragma once

#include "targets/target.h"

namespace kiln::halide {

/// What Halide compiles for.
struct CodeTarget {
  std::string triple;      // as Halide writes it: "x86-64-linux"
  std::string features;    // names of Halide's Target: "avx2-fma"
  std::string codeOptions; // of its LLVM; those of the first kernel that is compiled hold for the process
  MachineModel machine;
};

std::unique_ptr<KernelCompiler> createKernelCompiler(CodeTarget target);

} // namespace kiln::halide
