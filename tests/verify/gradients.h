// SPDX-License-Identifier: Apache-2.0
//
// Gradients of an imported entry: those of the sum of squares of its outputs.
#pragma once

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/training/Differentiate.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "tests/verify/parameter_names.h"
#include "llvm/ADT/MapVector.h"

namespace kiln::testing {

namespace kd = mlir::kiln;

inline bool isFloat(mlir::Value value) { return llvm::isa<mlir::FloatType>(kd::rankedType(value).getElementType()); }

/// Prepends a result: the sum of squares of the float outputs, at most `most` of them. Returns false if there are none.
inline bool addLoss(mlir::func::FuncOp function, unsigned most) {
  mlir::Operation *end = function.getBody().front().getTerminator();
  mlir::OpBuilder builder(end);
  kd::GradientBuilder b(builder, function.getLoc());
  mlir::Value loss;
  for (mlir::Value output : llvm::to_vector(end->getOperands().take_front(std::min(most, end->getNumOperands())))) {
    if (!isFloat(output))
      continue;
    auto type = kd::getTensorType(kd::getExtents(kd::rankedType(output)), builder.getF32Type(),
                                  kd::getNumSymbols(output.getType()));
    mlir::Value y = output.getType() == type ? output : b.createAs<kd::CastOp>(type, output);
    mlir::Value sum = b.sumTo(b.mul(y, y), mlir::RankedTensorType::get({}, builder.getF32Type()));
    loss = loss ? b.add(loss, sum) : sum;
  }
  if (loss)
    end->insertOperands(0, loss);
  return static_cast<bool>(loss);
}

/// Returns all float parameters that it reads: name and number of copies.
inline llvm::MapVector<llvm::StringRef, std::int64_t> parametersOf(mlir::func::FuncOp function) {
  llvm::MapVector<llvm::StringRef, std::int64_t> parameters;
  function.walk([&](kd::ParameterOp parameter) {
    if (isFloat(parameter))
      parameters[llvm::cast<mlir::StringAttr>(parameter.getSources()[0]).getValue()] = parameter.getCopies();
  });
  return parameters;
}

inline std::string nameOf(const std::string &pattern, std::int64_t copy, const Graph &graph) {
  for (const Parameter &parameter : graph.parameters)
    if (graph.name(parameter) == pattern)
      return nameOf(graph, parameter, copy);
  return pattern;
}

/// Adds the loss as the entry's first result and the gradients by these parameters as its last ones. Returns false if
/// it has no float outputs, or after a diagnostic.
inline bool addGradients(mlir::func::FuncOp function, const llvm::MapVector<llvm::StringRef, std::int64_t> &parameters,
                         unsigned most = ~0u) {
  if (!addLoss(function, most))
    return false;
  std::vector<std::string> names;
  for (auto [name, copies] : parameters)
    names.push_back(name.str());
  auto gradients = kd::differentiate(function, names);
  if (failed(gradients))
    return false;
  mlir::Operation *end = function.getBody().front().getTerminator();
  end->insertOperands(end->getNumOperands(), *gradients);
  function.setType(
      mlir::Builder(function.getContext()).getFunctionType(function.getArgumentTypes(), end->getOperandTypes()));
  return succeeded(mlir::verify(function));
}

} // namespace kiln::testing
