// SPDX-License-Identifier: Apache-2.0
//
// Elements of a kernel's tensors in a device function: loaded from where they are, or computed on the spot from those
// of other tensors. Strategies say which element; this says how to get it.
#pragma once

#include "targets/cuda/Placement.h"
#include "targets/cuda/tile/Builder.h"
#include "llvm/ADT/DenseSet.h"
#include <functional>
#include <map>

namespace kiln::cuda {

class Combiner;

class Reader {
public:
  /// The value of operand `number` (inputs, then inits) in a region.
  using Operands = llvm::function_ref<tile::Value(unsigned number)>;

  /// In the builder's current kernel, to which it adds the parameters that are wanted.
  Reader(tile::Builder &b, const Placement &placement, mlir::func::FuncOp kernel)
      : b(b), placement(placement), kernel(kernel) {}

  /// An extent, i32.
  tile::Value extent(mlir::AffineExpr extent);
  /// An element of a tensor; null after a diagnostic.
  tile::Value read(mlir::Value tensor, llvm::ArrayRef<tile::Value> at);
  /// The results of an op at these parallel loops (others are null): of a reduction, the sums. Empty after a
  /// diagnostic.
  tile::Values evaluate(mlir::linalg::GenericOp op, tile::Values loops);
  void store(const Store &store, tile::Value element, llvm::ArrayRef<tile::Value> at);
  /// The tensor where that goes, and several elements in one access from there on, at a multiple of their bytes.
  tile::Value tensorOf(const Store &store) { return parameter(store.place); }
  void storeTogether(const Store &store, llvm::ArrayRef<tile::Value> elements, llvm::ArrayRef<tile::Value> at);

  /// A value of the op's region at these parallel loops, as far as it is made of what they and inputs say; null after a
  /// diagnostic.
  tile::Value evaluate(mlir::linalg::GenericOp op, mlir::Value wanted, llvm::ArrayRef<tile::Value> loops);

  /// An op's operand at these of its loops; null after a diagnostic.
  tile::Value operand(mlir::linalg::GenericOp op, unsigned number, llvm::ArrayRef<tile::Value> loops);
  /// A tensor that is in memory.
  tile::Value tensor(mlir::Value tensor) { return parameter(*placement.find(tensor)); }
  /// The operand's tensor in memory, if it is there as it is, and its element at these loops.
  tile::Value address(mlir::linalg::GenericOp op, unsigned number);
  tile::Value offset(mlir::linalg::GenericOp op, unsigned number, llvm::ArrayRef<tile::Value> loops);
  /// Loads an operand in memory at several of the op's loops, of which elements lie side by side, in one access at a
  /// multiple of their bytes. They are what is read there from here on.
  void loadTogether(mlir::linalg::GenericOp op, unsigned number, llvm::ArrayRef<tile::Values> loops);

  /// The element's coordinates.
  tile::Values coordinates(mlir::linalg::GenericOp op, unsigned number, llvm::ArrayRef<tile::Value> loops);

  /// Scratch memory from so many bytes on.
  tile::Value scratch(int64_t offset) { return parameter({Parameter::Scratch, offset}); }

  /// From here on each element of the tensor that is read is this one: a strategy has computed it.
  void give(mlir::Value tensor, tile::Value element) { known[tensor] = element; }

  /// The coordinates of a result's element at the op's loops.
  tile::Values written(mlir::linalg::GenericOp op, unsigned result, llvm::ArrayRef<tile::Value> loops);

  /// One more turn of a reduction: the sums behind that of these loops.
  tile::Values reduceOnce(mlir::linalg::GenericOp op, llvm::ArrayRef<tile::Value> loops, const tile::Values &sums);

  /// Stored values that are at hand, whatever their coordinates.
  llvm::DenseMap<mlir::Value, tile::Value> known;
  /// Stored values that are computed where they are used, all the same.
  llvm::DenseSet<mlir::Value> computed;
  /// How reductions are done, from these sums on; null: in a loop of the thread. Not asked about a reduction inside of
  /// another one.
  std::function<tile::Values(mlir::linalg::GenericOp op, tile::Values loops, tile::Values sums)> reduceTogether;

  /// A parameter for the launch's tensor map of that number.
  tile::Value tensorMap(int64_t number);

  /// What the launch passes for the parameters so far.
  std::vector<Parameter> parameters;

private:
  /// write(tensor, offset) where the element at these coordinates goes, if it goes there.
  void storeAt(const Store &store, llvm::ArrayRef<tile::Value> at,
               llvm::function_ref<void(tile::Value tensor, tile::Value offset)> write);
  tile::Value parameter(const Parameter &parameter);
  tile::Value &elementAt(mlir::Value tensor, llvm::ArrayRef<tile::Value> at);
  tile::Value load(mlir::Value tensor, const Parameter &place, llvm::ArrayRef<tile::Value> at);
  tile::Value symbol(unsigned number) { return parameter({Parameter::Symbol, number}); }
  tile::Value affine(mlir::AffineExpr expr, llvm::ArrayRef<tile::Value> dims, llvm::ArrayRef<tile::Value> symbols);
  tile::Value floorDivide(tile::Value x, tile::Value y, mlir::AffineExpr numerator);
  tile::Value offset(mlir::RankedTensorType type, llvm::ArrayRef<tile::Value> at);
  tile::Value scalar(mlir::Value value);
  tile::Value extract(mlir::tensor::ExtractOp op, tile::Values at);
  tile::Values region(mlir::linalg::GenericOp op, llvm::ArrayRef<tile::Value> loops, Operands operands,
                      mlir::ValueRange wanted);
  tile::Values reduce(mlir::linalg::GenericOp op, tile::Values loops, llvm::ArrayRef<unsigned> reduced,
                      tile::Values sums, const Combiner *joins);

  tile::Builder &b;
  const Placement &placement;
  mlir::func::FuncOp kernel;
  tile::Values addresses;                                  // of the parameters
  std::map<std::vector<const void *>, tile::Value> loaded; // by tensor and coordinates
  bool isBroken = false;                                   // after a diagnostic
};

} // namespace kiln::cuda
