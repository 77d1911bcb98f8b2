// SPDX-License-Identifier: Apache-2.0
//
// What kernels are called, so that a profile, a symbol table and the tuner's display say what runs and for which layer:
// "linear_gelu_3_mlp_fc1" is the fourth kernel of a model, a linear layer with its activation, of a layer mlp.fc1.
#pragma once

#include <string>

#include "compiler/transforms/KernelGroups.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// What the group computes: the names of its anchor and of the ops around it, "add_layer_norm", three at most.
std::string describeGroup(const KernelGroup &group);

/// Where the anchor was traced, "h.{}.mlp.fc1", as the kernel's `kiln.scopes`; nothing if that is not known.
void recordScope(func::FuncOp kernel, const KernelGroup &group);
/// A kernel that stands for another one is called from its scopes, too.
void uniteScopes(func::FuncOp kernel, func::FuncOp other);

/// `what` of a name "what_3", as FormKernels gives them.
StringRef stemOf(StringRef name);
/// "what_3_where", where `where` is the end of the path that all scopes of the kernel begin with, if there is one.
std::string nameKernel(func::FuncOp kernel, StringRef what, int64_t number);

} // namespace mlir::kiln
