// SPDX-License-Identifier: Apache-2.0
//
// What an optimiser does with the parameters of an entry that trains (kiln/training.h).
#pragma once

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/frontend/TrainStage.h"
#include "kiln/training.h"

namespace kiln {

/// A parameter and the gradient by it, of the copies that the loops around have not taken apart.
struct Trained {
  std::string name;
  int64_t copies;
  double runningRate; // of a running average, which no optimiser changes; else 0
  mlir::Value gradient;
  bool hasStates = false;           // the optimiser keeps something of it
  mlir::RankedTensorType type = {}; // of a copy
  bool isShared = false;            // the gradient and what is kept are a replica's part of it
  bool isCounted = true;            // for the norm, here and on no other stage

  bool isOptimised() const { return runningRate == 0; }
  unsigned layers() const { return llvm::StringRef(name).count("{}"); }
};

/// Builds the updates of an entry's parameters; those of a stack's in a loop over its layers.
class Updater {
public:
  Updater(mlir::OpBuilder &builder, const Training &training, const TrainedStages &stages, mlir::Location loc)
      : builder(builder), training(training), stages(stages), loc(loc), b(builder, loc) {}

  /// Makes the gradients smaller where they are too large together; their norm.
  mlir::Value clip(llvm::MutableArrayRef<Trained> all);
  /// After prepare(): the largest magnitude in the step, NaN if anything in it is, of the loss, what was prepared, and
  /// all gradients, but those that a norm represents. Where several processes have gradients of their own it is finite
  /// on all of them or on none.
  mlir::Value size(llvm::ArrayRef<Trained> all, mlir::Value loss, mlir::Value norm);
  /// What all updates need of the learning rate and the number of the step.
  void prepare(mlir::Value rate, mlir::Value step);
  void update(llvm::ArrayRef<Trained> all);

private:
  /// What becomes of one, which may be null.
  using Work = llvm::function_ref<mlir::Value(const Trained &)>;
  /// Does it for each; those of a stack in a loop over its layers, where `gradient` is one of what it was. The results
  /// are stacked. `depth`: how many stacks there are around, whose places in the names come first.
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
  bool decays(const Trained &each) const {
    return training.weight_decay != 0 && !detail::matches_one(training.undecayed, each.name.c_str());
  }
  /// x in part, y for the rest.
  mlir::Value mix(double part, mlir::Value x, mlir::Value y) { return b.add(b.scale(x, part), b.scale(y, 1 - part)); }

  mlir::OpBuilder &builder;
  const Training &training;
  const TrainedStages &stages;
  mlir::Location loc;
  mlir::kiln::GradientBuilder b;
  mlir::Value rate, meanRate, squareScale, isFirst; // numbers
};

} // namespace kiln
