// SPDX-License-Identifier: Apache-2.0
//
// The kiln dialect, its attributes and ops, and the names of the discardable attributes that later stages read.
#pragma once

#include <optional>

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/KernelOp.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::kiln {

/// Positions of the symbols of a batched entry (kiln.each_sequence): `count` is the number of sequences of a call,
/// `own` the number of rows of one sequence, and `rows` their sum over all sequences. -1: there is none.
struct BatchSymbols {
  int64_t count = -1, rows = -1, own = -1;

  /// Maps the first extent of a slice to that of all sequences' rows together; null if there is none.
  AffineExpr getWhole(AffineExpr slice) const;
  /// Returns the type with that extent; null if there is none, or if further dimensions differ between sequences.
  RankedTensorType getWhole(RankedTensorType slice) const;

  /// Returns the positions that the import recorded on a module; nullopt if there are none, or wrong ones.
  static std::optional<BatchSymbols> of(Operation *module);
  void write(Operation *module) const;
};

} // namespace mlir::kiln

// The generated code has parameters that it does not use.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "compiler/dialect/KilnDialect.h.inc"
#include "compiler/dialect/KilnEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/KilnAttributes.h.inc"

#include "compiler/dialect/KilnInterfaces.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/KilnOps.h.inc"
#pragma GCC diagnostic pop

namespace mlir::kiln {

/// Whether the op may be in a kernel, with that role.
inline bool hasRole(Operation *op, KernelRole role) {
  auto inKernel = dyn_cast_or_null<KernelOpInterface>(op);
  return inKernel && inKernel.getKernelRole() == role;
}

/// Whether the op just decodes narrower elements: a cast of an f16, a bf16 or an i8 to a wider float, or that cast
/// times its scale, which has extent 1 along the last axis.
bool isDecoding(Operation *op);

/// Returns the number of processes of the group that call the module's entries together.
int64_t getNumRanks(Operation *op, Group group = Group::Ranks);

/// Returns the value before all reshapes.
Value getUnshaped(Value value);
/// Returns the number if the value is a floating-point constant with equal elements.
std::optional<double> getSplat(Value value);

/// On a module: an array of SymbolAttr.
inline constexpr llvm::StringLiteral symbolsAttrName = "kiln.symbols";
/// On a module whose entries are called by several ranks together: the number of ranks, and a dictionary of ShardAttr
/// by the names of the weights that are split among ranks.
inline constexpr llvm::StringLiteral ranksAttrName = "kiln.ranks";
/// On a module whose sums over ranks have a fixed number of parts, independent of the number of ranks: the parts of all
/// ranks.
inline constexpr llvm::StringLiteral reductionPartsAttrName = "kiln.reduction_parts";
/// On a module that is trained by several data-parallel replicas together: their number.
inline constexpr llvm::StringLiteral replicasAttrName = "kiln.replicas";
/// On a module that is cut into pipeline stages, each with its layers: their number.
inline constexpr llvm::StringLiteral stagesAttrName = "kiln.stages";
/// On such a module: the first stage of each role (compiler/dialect/StageRoles.h).
inline constexpr llvm::StringLiteral rolesAttrName = "kiln.roles";
inline constexpr llvm::StringLiteral shardsAttrName = "kiln.shards";
/// On a module after the derive phase (compiler/pipeline/ImportModel.h). Attention is not recognised again: functions
/// that were derived or cut from entries have fewer users of values, but must compute the same results to the bit.
inline constexpr llvm::StringLiteral derivedAttrName = "kiln.derived";
/// On the function that assigns derived weights, which is called when weights are bound: a hash of what it computes.
inline constexpr llvm::StringLiteral derivesAttrName = "kiln.derives";
/// The name of that function, which no entry has.
inline constexpr llvm::StringLiteral derivesFunctionName = "bind.derive";
/// On a function that the generated library exports.
inline constexpr llvm::StringLiteral entryAttrName = "kiln.entry";
/// On an index argument of an entry: the name of its symbol.
inline constexpr llvm::StringLiteral symbolAttrName = "kiln.symbol";
/// On a tensor argument or result of an entry: the name that the caller sees.
inline constexpr llvm::StringLiteral nameAttrName = "kiln.name";
/// On an entry that gets such a function.
inline constexpr llvm::StringLiteral batchedAttrName = "kiln.batched";
/// On a module with such entries: the positions of BatchSymbols, count, rows and own.
inline constexpr llvm::StringLiteral batchSymbolsAttrName = "kiln.batch_symbols";
/// On a module: the storage formats that the spec states, by the names of weights.
inline constexpr llvm::StringLiteral statedStorageAttrName = "kiln.stated_storage";
/// On the batched function of an entry, which processes several sequences.
inline constexpr llvm::StringLiteral batchAttrName = "kiln.batch";
/// On a kernel function.
inline constexpr llvm::StringLiteral kernelAttrName = "kiln.kernel";
/// On a kernel function: the layers that it computes part of, "h.{}.mlp", according to where its ops were traced.
inline constexpr llvm::StringLiteral scopesAttrName = "kiln.scopes";
/// On a kernel function: minimum and maximum of each of its index arguments.
inline constexpr llvm::StringLiteral boundsAttrName = "kiln.bounds";
/// On a kernel function: the tensor arguments that the result may share memory with.
inline constexpr llvm::StringLiteral inplaceAttrName = "kiln.inplace";
/// On a tensor argument of a kernel function: a weight in each call, so that nothing writes to it while kernels run.
inline constexpr llvm::StringLiteral weightAttrName = "kiln.weight";
/// On a kernel function: structure and shape of its key, recorded before target-specific passes.
inline constexpr llvm::StringLiteral structureAttrName = "kiln.structure";
inline constexpr llvm::StringLiteral shapeAttrName = "kiln.shape";
/// On a call of a kernel: a map from the kernel's symbols to its FLOPs, as the language counts them, and the bytes of
/// its tensors; and the layer to which it belongs, "h.{}.mlp".
inline constexpr llvm::StringLiteral workAttrName = "kiln.work";
inline constexpr llvm::StringLiteral layerAttrName = "kiln.layer";
/// On floating-point ops whose order or comparison is significant: a code generator must not change it (docs/ir.md).
inline constexpr llvm::StringLiteral strictAttrName = "kiln.strict";
/// On a kernel function or a linalg op: inputs of f32 contractions may be rounded to TF32 (10 mantissa bits) by targets
/// with TF32 tensor cores. Does not apply to strict ops.
inline constexpr llvm::StringLiteral tf32AttrName = "kiln.tf32";
/// On a kernel function: it is batch-invariant. A row of its results is the same to the bit regardless of the number of
/// rows of a call and of the variant of the kernel, or kernel of another entry, that computes it. Floating-point
/// arithmetic is not reordered, contracted or otherwise relaxed (docs/ir.md).
inline constexpr llvm::StringLiteral batchInvariantAttrName = "kiln.batch_invariant";
/// On math.exp and math.exp2: the argument is at most 0.
inline constexpr llvm::StringLiteral nonpositiveAttrName = "kiln.nonpositive";
/// On math.erf: the argument is at least 0.
inline constexpr llvm::StringLiteral nonnegativeAttrName = "kiln.nonnegative";

} // namespace mlir::kiln
