// SPDX-License-Identifier: Apache-2.0
//
// Which values of an entry share one buffer, and where that cannot be as it has to.
#pragma once

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// Steps: every call, what is begun and finished, the begin and the end of every loop, and the return.
class BufferSharing {
public:
  /// A value that needs memory, from the step that writes it to the last one that reads it.
  struct Node {
    Value value;
    int first = 0, last = 0;
    int64_t bytes = 0;
    AffineExpr elements;
    unsigned buffer = 0; // index into buffers
  };

  explicit BufferSharing(func::FuncOp entry);

  /// Operands of loops, yields and the return that would need a copy.
  ArrayRef<OpOperand *> getConflicts() const { return conflicts; }
  ArrayRef<Node> getNodes() const { return nodes; }
  /// Nodes of one buffer; empty for buffers that became part of others.
  ArrayRef<SmallVector<unsigned>> getBuffers() const { return buffers; }
  /// Buffer -> the op that stores it in a state or a weight, where it is written from the start.
  const DenseMap<unsigned, Operation *> &getHomes() const { return homes; }
  /// Buffer -> the number of the entry's result that it is.
  const DenseMap<unsigned, unsigned> &getOutputs() const { return outputs; }
  /// Step -> its op; of a loop's begin the loop, of its end what it yields.
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
  SmallVector<Operation *> begun; // sums that are made while other steps run
  DenseMap<unsigned, Operation *> homes;
  SmallVector<OpOperand *> conflicts;
  SmallVector<SendOp> sent;
  SmallVector<CallOp> calls;
  SmallVector<LoopInterface> loops;
  SmallVector<Operation *> sums;                      // over ranks
  DenseMap<Operation *, std::pair<int, int>> stepsOf; // first and last step
  SmallVector<Operation *> steps;
};

} // namespace mlir::kiln
