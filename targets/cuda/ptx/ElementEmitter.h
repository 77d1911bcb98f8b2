// SPDX-License-Identifier: Apache-2.0
//
// Provides elements of a kernel's tensors in a device function: loaded from memory, or computed in place from elements
// of other tensors. Strategies choose the elements; the emitter finds how to get them.
#pragma once

#include "targets/cuda/plan/KernelStages.h"
#include "targets/cuda/tile/Builder.h"
#include "llvm/ADT/DenseSet.h"
#include <functional>
#include <map>

namespace kiln::cuda {

class Combiner;

class ElementEmitter {
public:
  /// Returns the value of operand `number` (inputs, then inits) in a region.
  using Operands = llvm::function_ref<tile::Value(unsigned number)>;

  /// Works in the builder's current kernel, to which it adds parameters on demand.
  ElementEmitter(tile::Builder &b, const Placement &placement, mlir::func::FuncOp kernel)
      : b(b), placement(placement), kernel(kernel) {}

  /// Returns an extent as i32.
  tile::Value extent(mlir::AffineExpr extent);
  /// Returns an element of a tensor; null after a diagnostic.
  tile::Value read(mlir::Value tensor, llvm::ArrayRef<tile::Value> at);
  /// Returns the results of an op at these parallel loops (others are null); for a reduction, the reduced values.
  /// Returns nothing after a diagnostic.
  tile::Values evaluate(mlir::linalg::GenericOp op, tile::Values loops);
  void store(const Store &store, tile::Value element, llvm::ArrayRef<tile::Value> at);
  /// Returns the tensor that the store writes to, and stores several contiguous elements as one aligned vector.
  tile::Value tensorOf(const Store &store) { return parameter(store.place); }
  void storeTogether(const Store &store, llvm::ArrayRef<tile::Value> elements, llvm::ArrayRef<tile::Value> at);

  /// Computes a value of the op's region at these parallel loops from the loops and inputs that it depends on; returns
  /// null after a diagnostic.
  tile::Value evaluate(mlir::linalg::GenericOp op, mlir::Value wanted, llvm::ArrayRef<tile::Value> loops);

  /// Returns an op's operand at these of its loops; null after a diagnostic.
  tile::Value operand(mlir::linalg::GenericOp op, unsigned number, llvm::ArrayRef<tile::Value> loops);
  /// Returns the address of a tensor that is in memory.
  tile::Value tensor(mlir::Value tensor) { return parameter(*placement.find(tensor)); }
  /// Return the address of the operand's tensor, null if the tensor is not in memory, and the offset of its element at
  /// these loops.
  tile::Value address(mlir::linalg::GenericOp op, unsigned number);
  tile::Value offset(mlir::linalg::GenericOp op, unsigned number, llvm::ArrayRef<tile::Value> loops);
  /// Loads an operand in memory at several of the op's loops, whose elements are contiguous, as one aligned vector.
  /// Later reads of these elements return the loaded values.
  void loadTogether(mlir::linalg::GenericOp op, unsigned number, llvm::ArrayRef<tile::Values> loops);

  /// Returns the coordinates of the operand's element.
  tile::Values coordinates(mlir::linalg::GenericOp op, unsigned number, llvm::ArrayRef<tile::Value> loops);

  /// Returns the address at a byte offset of scratch memory.
  tile::Value scratch(int64_t offset) { return parameter({Parameter::Scratch, offset}); }

  /// Makes later reads of any element of the tensor return `element`, which a strategy has computed.
  void give(mlir::Value tensor, tile::Value element) { known[tensor] = element; }

  /// Returns the coordinates of a result's element at the op's loops.
  tile::Values written(mlir::linalg::GenericOp op, unsigned result, llvm::ArrayRef<tile::Value> loops);

  /// Performs one reduction step: returns the accumulators after that of these loops.
  tile::Values reduceOnce(mlir::linalg::GenericOp op, llvm::ArrayRef<tile::Value> loops, const tile::Values &sums);

  /// Stored values that are in registers, whatever their coordinates.
  llvm::DenseMap<mlir::Value, tile::Value> known;
  /// Stored values that each use computes nevertheless.
  llvm::DenseSet<mlir::Value> computed;
  /// Performs a reduction that starts with `sums`; null: a loop of the thread does. It is not called for a reduction
  /// inside of another one.
  std::function<tile::Values(mlir::linalg::GenericOp op, tile::Values loops, tile::Values sums)> reduceTogether;
  /// Returns the results of a reduction that a strategy has computed, at these parallel loops; nothing for any other
  /// reduction. May be null.
  std::function<tile::Values(mlir::linalg::GenericOp op, llvm::ArrayRef<tile::Value> loops)> computedReduction;

  /// Returns a parameter for tensor map `number` of the launch.
  tile::Value tensorMap(int64_t number);

  /// The arguments of the launch for the parameters so far.
  std::vector<Parameter> parameters;

private:
  /// Calls write(tensor, offset) for the element at these coordinates, if the store includes it.
  void storeAt(const Store &store, llvm::ArrayRef<tile::Value> at,
               llvm::function_ref<void(tile::Value tensor, tile::Value offset)> write);
  tile::Value parameter(const Parameter &parameter);
  tile::Value &elementAt(mlir::Value tensor, llvm::ArrayRef<tile::Value> at);
  tile::Value load(mlir::Value tensor, const Parameter &place, llvm::ArrayRef<tile::Value> at);
  tile::Value symbol(unsigned number) { return parameter({Parameter::Symbol, number}); }
  tile::Value affine(mlir::AffineExpr expr, llvm::ArrayRef<tile::Value> dims, llvm::ArrayRef<tile::Value> symbols);
  tile::Value offset(mlir::RankedTensorType type, llvm::ArrayRef<tile::Value> at);
  tile::Value scalar(mlir::Value value);
  tile::Value extract(mlir::tensor::ExtractOp op, tile::Values at);
  tile::Values region(mlir::linalg::GenericOp op, llvm::ArrayRef<tile::Value> loops, Operands operands,
                      mlir::ValueRange wanted);
  tile::Values reduce(mlir::linalg::GenericOp op, tile::Values loops, llvm::ArrayRef<unsigned> reduced,
                      tile::Values sums, const Combiner *combiner);

  tile::Builder &b;
  const Placement &placement;
  mlir::func::FuncOp kernel;
  tile::Values addresses;                                  // values of the parameters
  std::map<std::vector<const void *>, tile::Value> loaded; // key: tensor and coordinates
  bool isBroken = false;                                   // a diagnostic has been emitted
};

} // namespace kiln::cuda
