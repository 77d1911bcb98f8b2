// SPDX-License-Identifier: Apache-2.0
//
// Adds the parameter updates after the gradients of all parameters.
#include "compiler/training/TrainEntry.h"

#include "compiler/dialect/Training.h"
#include "compiler/parallel/Replicate.h"
#include "compiler/training/Accumulate.h"
#include "compiler/training/Differentiate.h"
#include "compiler/training/Updater.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

namespace {

/// Checks that no inputs, results or parameters share a name.
LogicalResult checkNames(func::FuncOp function, ArrayRef<std::string> more) {
  llvm::StringMap<bool> known;
  auto add = [&](StringRef name) { return known.try_emplace(name).second; };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto name = function.getArgAttrOfType<StringAttr>(i, kd::nameAttrName))
      add(name);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto name = function.getResultAttrOfType<StringAttr>(i, kd::nameAttrName))
      add(name);
  for (const std::string &name : more)
    if (!add(name))
      return function.emitError() << "entry " << function.getName()
                                  << ": repeated name; expected different ones for its inputs and outputs, got " << name
                                  << " twice";
  return success();
}

void addResults(func::FuncOp function, ArrayRef<Value> values, ArrayRef<std::string> names) {
  auto end = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  const unsigned given = function.getNumResults();
  end.getOperandsMutable().append(values);
  Builder builder(function.getContext());
  function.setType(builder.getFunctionType(function.getArgumentTypes(), end.getOperandTypes()));
  for (auto [i, name] : llvm::enumerate(names))
    function.setResultAttr(given + i, kd::nameAttrName, builder.getStringAttr(name));
}

void addInput(func::FuncOp function, Type type, StringRef name) {
  Builder builder(function.getContext());
  auto attributes = builder.getDictionaryAttr(builder.getNamedAttr(kd::nameAttrName, builder.getStringAttr(name)));
  (void)function.insertArgument(function.getNumArguments(), RankedTensorType::get({}, type), attributes,
                                function.getLoc());
}

/// Adds the result of a pipeline stage that does not compute the loss. It is named like the entry's first result, and
/// is zero until shareAmongStages sums it.
void giveLoss(func::FuncOp function, const Entry &entry) {
  OpBuilder builder(function.getBody().front().getTerminator());
  kd::GradientBuilder b(builder, function.getLoc());
  addResults(function, b.zeros(RankedTensorType::get({}, builder.getF32Type())),
             {std::string(entry.output_names.front())});
}

/// Sums values over pipeline stages: gradients of parameters that several stages have, and the loss.
void shareAmongStages(func::FuncOp function, MutableArrayRef<Trained> all, const TrainedStages &stages) {
  if (!stages.areSeveral())
    return;
  Operation *end = function.getBody().front().getTerminator();
  OpBuilder builder(end);
  kd::GradientBuilder b(builder, function.getLoc());
  for (Trained &each : all)
    each.gradient = stages.addUp(b, function, each.name, each.gradient);
  end->setOperand(0, stages.addUp(b, end->getOperand(0)));
}

/// Replaces gradients by their means over the replicas, if there are any, or by a replica's shard of the mean if the
/// optimiser state is sharded.
void average(func::FuncOp function, const Entry &entry, MutableArrayRef<Trained> all, bool sharesStates) {
  const int64_t replicas = kd::getNumRanks(function, kd::Group::Replicas);
  if (replicas == 1)
    return;
  SmallVector<ReplicaGradient> gradients;
  for (Trained &each : all) {
    each.isShared = sharesStates && each.hasStates && isSharedOut(each.type, replicas);
    gradients.push_back({each.gradient, each.isShared ? std::optional(each.layers()) : std::nullopt});
  }
  if (countBatchParts(function, entry) > 0)
    averageInOrder(function, replicas, std::max<int64_t>(entry.training.micro_batches, 1), gradients);
  else
    averageOverReplicas(function, replicas, gradients);
  for (auto [each, gradient] : llvm::zip_equal(all, gradients))
    each.gradient = gradient.value;
}

} // namespace

void addTrainingInputs(func::FuncOp function, const Graph &graph, const Entry &entry) {
  for (const TrainingInput &input : training_inputs(graph, entry))
    addInput(function, kd::fromElementType(input.element, function.getContext()), input.name);
}

