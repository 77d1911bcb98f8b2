// SPDX-License-Identifier: Apache-2.0
//
// The compiler of kernels that are a loop over time (compiler/kernel/ScanBlocks.h). LLVM generates their code; Halide
// has no loop over time around several ops.
#pragma once

#include "compiler/object/Object.h"
#include "targets/cpu/scan/ScanEmitter.h"
#include "targets/target.h"

namespace kiln::cpu {

std::unique_ptr<KernelCompiler> createScanCompiler(CpuName cpu, ScanMachine machine);

} // namespace kiln::cpu
