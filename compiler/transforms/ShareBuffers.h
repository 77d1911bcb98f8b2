// SPDX-License-Identifier: Apache-2.0
//
// Decides which values of an entry share a buffer, and where required sharing is impossible.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// The steps are: every call of a kernel or of a custom function, the begin and end of asynchronous reductions, the
/// begin and end of every loop, and the return.
class BufferSharing {
public:
  /// A value that needs memory, live from the step that writes it to the last one that reads it.
  struct Node {
    Value value;
    int first = 0, last = 0;
    int64_t bytes = 0;
    AffineExpr elements;
    unsigned buffer = 0; // index into buffers
  };

  explicit BufferSharing(func::FuncOp entry);

  /// Returns the operands of loops, yields and the return that need a copy.
  ArrayRef<OpOperand *> getConflicts() const { return conflicts; }
  ArrayRef<Node> getNodes() const { return nodes; }
  /// Returns the nodes of each buffer; empty for buffers that were merged into others.
  ArrayRef<SmallVector<unsigned>> getBuffers() const { return buffers; }
  /// Maps a buffer to the op that stores it in a state or a weight, where it is written directly.
  const DenseMap<unsigned, Operation *> &getHomes() const { return homes; }
  /// Maps a buffer to the number of the entry's result that it is.
  const DenseMap<unsigned, unsigned> &getOutputs() const { return outputs; }
  /// Maps a step to its op: for the begin of a loop the loop, for its end the yield.
  ArrayRef<Operation *> getSteps() const { return steps; }

private:
  int addStep(Operation *op);
  void number(Block &block);
  void addNode(Value value, int first);
  void findLastUses();
  void keepSent();
  void shareLoops();
  void shareSums();
  void findHomes();
  bool mayBeAtHome(OpResult result, Operation *store) const;
  void shareInPlace();
  void shareOutputs();
  void keepStates();
  bool tryShare(Value lhs, Value rhs);
  bool mayShare(const Node &earlier, const Node &later) const;
  int getStep(OpOperand &use, Block *definer) const;

  func::FuncOp entry;
  SmallVector<Interval> bounds;
  SmallVector<Node> nodes;
  DenseMap<Value, unsigned> nodeOf;
  SmallVector<SmallVector<unsigned>> buffers;
  DenseMap<unsigned, unsigned> outputs;
  SmallVector<Operation *> begun; // reductions that run while other steps execute
  DenseMap<unsigned, Operation *> homes;
  SmallVector<OpOperand *> conflicts;
  SmallVector<SendOp> sent;
  SmallVector<CallOp> calls;
  SmallVector<LoopInterface> loops;
  SmallVector<Operation *> sums;                      // all-reduces over ranks
  DenseMap<Operation *, std::pair<int, int>> stepsOf; // first and last step
  SmallVector<Operation *> steps;
};

} // namespace mlir::kiln