/// Returns the parameters whose gradients are needed. With pipeline stages, only those that the stage has.
static SmallVector<Trained> findTrained(func::FuncOp function, const Graph &graph, const Entry &entry,
                                        const TrainedStages &stages) {
  SmallVector<Trained> trained;
  llvm::StringMap<kd::ParameterOp> own = findParameters(function);
  for (int number : gradient_parameters(graph, entry)) {
    const Parameter &parameter = graph.parameters[number];
    const std::string name = graph.name(parameter);
    auto found = own.find(name);
    if (stages.areSeveral() && stages.isRead(name) && found == own.end())
      continue;
    const int64_t copies = found == own.end() ? graph.copies(parameter.scope) : found->second.getCopies();
    trained.push_back({name, copies, running_rate(graph, number), {}});
    Trained &last = trained.back();
    last.hasStates = last.isOptimised() && !optimizer_states(graph, entry.training, number).empty();
    last.isCounted = !stages.areSeveral() || stages.isCounted(function, name);
  }
  return trained;
}

/// Whether replicas add the sums in a fixed order, so that they become means later.
static bool isAveragedLater(func::FuncOp function, const Entry &entry) {
  return countBatchParts(function, entry) > 0 && kd::getNumRanks(function, kd::Group::Replicas) > 1;
}

/// Returns the gradients of a call: of one batch, or means over the micro-batches.
static FailureOr<SmallVector<Value>> computeGradients(func::FuncOp function, const Graph &graph, const Entry &entry,
                                                      ArrayRef<std::string> parameters, const TrainedStages &stages) {
  kd::DifferentiationOptions options{entry.training.recomputes, {}};
  if (entry.training.activations != ElementType::f32)
    options.keptAs = kd::fromElementType(entry.training.activations, function.getContext());
  FailureOr<SmallVector<Value>> gradients = kd::differentiate(function, parameters, options);
  if (failed(gradients))
    return failure();
  const int microBatches = entry.training.micro_batches;
  if (stages.isLast(function)) {
    const double mean = isAveragedLater(function, entry) ? 1 : 1.0 / std::max(microBatches, 1);
    if (microBatches > 0)
      accumulate(function, graph, entry, std::max<int64_t>(countBatchParts(function, entry), 1), mean, *gradients);
    return gradients;
  }
  if (microBatches > 0)
    accumulateApart(function, graph, entry, stages.mostAhead(function), *gradients);
  giveLoss(function, entry);
  return gradients;
}

LogicalResult deriveTraining(func::FuncOp function, const Graph &graph, const Entry &entry, bool sharesStates,
                             const TrainedStages &stages) {
  SmallVector<Trained> trained = findTrained(function, graph, entry, stages);
  std::vector<std::string> parameters, names;
  for (const Trained &each : trained) {
    parameters.push_back(each.name);
    names.push_back(gradient_name(each.name));
  }
  if (entry.training.update != Update::give)
    names = {"grad_norm"};
  if (failed(checkNames(function, names)))
    return failure();
  FailureOr<SmallVector<Value>> gradients = computeGradients(function, graph, entry, parameters, stages);
  if (failed(gradients))
    return failure();
  for (auto [each, gradient] : llvm::zip_equal(trained, *gradients)) {
    RankedTensorType type = kd::rankedType(gradient);
    each.gradient = gradient;
    each.type = RankedTensorType::get(type.getShape().drop_front(each.layers()), type.getElementType());
  }
  average(function, entry, trained, sharesStates);
  shareAmongStages(function, trained, stages);
  if (entry.training.update == Update::give) {
    addResults(function, llvm::map_to_vector(trained, [](const Trained &each) { return each.gradient; }), names);
    return success();
  }
  OpBuilder builder(function.getContext());
  Operation *end = function.getBody().front().getTerminator();
  builder.setInsertionPoint(end);
  Updater updater(builder, entry.training, stages, function.getLoc());
  Value loss = end->getOperand(0), norm;
  if (entry.training.clip > 0) {
    norm = updater.clip(trained);
    addResults(function, norm, {"grad_norm"});
  }
  updater.prepare(kd::getInput(function, "learning_rate"), kd::getInput(function, "step"));
  kd::RequireFiniteOp::create(builder, function.getLoc(), updater.size(trained, loss, norm));
  updater.update(trained);
  return success();
}

} // namespace kiln
