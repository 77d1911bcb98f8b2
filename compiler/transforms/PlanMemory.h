// SPDX-License-Identifier: Apache-2.0
//
// The memory plan of an entry function: a place for every tensor value, in the entry and in the bodies of its loops.
//
//   Arena      offset: bytes from the start of the arena, a multiple of 64
//   Argument   offset: the position among the entry's tensor arguments and results, arguments first
//   Parameter  a weight (kiln.parameter); offset unused
//   Constant   kiln.constant, kiln.rank; offset unused
//   State      kiln.state and what kiln.append and kiln.slide return, in front of the plan; offset unused
//   Home       a call's result, in the state or weight that a kiln.append, kiln.slide, kiln.store or kiln.assign would
//              copy it to (homeOf)
//
// A view (kiln.reshape) has the place of what it views, and so has a step of a kiln.scan: a slice that its body reads
// is in the sequence, an output that its body yields is in the stacked result, `step` slices behind the place. The
// carried value of a loop, what the body yields for it, the initial value and the result all have one place: the loop
// copies nothing. Offsets hold for all extents within their bounds.
//
// MemoryPlan::compute wants the form that kiln-plan-memory leaves, which also records on the entry
//   kiln.arena_bytes = 1048576 : i64         what the arena needs
//   kiln.arena_lower_bound = 1048576 : i64   the most bytes live at a time: no plan needs less
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

/// The value behind views and steps.
Value getViewed(Value tensor);

class MemoryPlan {
public:
  /// One buffer of the arena, for values that follow each other in place.
  struct Buffer {
    int64_t offset = 0;
    int64_t bytes = 0; // a multiple of 64
    int first = 0;     // the step that writes it first
    int last = 0;      // the last step that reads it
    SmallVector<Value> values;
  };

  static FailureOr<MemoryPlan> compute(func::FuncOp entry);

  MemoryPlacement of(Value tensor) const;
  /// The op that has nothing to copy since the value is where it would copy it; null of other values.
  Operation *homeOf(Value tensor) const { return homes.lookup(getViewed(tensor)); }

  int64_t arenaBytes() const { return bytes; }
  int64_t lowerBound() const { return bound; }
  ArrayRef<Buffer> getBuffers() const { return buffers; }
  /// Step -> its op, as BufferSharing numbers them.
  ArrayRef<Operation *> getSteps() const { return steps; }

private:
  DenseMap<Value, MemoryPlacement> places;
  DenseMap<Value, Operation *> homes;
  SmallVector<Buffer> buffers;
  SmallVector<Operation *> steps;
  int64_t bytes = 0, bound = 0;
};

/// The names of the memory beside the plan that an op reads or writes: of a state, or of weights.
SmallVector<Attribute> getMemoryNames(Operation *op);

/// What writes a value of a buffer: the kernel, what ranks do together, or "carried" and "stacked" of what a loop
/// gives.
StringRef getWriter(Value value);

/// A table of the buffers and a picture, offset down and time across.
std::string printMemoryPlan(func::FuncOp entry, const MemoryPlan &plan);

/// A value of a loop's body that is a slice of another: one step of a sequence, or of a stacked result.
struct LoopStep {
  LoopInterface loop;
  Value whole;
};
std::optional<LoopStep> getLoopStep(Value tensor);
/// The loop that goes on together with one that is ahead: the next one of its block.
ScanOp getFollower(ScanOp ahead);
bool isFollower(ScanOp loop);
/// Of a value that a loop ahead of its follower stacks, how many slices there are of it, each in the place of one
/// before; else 0.
int64_t getKeptSlices(Value stacked);
/// The extents of what is kept of a value.
SmallVector<AffineExpr> getKeptExtents(Value value);
/// The value whose memory this one is, under another shape, or as a collective makes it; nothing if it has its own.
Value getSource(Value tensor);

} // namespace mlir::kiln
