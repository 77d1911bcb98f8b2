// SPDX-License-Identifier: Apache-2.0
#include "compiler/kernel/Attention.h"

namespace kiln {

using namespace mlir;
using mlir::kiln::KernelAttentionOp;

DecomposedKernel::DecomposedKernel(func::FuncOp kernel) : kernel(kernel) {
  if (kernel.isExternal() || kernel.getOps<KernelAttentionOp>().empty())
    return;
  copy = ModuleOp::create(kernel.getLoc());
  this->kernel = kernel.clone();
  copy->push_back(this->kernel);
  ops = decompose(*this->kernel.getOps<KernelAttentionOp>().begin()); // a kernel has at most one op that reduces
}

} // namespace kiln
