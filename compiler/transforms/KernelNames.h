// SPDX-License-Identifier: Apache-2.0
//
// Names kernels so that a profile, a symbol table and the tuner's display show what runs and for which layer:
// "linear_gelu_3_mlp_fc1" is the fourth kernel of a model, a linear layer with its activation, in a layer mlp.fc1.
#pragma once

#include <string>

#include "compiler/transforms/KernelGroups.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// Returns what the group computes: the names of its anchor and of the ops around it, "add_layer_norm", at most three.
std::string describeGroup(const KernelGroup &group);

/// Records where the anchor at this location was traced, "h.{}.mlp.fc1", as the kernel's `kiln.scopes`; nothing if that
/// is not known.
void recordScope(func::FuncOp kernel, Location anchor);
/// Adds the scopes of a kernel that this one replaces.
void uniteScopes(func::FuncOp kernel, func::FuncOp other);

/// Returns `what` of a name "what_3", as FormKernels creates them.
StringRef stemOf(StringRef name);
/// Returns "what_3_where", where `where` is the end of the common path prefix of the kernel's scopes, if there is one.
std::string nameKernel(func::FuncOp kernel, StringRef what, int64_t number);

} // namespace mlir::kiln
