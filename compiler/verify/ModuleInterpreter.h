// SPDX-License-Identifier: Apache-2.0
//
// Runs the entries of a module at any stage of the pipeline: entries of kiln ops, entries of calls whose kernels hold
// kiln ops, and entries whose kernels are linalg. Results of kiln ops are f64 with error bounds (compiler/interpreter),
// those of linalg are an f32 computation without bounds. A layout is only an encoding: values are logical everywhere. A
// quantised weight has the values that its stored numbers represent, at every stage.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "compiler/interpreter/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln::verify {

using interpreter::Tensor;
using interpreter::TensorShape;
using SharedTensor = std::shared_ptr<const Tensor>;

/// Returns a weight, by the parameter's name ("h.{}.bias") and by the name for the layer ("h.3.bias").
using WeightSource = std::function<SharedTensor(const std::string &pattern, const std::string &name)>;

/// Called before each call of a kernel, with its extents and arguments.
using CallObserver =
    std::function<void(mlir::func::FuncOp kernel, llvm::ArrayRef<std::int64_t>, llvm::ArrayRef<SharedTensor>)>;

class ModuleInterpreter {
public:
  explicit ModuleInterpreter(WeightSource weights, CallObserver observer = nullptr)
      : weights(std::move(weights)), observer(std::move(observer)) {}

  /// States by name ("h.0.keys"): initially zero, kept between calls.
  std::map<std::string, SharedTensor> states;
  /// Weights that were written, by name; they override those of the source.
  std::map<std::string, SharedTensor> written;

  /// Weights that are derived from others, by name; computed when the first of them is read.
  std::map<std::string, SharedTensor> derived;

  /// Maps each constant, and each weight as it is stored, to the value that is used instead; null: the same value.
  std::function<Tensor(const Tensor &)> given;

  /// Changes the integers of rows that were quantised to int8; null: does nothing.
  std::function<void(Tensor &)> quantized;

  /// Returns the results of an entry or a kernel, followed by what it sends; `extents` are its index arguments. Throws
  /// std::runtime_error if the module states extents other than those of the values, or for an op that no stage has.
  std::vector<SharedTensor> run(mlir::func::FuncOp function, llvm::ArrayRef<std::int64_t> extents,
                                llvm::ArrayRef<SharedTensor> arguments);

private:
  class Frame;

  WeightSource weights;
  CallObserver observer;
};

} // namespace kiln::verify
