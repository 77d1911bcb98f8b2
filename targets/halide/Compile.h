// SPDX-License-Identifier: Apache-2.0
//
// A kernel function through a strategy and Halide to an object. No Halide in this header.
#pragma once

#include "compiler/object/Object.h"
#include "targets/target.h"

namespace kiln::halide {

/// Options of Halide's LLVM: no search for vectors in scalar code, which finds the pointers of a tile's rows, and takes
/// them apart again.
inline constexpr char codeOptions[] = "-vectorize-slp=false";
/// And for x86-64: no branch touches the end of 32 bytes. Some Intel CPUs keep code with such a branch out of their
/// cache of decoded instructions (erratum SKX102), which costs a loop of multiply-adds beside another thread of its
/// core (M-0906).
inline constexpr char x86CodeOptions[] = "-x86-branches-within-32B-boundaries -vectorize-slp=false";

/// Halide reads the options of its LLVM from the environment before its first code: those that are set first hold for
/// the process. Whatever stood there is gone, since a kernel's object depends on the kernel alone.
void setCodeOptions(const std::string &options);

/// What Halide compiles for.
struct CodeTarget {
  std::string triple;        // as Halide writes it: "x86-64-linux"
  std::string features;      // names of Halide's Target: "avx2-fma"
  std::string fewerFeatures; // of the fallback; the same: there is none
  std::string codeOptions;   // of its LLVM; those of the first kernel that is compiled hold for the process
  MachineModel machine;
  bool hasByteProducts = false; // VectorFunctions
  bool isSmall = false;         // code is sent over networks: of forms for fewer rows only that for one
  CpuName newer = {};           // compiled by LLVM 22 for this, from Halide's bitcode; without a triple: by Halide
};

std::unique_ptr<KernelCompiler> createKernelCompiler(CodeTarget target);

} // namespace kiln::halide
