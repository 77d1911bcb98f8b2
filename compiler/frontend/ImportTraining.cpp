// SPDX-License-Identifier: Apache-2.0
#include "compiler/frontend/ImportTraining.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/Training.h"
#include "kiln/training.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

static void addInput(func::FuncOp function, Type type, StringRef name) {
  Builder builder(function.getContext());
  auto attributes = builder.getDictionaryAttr(builder.getNamedAttr(kd::nameAttrName, builder.getStringAttr(name)));
  (void)function.insertArgument(function.getNumArguments(), RankedTensorType::get({}, type), attributes,
                                function.getLoc());
}

static kd::TrainedParameter trainedParameter(const Graph &graph, const Training &training, int number) {
  const Parameter &parameter = graph.parameters[number];
  kd::TrainedParameter trained;
  trained.name = graph.name(parameter);
  trained.copies = graph.copies(parameter.scope);
  trained.runningRate = running_rate(graph, number);
  trained.hasMoments = trained.isOptimised() && !optimizer_states(graph, training, number).empty();
  trained.decays = training.weight_decay != 0 && !detail::matches_one(training.undecayed, trained.name.c_str());
  return trained;
}

void importTraining(func::FuncOp function, const Graph &graph, const Entry &entry) {
  if (entry.training.update == Update::none)
    return;
  for (const TrainingInput &input : training_inputs(graph, entry))
    addInput(function, kd::fromElementType(input.element, function.getContext()), input.name);
  kd::TrainingRequest request;
  request.options = entry.training;
  request.options.frozen = request.options.undecayed = Names();
  request.inputs = static_cast<int64_t>(graph.regions[entry.region].arguments.size());
  request.loss = entry.output_names.empty() ? "loss" : entry.output_names.front();
  for (int number : gradient_parameters(graph, entry))
    request.parameters.push_back(trainedParameter(graph, entry.training, number));
  request.write(function);
}

} // namespace kiln
