// SPDX-License-Identifier: Apache-2.0
//
// The kiln dialect, its attributes and ops. The names of the discardable attributes that later stages read are here
// too.
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

/// Positions of the symbols of a batched entry (kiln.each_sequence): how many sequences a call has; the rows of all of
/// them, and what these are the sum of. -1: there are none.
struct BatchSymbols {
  int64_t count = -1, rows = -1, own = -1;

  /// The first extent of all sequences' rows together, of a slice's; null if there is none.
  AffineExpr getWhole(AffineExpr slice) const;
  /// The type with that extent; null if there is none, and where further extents differ from sequence to sequence.
  RankedTensorType getWhole(RankedTensorType slice) const;
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

/// Whether the op may stand in a kernel, as that.
inline bool hasRole(Operation *op, KernelRole role) {
  auto inKernel = dyn_cast_or_null<KernelOpInterface>(op);
  return inKernel && inKernel.getKernelRole() == role;
}

/// Whether an element of the op's result is no more than a number of fewer bits, widened: a cast of an f16, a bf16 or
/// an i8 to a wider float, or that cast times its scale, which is one along the last axis.
bool isDecoding(Operation *op);

/// How many processes of the group call the module's entries together.
int64_t getNumRanks(Operation *op, Group group = Group::Ranks);

/// The value that reshapes give other shapes.
Value getUnshaped(Value value);
/// The number that every element of a floating-point constant is.
std::optional<double> getSplat(Value value);

/// On a module: an array of SymbolAttr.
inline constexpr llvm::StringLiteral symbolsAttrName = "kiln.symbols";
/// On a module whose entries are called by several ranks together: their number; and a dictionary of ShardAttr, by the
/// names of the weights that each rank has a part of.
inline constexpr llvm::StringLiteral ranksAttrName = "kiln.ranks";
/// On a module whose sums over ranks have a number of parts, whatever that of the ranks: the parts of all ranks.
inline constexpr llvm::StringLiteral sumPartsAttrName = "kiln.sum_parts";
/// On a module of which several replicas train together: their number.
inline constexpr llvm::StringLiteral replicasAttrName = "kiln.replicas";
/// On a module that is cut in stages, each with its layers: their number.
inline constexpr llvm::StringLiteral stagesAttrName = "kiln.stages";
/// And the first stage with each role (compiler/transforms/CutStages.h).
inline constexpr llvm::StringLiteral rolesAttrName = "kiln.roles";
inline constexpr llvm::StringLiteral shardsAttrName = "kiln.shards";
/// On a module whose attention was recognised: the parts that it was derived or cut into since have fewer readers of
/// their values, but compute what the whole does, to the bit.
inline constexpr llvm::StringLiteral recognizedAttrName = "kiln.recognized";
/// On the function that assigns what follows from weights only, which is called when they are bound: a text that tells
/// apart what is computed.
inline constexpr llvm::StringLiteral derivesAttrName = "kiln.derives";
/// Its name, which no entry has.
inline constexpr llvm::StringLiteral derivesFunctionName = "bind.derive";
/// On a function that the generated library exports.
inline constexpr llvm::StringLiteral entryAttrName = "kiln.entry";
/// On an index argument of an entry: the name of its symbol.
inline constexpr llvm::StringLiteral symbolAttrName = "kiln.symbol";
/// On a tensor argument or result of an entry: the name that the caller sees.
inline constexpr llvm::StringLiteral nameAttrName = "kiln.name";
/// On a function that does for several sequences what an entry does for one.
inline constexpr llvm::StringLiteral batchAttrName = "kiln.batch";
/// On a kernel function.
inline constexpr llvm::StringLiteral kernelAttrName = "kiln.kernel";
/// On a kernel function: the layers that it computes something of, "h.{}.mlp", by where its ops were traced.
inline constexpr llvm::StringLiteral scopesAttrName = "kiln.scopes";
/// On a kernel function: minimum and maximum of each of its index arguments.
inline constexpr llvm::StringLiteral boundsAttrName = "kiln.bounds";
/// On a kernel function: the tensor arguments that the result may share memory with.
inline constexpr llvm::StringLiteral inplaceAttrName = "kiln.inplace";
/// On a tensor argument of a kernel function: a weight in each call, so that nothing writes to it while kernels run.
inline constexpr llvm::StringLiteral weightAttrName = "kiln.weight";
/// On a kernel function: structure and shape of its key, before passes that belong to a target.
inline constexpr llvm::StringLiteral structureAttrName = "kiln.structure";
inline constexpr llvm::StringLiteral shapeAttrName = "kiln.shape";
/// On a call of a kernel: a map from the kernel's symbols to its flops, as the language counts them, and its tensors'
/// bytes; and the layer that it is of, "h.{}.mlp".
inline constexpr llvm::StringLiteral workAttrName = "kiln.work";
inline constexpr llvm::StringLiteral layerAttrName = "kiln.layer";
/// On a linalg.generic whose result is an exponential, to any base, of the difference of two of its inputs: their
/// numbers.
inline constexpr llvm::StringLiteral exponentialAttrName = "kiln.exponential";
/// Beside it, f32: the base's logarithm to base 2.
inline constexpr llvm::StringLiteral exponentialBaseAttrName = "kiln.exponential_base";
/// On floating-point ops whose order or comparison counts: a code generator must not change it (docs/ir.md).
inline constexpr llvm::StringLiteral strictAttrName = "kiln.strict";
/// On a kernel function or a linalg op: factors of f32 may be rounded to tf32, ten bits behind the point, by targets
/// that have tensor cores for those. Not what is strict.
inline constexpr llvm::StringLiteral tf32AttrName = "kiln.tf32";
/// On a kernel function: a row of its results is the same to the bit however many rows a call has, and whichever form
/// of the kernel, or kernel of another entry, computes it. Nothing reorders, contracts or assumes anything of its
/// arithmetic on floats (docs/ir.md).
inline constexpr llvm::StringLiteral orderedAttrName = "kiln.ordered";
/// On math.exp and math.exp2: the argument is at most 0.
inline constexpr llvm::StringLiteral nonpositiveAttrName = "kiln.nonpositive";
/// On math.erf: the argument is at least 0.
inline constexpr llvm::StringLiteral nonnegativeAttrName = "kiln.nonnegative";

} // namespace mlir::kiln
