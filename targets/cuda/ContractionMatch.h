// SPDX-License-Identifier: Apache-2.0
//
// Which steps are a product of matrices with what comes before and behind it, and how its loops map to the rows, the
// columns and the depth of one.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "targets/cuda/Reader.h"
#include "targets/cuda/Strategy.h"

namespace kiln::cuda {

using mlir::kiln::tf32AttrName;

/// sum[batch, rows, columns] = a[batch, rows, depth] * b[batch, columns, depth], summed over the depth in f32. Numbers
/// are loops and inputs of the op; several loops count as one, the last of them the fastest.
struct Contraction {
  mlir::linalg::GenericOp op;
  unsigned a = 0, b = 0;
  llvm::SmallVector<unsigned> batch, rows, columns, depth;
  llvm::SmallVector<unsigned> stepLoops; // the op's loop that each loop of the step's op is
};

/// The only contraction of the step. The step's first result has a column as its innermost dimension.
std::optional<Contraction> findContraction(const StepContext &context);

/// The product of the loops' extents.
mlir::AffineExpr extentOf(const Contraction &contraction, llvm::ArrayRef<unsigned> loops);
int64_t largestExtent(const Contraction &contraction, llvm::ArrayRef<unsigned> loops);

/// An input of the contraction: a with its rows, or b with its columns as rows.
class ContractionInput {
public:
  ContractionInput(const StepContext &context, const Contraction &contraction, bool isA);

  unsigned number;
  llvm::ArrayRef<unsigned> rows;
  mlir::Type element;   // f32, f16 or bf16
  bool isAlongDepth;    // depth lies side by side, not rows
  bool isPlain;         // elements are as they lie in memory
  int64_t together = 1; // of a plain one: neighbours of up to 16 bytes that start at multiples of so many elements
  bool isSureAligned;   // those are at multiples of their bytes: else that depends on the address

  int64_t bytes() const { return element.getIntOrFloatBitWidth() / 8; } // of an element
};

/// Splits a number of several loops that count as one into those of `loops`.
void splitIndex(tile::Builder &b, Reader &reader, const Contraction &contraction, llvm::ArrayRef<unsigned> which,
                tile::Value index, tile::Values &loops);

/// An element of an input as f32; null after a diagnostic.
tile::Value readInput(tile::Builder &b, Reader &reader, const Contraction &contraction, unsigned number,
                      llvm::ArrayRef<tile::Value> loops);

/// These loops of the contraction as those of the step's op.
tile::Values loopsOfStep(const Contraction &contraction, llvm::ArrayRef<tile::Value> loops);

/// The operands of the epilogue's op in whose memory neighbouring columns lie side by side, as in the results.
llvm::SmallVector<unsigned> operandsAcross(const StepContext &context, const Contraction &contraction);

/// What the step makes of a sum at these loops of the contraction, for each result of its op: the epilogue. Empty after
/// a diagnostic.
tile::Values finishSum(Reader &reader, const StepContext &context, const Contraction &contraction,
                       llvm::ArrayRef<tile::Value> loops, tile::Value sum);
void storeResults(Reader &reader, const StepContext &context, const Contraction &contraction,
                  llvm::ArrayRef<tile::Value> loops, llvm::ArrayRef<tile::Value> results);
/// Both of an element that exists, by its number of the batch, its row and its column.
mlir::LogicalResult finishElement(tile::Builder &b, Reader &reader, const StepContext &context,
                                  const Contraction &contraction, tile::Value batch, tile::Value row,
                                  tile::Value column, tile::Value sum);

/// How many neighbouring columns lie side by side in all results, from each multiple of their number on: 4, 2 or 1.
int64_t columnsTogether(const StepContext &context, const Contraction &contraction);
/// Whether all results, and what the epilogue reads of as many columns, are at multiples of the bytes of so many
/// elements.
tile::Value areAligned(tile::Builder &b, Reader &reader, const StepContext &context, const Contraction &contraction,
                       int64_t elements);
/// Loads what the epilogue reads of some neighbouring columns, each at these loops, if both allow it.
void loadTogether(Reader &reader, const StepContext &context, const Contraction &contraction,
                  llvm::ArrayRef<tile::Values> loops);
/// The results of some neighbouring columns, from these loops on, if both allow it: [column][result].
void storeTogether(Reader &reader, const StepContext &context, const Contraction &contraction,
                   llvm::ArrayRef<tile::Value> loops, llvm::ArrayRef<tile::Values> results);

} // namespace kiln::cuda
