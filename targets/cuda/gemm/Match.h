// SPDX-License-Identifier: Apache-2.0
//
// Matches kernel stages that are a matrix product with prologue and epilogue, and maps their loops to rows (M),
// columns (N) and reduction (K).
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/Contraction.h"
#include "targets/cuda/plan/Strategy.h"
#include "targets/cuda/ptx/ElementEmitter.h"

namespace kiln::cuda {

using mlir::kiln::tf32AttrName;

/// sum[batch, rows, columns] = a[batch, rows, reduction] * b[batch, columns, reduction], accumulated over `reduction`
/// (K) in f32. Several loops of a kind form one flattened dimension, the last loop innermost.
struct Contraction : ::kiln::Contraction {
  llvm::SmallVector<unsigned> stageLoops; // for each loop of the stage's op, the loop of `op`
};

/// Returns the only contraction of the kernel stage. The innermost dimension of the stage's first result is a column.
std::optional<Contraction> findContraction(const StageContext &context);

/// Returns the product of the loops' extents.
mlir::AffineExpr extentOf(const Contraction &contraction, llvm::ArrayRef<unsigned> loops);
int64_t largestExtent(const Contraction &contraction, llvm::ArrayRef<unsigned> loops);

/// An input of the contraction: a with its rows, or b with its columns as rows.
class ContractionInput {
public:
  ContractionInput(const StageContext &context, const Contraction &contraction, bool isA);

  unsigned number;
  llvm::ArrayRef<unsigned> rows;
  mlir::Type element;   // f32, f16 or bf16
  bool isKMajor;        // K is contiguous in memory, not the rows
  bool isPlain;         // elements are in memory, not computed when read
  int64_t together = 1; // if plain: vector width, up to 16 bytes; vectors start at its multiples
  bool isSureAligned;   // vectors are known to be aligned: else that depends on the address

  int64_t bytes() const { return element.getIntOrFloatBitWidth() / 8; } // element size
};

/// Splits an index of the flattened dimension of the loops `which` into the indices of these loops, in `loops`.
void splitIndex(tile::Builder &b, ElementEmitter &emitter, const Contraction &contraction,
                llvm::ArrayRef<unsigned> which, tile::Value index, tile::Values &loops);

/// Reads an element of an input as f32; returns null after a diagnostic.
tile::Value readInput(tile::Builder &b, ElementEmitter &emitter, const Contraction &contraction, unsigned number,
                      llvm::ArrayRef<tile::Value> loops);

/// Converts loop indices of the contraction to those of the stage's op.
tile::Values loopsOfStage(const Contraction &contraction, llvm::ArrayRef<tile::Value> loops);

/// Returns the operands of the epilogue's op in which neighbouring columns are contiguous, as in the results.
llvm::SmallVector<unsigned> operandsAlongColumns(const StageContext &context, const Contraction &contraction);

/// Applies the epilogue to an accumulator at these loops of the contraction: returns a value for each result of the
/// stage's op, or nothing after a diagnostic.
tile::Values finishSum(ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
                       llvm::ArrayRef<tile::Value> loops, tile::Value sum);
void storeResults(ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
                  llvm::ArrayRef<tile::Value> loops, llvm::ArrayRef<tile::Value> results);
/// Applies the epilogue to an element that exists, given by its batch index, row and column, and stores the results.
mlir::LogicalResult finishElement(tile::Builder &b, ElementEmitter &emitter, const StageContext &context,
                                  const Contraction &contraction, tile::Value batch, tile::Value row,
                                  tile::Value column, tile::Value sum);

/// Returns how many neighbouring columns are contiguous in all results, from each multiple of that number on: 4, 2 or
/// 1.
int64_t columnsTogether(const StageContext &context, const Contraction &contraction);
/// Returns whether all results, and the operands that the epilogue reads along the columns, are aligned to vectors of
/// `elements` elements.
tile::Value areAligned(tile::Builder &b, ElementEmitter &emitter, const StageContext &context,
                       const Contraction &contraction, int64_t elements);
/// Loads the epilogue's operands at neighbouring columns, each given by its loops, as vectors. Requires that
/// columnsTogether() and areAligned() allow it.
void loadTogether(ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
                  llvm::ArrayRef<tile::Values> loops);
/// Stores the results [column][result] of neighbouring columns, from these loops on, as vectors, under the same
/// conditions.
void storeTogether(ElementEmitter &emitter, const StageContext &context, const Contraction &contraction,
                   llvm::ArrayRef<tile::Value> loops, llvm::ArrayRef<tile::Values> results);

} // namespace kiln::cuda
