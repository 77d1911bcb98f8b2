// SPDX-License-Identifier: Apache-2.0
//
// Runs the entries of a module at any stage of the pipeline: entries of kiln ops, entries of calls whose kernels hold
// kiln ops, and entries whose kernels are linalg. Results of kiln ops are f64 with bounds (compiler/interpreter), those
// of linalg are one f32 computation without bounds. A layout is an encoding only: values are logical everywhere. Of a
// weight that is stored in fewer bits they are those that the stored numbers stand for, at every stage alike.
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

/// A weight: by the name as the parameter has it ("h.{}.bias"), and that of the layer ("h.3.bias").
using WeightSource = std::function<SharedTensor(const std::string &pattern, const std::string &name)>;

/// Of each call of a kernel, before it: its extents and arguments.
using CallObserver =
    std::function<void(mlir::func::FuncOp kernel, llvm::ArrayRef<std::int64_t>, llvm::ArrayRef<SharedTensor>)>;

class ModuleInterpreter {
public:
  explicit ModuleInterpreter(WeightSource weights, CallObserver observer = nullptr)
      : weights(std::move(weights)), observer(std::move(observer)) {}

  /// States by name ("h.0.keys"): zeros at first, kept between calls.
  std::map<std::string, SharedTensor> states;
  /// Weights that were written, by name; they stand for those of the source.
  std::map<std::string, SharedTensor> written;

  /// Weights that are derived of others, by name; computed when the first of them is read.
  std::map<std::string, SharedTensor> derived;

  /// What each constant counts as, and each weight as it is stored; itself if null.
  std::function<Tensor(const Tensor &)> given;

  /// The results of an entry or a kernel, behind them what it sends; `extents` are its index arguments. Throws
  /// std::runtime_error where the module states other extents than values have, or an op is used that no stage has.
  std::vector<SharedTensor> run(mlir::func::FuncOp function, llvm::ArrayRef<std::int64_t> extents,
                                llvm::ArrayRef<SharedTensor> arguments);

private:
  class Frame;

  WeightSource weights;
  CallObserver observer;
};

} // namespace kiln::verify
