// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/CustomFunctions.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/library/CText.h"
#include "compiler/library/Names.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

std::string customSymbol(const std::string &model, const std::string &function) {
  return model + "_custom_" + function;
}

/// Returns the interface of a function; operands and results are numbered.
static CustomInterface describe(const char *name, const std::vector<TensorType> &operands,
                                const std::vector<TensorType> &results, const Dim &workspace) {
  CustomInterface function{name, {}, {}, workspace};
  auto addSymbols = [&](const Dim &dim) {
    for (const Symbol &symbol : dim.symbols)
      if (symbol.present() && !llvm::is_contained(function.symbols, symbol))
        function.symbols.push_back(symbol);
  };
  auto add = [&](const std::vector<TensorType> &tensors, const char *stem, bool isOutput) {
    for (auto [i, tensor] : llvm::enumerate(tensors)) {
      llvm::for_each(tensor.shape, addSymbols);
      function.arguments.push_back(
          {tensors.size() == 1 ? stem : stem + std::to_string(i), tensor.element, tensor.shape, isOutput, {}});
    }
  };
  add(operands, "input", false);
  add(results, "output", true);
  return function;
}

/// Returns the function that computes the gradients of the floating-point operands from the operands and the gradients
/// of the floating-point results, as kiln.custom differentiates.
static CustomInterface describeDerivative(const CustomFunction &function) {
  auto isFloat = [](const TensorType &tensor) { return floating(tensor.element); };
  std::vector<TensorType> operands = function.operands, results;
  llvm::copy_if(function.results, std::back_inserter(operands), isFloat);
  llvm::copy_if(function.operands, std::back_inserter(results), isFloat);
  return describe(function.derivative, operands, results, function.workspace);
}

static bool haveSameSignature(const CustomInterface &a, const CustomInterface &b) {
  return a.workspace == b.workspace &&
         llvm::equal(a.arguments, b.arguments, [](const ArgumentInterface &x, const ArgumentInterface &y) {
           return x.element == y.element && x.shape == y.shape && x.isOutput == y.isOutput;
         });
}

std::string describeCustomFunctions(const Graph &graph, ModelInterface &model) {
  std::vector<CustomInterface> all;
  for (const CustomFunction &function : graph.functions) {
    all.push_back(describe(function.name, function.operands, function.results, function.workspace));
    if (function.has_derivative())
      all.push_back(describeDerivative(function));
  }
  for (CustomInterface &function : all) {
    auto known =
        llvm::find_if(model.functions, [&](const CustomInterface &other) { return other.name == function.name; });
    if (known == model.functions.end())
      model.functions.push_back(std::move(function));
    else if (!haveSameSignature(*known, function))
      return fmt::format(
          "custom: function \"{0}\" has two signatures; expected that of the derivative of another one to "
          "be the operands and the gradients of results, then the gradients of operands",
          function.name);
  }
  llvm::sort(model.functions, [](const CustomInterface &a, const CustomInterface &b) { return a.name < b.name; });
  return "";
}

void markCalledFunctions(mlir::ModuleOp module, ModelInterface &model) {
  module.walk([&](mlir::kiln::CustomOp custom) {
    for (CustomInterface &function : model.functions)
      function.isCalled |= custom.getFunction() == function.name;
  });
}

static std::string customPrototype(const ModelInterface &model, const CustomInterface &function) {
  // The names of parameters follow the rules of entries.
  EntryInterface entry;
  entry.symbols = function.symbols;
  entry.arguments = function.arguments;
  entry.arguments.push_back({"workspace", ElementType::i8, {function.workspace}, false, {}});
  const ParameterNames names(model, entry);
  std::string text = fmt::format(
      "/* The program defines this function, the custom function \"{}\" of the model. A call of an entry\n"
      " * calls it in its own thread; calls of several threads call it at the same time. It reads its inputs\n"
      " * and writes every element of its outputs, and has no other effect. All tensors are dense and row\n"
      " * major; outputs overlap nothing.\n",
      function.name);
  std::vector<std::string> parameters;
  for (const Symbol &symbol : function.symbols) {
    text += fmt::format(" *   {}: extent, {} .. {}\n", names.extent(symbol), symbol.min, symbol.max);
    parameters.push_back("int64_t " + names.extent(symbol));
  }
  for (auto [i, argument] : llvm::enumerate(function.arguments)) {
    text +=
        fmt::format(" *   {}: {} {}\n", names.argument(i), name_of(argument.element), shapeText(argument.shape, names));
    parameters.push_back(
        fmt::format("{}{} *{}", argument.isOutput ? "" : "const ", info(argument.element).c_type, names.argument(i)));
  }
  if (function.workspace != Dim(0)) {
    const std::string &workspace = names.argument(function.arguments.size());
    text += fmt::format(" *   {}: {} bytes, aligned to KILN_ARENA_ALIGNMENT, undefined before and after\n", workspace,
                        names.expression(function.workspace));
    parameters.push_back("void *" + workspace);
  }
  return text + fmt::format(" */\nvoid {}({});\n\n", customSymbol(model.name, function.name),
                            fmt::join(parameters, ",\n    "));
}

std::string customPrototypes(const ModelInterface &model) {
  std::string text;
  for (const CustomInterface &function : model.functions)
    if (function.isCalled)
      text += customPrototype(model, function);
  return text;
}

} // namespace kiln
