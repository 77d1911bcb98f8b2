// SPDX-License-Identifier: Apache-2.0
//
// Compiles a kernel function to an object with a schedule strategy and Halide. This header does not depend on Halide.
#pragma once

#include "compiler/object/Object.h"
#include "targets/target.h"

namespace kiln::halide {

/// Options of Halide's LLVM. The SLP vectoriser is off: it would vectorise the row pointers of a register tile, only to
/// extract them again.
inline constexpr char codeOptions[] = "-vectorize-slp=false";
/// Options for x86-64: in addition, no branch crosses or ends at a boundary of 32 bytes. Some Intel CPUs do not keep
/// code with such a branch in their cache of decoded instructions (erratum SKX102), which slows down a loop of
/// multiply-adds that shares its core with another thread (M-0906).
inline constexpr char x86CodeOptions[] = "-x86-branches-within-32B-boundaries -vectorize-slp=false";

/// Sets the options of Halide's LLVM. Halide reads them from the environment before it generates its first code, so the
/// options of the first call hold for the process. A previous value of the variable is overwritten, since a kernel's
/// object must depend only on the kernel.
void setCodeOptions(const std::string &options);

/// What Halide compiles for.
struct CodeTarget {
  std::string triple;        // as Halide writes it: "x86-64-linux"
  std::string features;      // names of Halide's Target: "avx2-fma"
  std::string fewerFeatures; // features of the fallback compiler; equal to `features`: there is none
  std::string codeOptions;   // options of Halide's LLVM; those of the first compiled kernel hold for the process
  MachineModel machine;
  bool hasByteProducts = false; // see VectorFunctions
  bool isSmall = false; // code size matters: compile only the variant for one row, no other shape-specialised ones
  CpuName newer = {};   // if it has a triple, LLVM 22 compiles Halide's bitcode for this CPU; otherwise Halide does
};

std::unique_ptr<KernelCompiler> createKernelCompiler(CodeTarget target);

} // namespace kiln::halide
