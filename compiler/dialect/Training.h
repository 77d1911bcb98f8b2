// SPDX-License-Identifier: Apache-2.0
//
// What the import records on an entry that trains (kiln/training.h), for the passes that derive its gradients and
// updates, and the results of a function that are gradients. This file alone knows the layout of the attributes:
//
//   func.func @train(%x: tensor<7x8xf32>, %learning_rate: tensor<f32>, %step: tensor<i32>)
//       -> (tensor<f32> {kiln.name = "loss"}, tensor<8x8xf32> {kiln.gradient_of = "w"})
//       attributes {kiln.training = {update = "sgd", inputs = 1 : i64, loss = "loss", parameters = [{name = "w"}]}}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kiln/graph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::kiln {

/// On an entry that computes gradients or trains: a TrainingRequest. Its passes erase the attribute.
inline constexpr llvm::StringLiteral trainingAttrName = "kiln.training";
/// On a result of such an entry: the parameter whose gradient it is.
inline constexpr llvm::StringLiteral gradientAttrName = "kiln.gradient_of";
/// On such a result that is a replica's shard of the gradient: the type of a copy of the parameter.
inline constexpr llvm::StringLiteral shardOfAttrName = "kiln.shard_of";

/// A parameter whose gradient an entry computes.
struct TrainedParameter {
  std::string name;          // "h.{}.mlp.weight"
  int64_t copies = 1;        // the number of tensors of that name
  double runningRate = 0;    // the rate of a running average, which no optimiser changes; else 0
  bool hasMoments = false;   // whether the optimiser has states for it
  bool decays = false;       // whether it has weight decay
  int64_t roles = 1;         // the number of roles of pipeline stages that have it
  bool isCountedHere = true; // whether this role, and no other, counts it for the norm of all gradients

  bool isOptimised() const { return runningRate == 0; }
  /// The number of enclosing stacks.
  unsigned layers() const { return llvm::StringRef(name).count("{}"); }
};

struct TrainingRequest {
  /// The update and its numbers. Patterns of names are left out: `parameters` has what follows from them.
  ::kiln::Training options;
  int64_t inputs = 0; // the number of inputs of the loss function, which come first
  std::string loss;   // the name of the first result
  std::vector<TrainedParameter> parameters;

  /// Returns the number of micro-batches of a call, 1 without accumulation.
  int64_t getMicroBatches() const { return std::max<int64_t>(options.micro_batches, 1); }

  /// Returns nullopt for a function without the attribute.
  static std::optional<TrainingRequest> of(func::FuncOp function);
  void write(func::FuncOp function) const;
  static void erase(func::FuncOp function) { function->removeAttr(trainingAttrName); }
};

/// Verifies the attribute of a function.
LogicalResult verifyTraining(Operation *op, Attribute attribute);

/// Returns the input of that name, or null.
Value getInput(func::FuncOp function, StringRef name);

/// Returns the inputs of the loss function.
SmallVector<BlockArgument> getLossInputs(func::FuncOp function, const TrainingRequest &request);

/// A gradient among the results of a function.
struct GradientResult {
  std::string parameter;
  Value value;
  StringAttr name = {};        // under which callers get it, if they do
  RankedTensorType whole = {}; // if it is a replica's shard: the type of a copy of the parameter

  bool isShared() const { return whole != nullptr; }
};

/// Removes the gradients from the results of a function, and returns them in the order of the request's parameters.
/// Fails after a diagnostic if there is not one for each.
FailureOr<SmallVector<GradientResult>> takeGradients(func::FuncOp function, const TrainingRequest &request);

/// Makes gradients the last results of a function.
void addGradients(func::FuncOp function, ArrayRef<GradientResult> gradients);

/// Adds a result that callers get under that name.
void addResult(func::FuncOp function, Value value, StringRef name);

} // namespace mlir::kiln
