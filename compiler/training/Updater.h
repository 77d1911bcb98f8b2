// SPDX-License-Identifier: Apache-2.0
//
// Applies an optimiser to the parameters of an entry that trains (kiln/training.h).
#pragma once

#include "compiler/dialect/Training.h"
#include "compiler/dialect/gradients/GradientBuilder.h"

namespace kiln {

/// A parameter and its gradient, for the copies over which the enclosing loops do not iterate.
struct Trained : mlir::kiln::TrainedParameter {
  mlir::Value gradient;
  mlir::RankedTensorType type; // type of a copy
  bool isShared = false;       // whether gradient and optimiser state are a replica's shard
};

/// Builds the updates of an entry's parameters. Parameters of a stack are updated in a loop over its layers.
class Updater {
public:
  Updater(mlir::OpBuilder &builder, const Training &training, mlir::func::FuncOp function)
      : builder(builder), training(training), function(function), loc(function.getLoc()), b(builder, loc) {}

  /// Scales the gradients down if their norm is too large, and returns the norm.
  mlir::Value clip(llvm::MutableArrayRef<Trained> all);
  /// After prepare(): returns the largest magnitude of the loss, of the values that prepare() computed, and of all
  /// gradients except those that `norm` covers; NaN if any of them is NaN. If several processes have different
  /// gradients, the result is finite on all of them or on none.
  mlir::Value size(llvm::ArrayRef<Trained> all, mlir::Value loss, mlir::Value norm);
  /// Computes the values that all updates need from the learning rate and the step's number.
  void prepare(mlir::Value rate, mlir::Value step);
  void update(llvm::ArrayRef<Trained> all);

private:
  /// The update of one parameter. It may return null.
  using Work = llvm::function_ref<mlir::Value(const Trained &)>;
  /// Applies `work` to each parameter and returns the results. Parameters of a stack are handled in a loop over its
  /// layers, in which `gradient` is a slice, and the results are stacked. `depth`: the number of enclosing stacks,
  /// whose "{}" come first in the names.
  llvm::SmallVector<mlir::Value> doForEach(llvm::ArrayRef<Trained> all, Work work, unsigned depth = 0);
  llvm::SmallVector<mlir::Value> doForLayers(llvm::ArrayRef<Trained> layers, Work work, unsigned depth);
  mlir::Value parameter(const Trained &each) {
    return mlir::kiln::ParameterOp::create(builder, loc, each.type, llvm::StringRef(each.name), each.copies, true);
  }
  mlir::Value next(const Trained &each, mlir::Value weight);
  mlir::Value gatherNext(const Trained &each);
  mlir::Value state(const char *moment, const Trained &each, mlir::RankedTensorType type);
  void store(const char *moment, const Trained &each, mlir::Value value);
  mlir::Value withDecay(const Trained &each, mlir::Value weight);
  mlir::Value descend(const Trained &each, mlir::Value weight);
  mlir::Value descendByMoments(const Trained &each, mlir::Value weight);
  void updateAverage(const Trained &each, mlir::Value next);
  /// Returns part * x + (1 - part) * y.
  mlir::Value mix(double part, mlir::Value x, mlir::Value y) { return b.add(b.scale(x, part), b.scale(y, 1 - part)); }

  mlir::OpBuilder &builder;
  const Training &training;
  mlir::func::FuncOp function;
  mlir::Location loc;
  mlir::kiln::GradientBuilder b;
  mlir::Value rate, meanRate, squareScale, isFirst; // scalars
};

} // namespace kiln
