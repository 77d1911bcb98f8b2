// SPDX-License-Identifier: Apache-2.0
//
// The memory plan of an entry function assigns a place to every tensor value of the entry and of its loop bodies.
//
//   Arena      offset: bytes from the start of the arena, a multiple of 64
//   Argument   offset: the position among the entry's tensor arguments and results, arguments first
//   Parameter  a weight (kiln.parameter); offset unused
//   Constant   kiln.constant, kiln.rank; offset unused
//   State      kiln.state and results of kiln.append and kiln.slide, before all buffers; offset unused
//   Home       a call's result, written directly to the state or weight to which a kiln.append, kiln.slide, kiln.store
//              or kiln.assign would copy it (homeOf)
//
// A view (kiln.reshape) has the place of its operand, and so has an iteration's slice of a kiln.scan: a slice that the
// body reads is in the sequence, and an output that the body yields is in the stacked result, `step` slices after its
// start. The carried value of a loop, the value that the body yields for it, the initial value and the result all have
// one place, so the loop copies nothing. Offsets hold for all dynamic dimensions within their bounds.
//
// MemoryPlan::compute requires the form that kiln-plan-memory produces, which also records on the entry
//   kiln.arena_bytes = 1048576 : i64         the size of the arena
//   kiln.arena_lower_bound = 1048576 : i64   the largest number of live bytes: no plan needs less
#pragma once

#include <string>

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

inline constexpr llvm::StringLiteral arenaBytesAttrName = "kiln.arena_bytes";
inline constexpr llvm::StringLiteral arenaLowerBoundAttrName = "kiln.arena_lower_bound";

struct MemoryPlacement {
  enum class Kind { Arena, Argument, Parameter, Constant, State, Home };

  Kind kind = Kind::Arena;
  int64_t offset = 0;

  bool operator==(const MemoryPlacement &) const = default;
};

/// Returns the value underlying views and loop slices.
Value getViewed(Value tensor);

class MemoryPlan {
public:
  /// A buffer of the arena, for values that reuse the memory in place.
  struct Buffer {
    int64_t offset = 0;
    int64_t bytes = 0; // a multiple of 64
    int first = 0;     // the step that writes it first
    int last = 0;      // the last step that reads it
    SmallVector<Value> values;
  };

  static FailureOr<MemoryPlan> compute(func::FuncOp entry);

  MemoryPlacement of(Value tensor) const;
  /// Returns the op that would copy the value to its place but need not, since it is written there; null for other
  /// values.
  Operation *homeOf(Value tensor) const { return homes.lookup(getViewed(tensor)); }

  int64_t arenaBytes() const { return bytes; }
  int64_t lowerBound() const { return bound; }
  ArrayRef<Buffer> getBuffers() const { return buffers; }
  /// Maps a step to its op, as BufferSharing numbers them.
  ArrayRef<Operation *> getSteps() const { return steps; }

private:
  DenseMap<Value, MemoryPlacement> places;
  DenseMap<Value, Operation *> homes;
  SmallVector<Buffer> buffers;
  SmallVector<Operation *> steps;
  int64_t bytes = 0, bound = 0;
};

/// Returns the names of the states or weights outside of the plan's memory that an op reads or writes.
SmallVector<Attribute> getMemoryNames(Operation *op);

/// Returns what writes a value of a buffer: the kernel, the collective, or "carried" and "stacked" for results of a
/// loop.
StringRef getWriter(Value value);

/// Prints a table of the buffers and a diagram with offsets down and time across.
std::string printMemoryPlan(func::FuncOp entry, const MemoryPlan &plan);

/// A value of a loop's body that is a slice of another: one iteration's slice of a sequence or of a stacked result.
struct LoopStep {
  LoopInterface loop;
  Value whole;
};
std::optional<LoopStep> getLoopStep(Value tensor);
/// Returns the loop that runs interleaved with a loop that is ahead of it: the next scan of its block.
ScanOp getFollower(ScanOp ahead);
bool isFollower(ScanOp loop);
/// For a value that is stacked by a loop ahead of its follower: the number of slices that are kept, each reusing the
/// place of an earlier one; else 0.
int64_t getKeptSlices(Value stacked);
/// Returns the dimensions of the kept part of a value.
SmallVector<AffineExpr> getKeptExtents(Value value);
/// Returns the value whose memory this one shares, as a reshape or an in-place collective; null if it has its own.
Value getSource(Value tensor);

} // namespace mlir::kiln
