// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/VerifyPasses.h"

#include <fmt/format.h>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/interpreter/Interpreter.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/verify/Difference.h"
#include "compiler/verify/PassVerifier.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace kiln {

/// Whether a name is one of a parameter's, in whose pattern "{}" stands for the number of a layer.
static bool fits(const Graph &graph, const Parameter &parameter, StringRef name) {
  const std::string written = graph.name(parameter);
  if (has_number_parts(written))
    return llvm::is_contained(names_in_layers(written, graph.layers(parameter.scope)), name);
  StringRef pattern = written;
  while (true) {
    auto [literal, rest] = pattern.split("{}");
    if (!name.consume_front(literal))
      return false;
    if (literal.size() == pattern.size())
      return name.empty();
    const StringRef number = name.take_while(llvm::isDigit);
    name = name.drop_front(number.size());
    pattern = rest;
    if (number.empty())
      return false;
  }
}

/// Returns the weights of the graph's parameters by their names for a layer.
static interpreter::Interpreter::WeightSource weightsOf(const Graph &graph, verify::PassVerifier &verifier) {
  return [&graph, &verifier](const std::string &name) -> interpreter::Tensor {
    for (const Parameter &parameter : graph.parameters)
      if (fits(graph, parameter, name))
        return *verifier.weight(graph.name(parameter), name);
    throw std::runtime_error("graph: unknown parameter; expected one of the graph, got " + name);
  };
}

/// Returns the output dimensions of the weights that are stored as int8, by name.
static llvm::StringMap<int64_t> int8Weights(ModuleOp module) {
  llvm::StringMap<int64_t> dims;
  module.walk([&](mlir::kiln::ParameterOp parameter) {
    if (auto storage = parameter.getStorageAttr(); storage && storage.getElement().isInteger(8))
      for (StringRef source : parameter.getSources().getAsValueRange<StringAttr>())
        dims[source] = storage.getDim();
  });
  return dims;
}

/// Compares the imported module with the interpreter of graphs. `int8`: weights that are multiplied by rows of int8.
static std::string verifyImport(const Graph &graph, verify::PassVerifier &verifier,
                                const llvm::StringMap<int64_t> &int8) {
  std::size_t undetermined = 0;
  const verify::RandomCalls &calls = verifier.calls();
  for (std::size_t session = 0; session < calls.sessions.size(); ++session) {
    interpreter::Interpreter reference(graph, weightsOf(graph, verifier));
    reference.takesInt8 = [&](const std::string &name, int dim) {
      return llvm::any_of(graph.parameters, [&](const Parameter &parameter) {
        const auto found = int8.find(graph.name(parameter));
        return found != int8.end() && found->second == dim && fits(graph, parameter, name);
      });
    };
    for (std::size_t number = 0; number < calls.sessions[session].size(); ++number) {
      const verify::EntryCall &call = calls.sessions[session][number];
      const std::size_t entry = number % graph.entries.size();
      interpreter::Extents extents;
      for (auto [name, value] : llvm::zip_equal(calls.symbols, call.extents))
        extents[name] = value;
      std::vector<interpreter::Tensor> inputs;
      for (const verify::SharedTensor &input : call.inputs)
        inputs.push_back(*input);
      const std::vector<interpreter::Tensor> wanted = reference.run(entry, extents, inputs);
      const std::vector<verify::SharedTensor> &got = verifier.expected()[session][number];
      for (std::size_t i = 0; i < wanted.size(); ++i)
        if (auto difference = verify::findDifference(wanted[i], *got[i], undetermined)) {
          const auto &names = graph.entries[entry].output_names;
          return fmt::format("the import changed \"{}\" of {}: {}{}", i < names.size() ? names[i] : std::to_string(i),
                             call.entry, *difference, call.words.empty() ? "" : " (" + call.words + ")");
        }
    }
  }
  return "";
}

std::string verifyPasses(const Graph &graph, const Target &target, std::uint64_t seed,
                         const VerifyPassesOptions &options) {
  DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && said.empty())
      said = diagnostic.str();
    return success();
  });
  // The graph's interpreter has no module before rows are quantised.
  const bool startsLater = options.weights.quantizesRows;
  OwningOpRef<ModuleOp> module =
      startsLater ? importModel(graph, &context, "model", options.weights) : importGraph(graph, &context, "model");
  if (!module)
    return "the import refused the graph: " + said;
  verify::PassVerifier verifier(*module, {.seed = seed, .mostOperations = options.mostOperations});
  if (!verifier.difference().empty())
    return verifier.difference();
  try {
    const llvm::StringMap<int64_t> int8 =
        options.weights.quantizesRows ? int8Weights(*module) : llvm::StringMap<int64_t>();
    if (std::string difference = verifyImport(graph, verifier, int8); !difference.empty())
      return difference;
  } catch (const std::exception &error) {
    return std::string("the graph cannot be evaluated: ") + error.what();
  }
  PassManager passes(&context);
  verifier.attach(passes);
  mlir::kiln::PipelineOptions pipeline;
  pipeline.target = target.hooks();
  if (startsLater) {
    buildLowering(passes, *module, pipeline);
  } else {
    pipeline.weights = options.weights;
    mlir::kiln::buildPipeline(passes, pipeline);
  }
  const bool isLowered = succeeded(passes.run(*module));
  if (!verifier.difference().empty() || isLowered)
    return verifier.difference();
  return verifier.failedPass() + " failed: " + said;
}

} // namespace kiln
