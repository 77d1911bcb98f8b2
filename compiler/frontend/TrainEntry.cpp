// SPDX-License-Identifier: Apache-2.0
//
// Behind the gradients of all parameters stand their updates; those of a stack's parameters in a loop over its layers.
//
// Of a parameter that replicas share out each updates its part:
//
//   %nexts = kiln.scan () over (%g = %own) layers {
//     %w = kiln.gather (kiln.reshape (kiln.parameter) to [replicas, n]) (kiln.rank over replicas)
//     ...                                                  states have n elements
//     kiln.yield (kiln.all_gather %next over replicas)
//   }
//   kiln.scan () over (%next = %nexts) layers { kiln.assign (kiln.reshape %next) to (kiln.parameter) }
//
// No weight is changed before all are gathered, since a replica may be lost till then.
#include "compiler/frontend/TrainEntry.h"

#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/frontend/Accumulate.h"
#include "compiler/frontend/Replicate.h"
#include "compiler/transforms/Differentiate.h"
#include "compiler/transforms/SumParts.h"
#include "kiln/training.h"
#include "llvm/ADT/MapVector.h"
#include <cmath>

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

namespace {

/// A parameter and the gradient by it, of the copies that the loops around have not taken apart.
struct Trained {
  std::string name;
  int64_t copies;
  double runningRate; // of a running average, which no optimiser changes; else 0
  Value gradient;
  bool hasStates = false;     // the optimiser keeps something of it
  RankedTensorType type = {}; // of a copy
  bool isShared = false;      // the gradient and what is kept are a replica's part of it
  bool isCounted = true;      // for the norm, here and on no other stage

  bool isOptimised() const { return runningRate == 0; }
  unsigned layers() const { return StringRef(name).count("{}"); }
};

class Updater {
public:
  Updater(OpBuilder &builder, const Training &training, const TrainedStages &stages, Location loc)
      : builder(builder), training(training), stages(stages), loc(loc), b(builder, loc) {}

  /// Makes the gradients smaller where they are too large together; their norm.
  Value clip(MutableArrayRef<Trained> all);
  /// What all updates need of the learning rate and the number of the step.
  void prepare(Value rate, Value step);
  void update(ArrayRef<Trained> all);

private:
  /// What becomes of one, which may be null.
  using Work = llvm::function_ref<Value(const Trained &)>;
  /// Does it for each; those of a stack in a loop over its layers, where `gradient` is one of what it was. The results
  /// are stacked. `depth`: how many stacks there are around, whose places in the names come first.
  SmallVector<Value> doForEach(ArrayRef<Trained> all, Work work, unsigned depth = 0);
  SmallVector<Value> doForLayers(ArrayRef<Trained> layers, Work work, unsigned depth);
  Value parameter(const Trained &each) {
    return kd::ParameterOp::create(builder, loc, each.type, StringRef(each.name), each.copies, true);
  }
  Value next(const Trained &each, Value weight);
  Value gatherNext(const Trained &each);
  Value state(const char *moment, const Trained &each, RankedTensorType type);
  void store(const char *moment, const Trained &each, Value value);
  Value withDecay(const Trained &each, Value weight);
  Value descend(const Trained &each, Value weight);
  Value descendByMoments(const Trained &each, Value weight);
  void updateAverage(const Trained &each, Value next);
  bool decays(const Trained &each) const {
    return training.weight_decay != 0 && !detail::matches_one(training.undecayed, each.name.c_str());
  }
  /// x in part, y for the rest.
  Value mix(double part, Value x, Value y) { return b.add(b.scale(x, part), b.scale(y, 1 - part)); }

  OpBuilder &builder;
  const Training &training;
  const TrainedStages &stages;
  Location loc;
  kd::GradientBuilder b;
  Value rate, meanRate, squareScale, isFirst; // numbers
};

/// sum(x^2)
Value squares(kd::GradientBuilder &b, Value x) {
  return b.sumTo(b.mul(x, x), RankedTensorType::get({}, kd::rankedType(x).getElementType()));
}

Value Updater::clip(MutableArrayRef<Trained> all) {
  auto isOptimised = [](const Trained &each) { return each.isOptimised(); };
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto shards = module->getAttrOfType<DictionaryAttr>(kd::shardsAttrName);
  Value sums[2][2]; // of what this rank alone has, of what this replica alone has
  auto add = [&](Value &to, Value value) { to = to ? b.add(to, value) : value; };
  const std::optional<kd::RankParts> parts = kd::RankParts::of(module);
  SmallVector<Value> ofParts;
  for (const Trained &each : llvm::make_filter_range(all, isOptimised)) {
    auto shard = shards ? shards.getAs<kd::ShardAttr>(each.name) : kd::ShardAttr();
    if (!each.isCounted)
      continue;
    if (!shard || !parts) {
      add(sums[bool(shard)][each.isShared], squares(b, each.gradient));
      continue;
    }
    const auto own = parts->squares(b, each.gradient, each.layers() + shard.getDim(), shard);
    ofParts.resize(own.size());
    for (auto [sum, square] : llvm::zip_equal(ofParts, own))
      add(sum, square);
  }
  for (auto &[sum, ofReplica] : sums)
    if (ofReplica)
      add(sum, b.create<kd::AllReduceOp>(ofReplica, kd::Group::Replicas));
  Value sum = sums[false][false];
  if (Value ofRank = sums[true][false])
    add(sum, b.create<kd::AllReduceOp>(ofRank));
  if (!ofParts.empty())
    add(sum, parts->add(b, ofParts));
  if (!sum) // a stage all of whose parameters are frozen
    sum = b.zeros(RankedTensorType::get({}, builder.getF32Type()));
  Value norm = b.create<kd::SqrtOp>(stages.addUp(b, sum));
  Value factor = b.create<kd::MinimumOp>(b.number(norm, 1),
                                         b.div(b.number(norm, training.clip), b.add(norm, b.number(norm, 1e-6))));
  for (Trained &each : llvm::make_filter_range(all, isOptimised))
    each.gradient = b.mul(each.gradient, factor);
  return norm;
}

/// With Adam the means of t steps are too small by 1 - beta^t = 1 - e^-x, which is 2 t / (1 + t) for t = tanh(x / 2)
/// and so keeps its digits where x is small.
void Updater::prepare(Value learningRate, Value step) {
  rate = learningRate;
  Value steps = b.createAs<kd::CastOp>(rate.getType(), step);
  isFirst = b.create<kd::LessEqualOp>(steps, b.number(rate, 1));
  if (training.update == Update::sgd)
    return;
  auto missing = [&](double beta) -> Value {
    if (beta == 0)
      return b.number(rate, 1);
    Value tanh = b.create<kd::TanhOp>(b.scale(steps, -std::log(beta) / 2));
    return b.div(b.scale(tanh, 2), b.add(tanh, b.number(rate, 1)));
  };
  meanRate = b.div(rate, missing(training.beta1));
  squareScale = b.div(b.number(rate, 1), b.create<kd::SqrtOp>(missing(training.beta2)));
}

/// A state has an axis at least.
RankedTensorType stateType(RankedTensorType type) {
  return type.getRank() > 0 ? type : RankedTensorType::get({1}, type.getElementType());
}

Value Updater::state(const char *moment, const Trained &each, RankedTensorType type) {
  RankedTensorType kept = stateType(type);
  Value value =
      kd::StateOp::create(builder, loc, kept, moment_name(moment, each.name), each.copies, kept.getDimSize(0));
  return b.reshape(value, kd::getExtents(type));
}

void Updater::store(const char *moment, const Trained &each, Value value) {
  RankedTensorType kept = stateType(kd::rankedType(value));
  kd::StoreOp::create(builder, loc, b.reshape(value, kd::getExtents(kept)), moment_name(moment, each.name), each.copies,
                      kept.getDimSize(0));
}

/// The gradient with weight decay added, where that is not decoupled.
Value Updater::withDecay(const Trained &each, Value weight) {
  return decays(each) && training.update != Update::adamw ? b.add(each.gradient, b.scale(weight, training.weight_decay))
                                                          : each.gradient;
}

Value Updater::descend(const Trained &each, Value weight) {
  Value g = withDecay(each, weight);
  if (training.momentum != 0) {
    g = b.add(b.scale(state("momentum", each, kd::rankedType(weight)), training.momentum), g);
    store("momentum", each, g);
  }
  return b.sub(weight, b.mul(g, rate));
}

Value Updater::descendByMoments(const Trained &each, Value weight) {
  RankedTensorType type = kd::rankedType(weight);
  Value g = withDecay(each, weight);
  Value mean = mix(training.beta1, state("mean", each, type), g);
  Value square = mix(training.beta2, state("square", each, type), b.mul(g, g));
  Value size = b.add(b.mul(b.create<kd::SqrtOp>(square), squareScale), b.number(weight, training.epsilon));
  if (decays(each) && training.update == Update::adamw)
    weight = b.sub(weight, b.mul(weight, b.scale(rate, training.weight_decay)));
  Value next = b.sub(weight, b.div(b.mul(mean, meanRate), size));
  store("mean", each, mean);
  store("square", each, square);
  return next;
}

/// It begins with what the first step gives.
void Updater::updateAverage(const Trained &each, Value next) {
  Value before = state("average", each, kd::rankedType(next));
  store("average", each, b.where(isFirst, next, mix(training.average, before, next)));
}

/// The weight behind the step, with all that is kept of it stored.
Value Updater::next(const Trained &each, Value weight) {
  Value next = !each.isOptimised()              ? b.sub(weight, b.scale(each.gradient, each.runningRate))
               : training.update == Update::sgd ? descend(each, weight)
                                                : descendByMoments(each, weight);
  if (training.average != 0)
    updateAverage(each, next);
  return next;
}

/// The replica's part of it, and those of all others.
Value Updater::gatherNext(const Trained &each) {
  const int64_t part = kd::rankedType(each.gradient).getNumElements(), replicas = each.type.getNumElements() / part;
  SmallVector<AffineExpr> extents{builder.getAffineConstantExpr(replicas), builder.getAffineConstantExpr(part)};
  Value own = next(each, partOfReplica(b, b.reshape(parameter(each), extents), 0));
  return b.createAs<kd::AllGatherOp>(b.typeOf(extents, own), own, kd::Group::Replicas);
}

SmallVector<Value> Updater::doForLayers(ArrayRef<Trained> layers, Work work, unsigned depth) {
  auto gradients = llvm::map_to_vector(layers, [](const Trained &each) { return each.gradient; });
  auto create = [&](TypeRange stacked) {
    return kd::ScanOp::create(builder, loc, ValueRange(), gradients, stacked, /*reverse=*/false, /*layers=*/true);
  };
  auto loop = create({});
  SmallVector<Trained> inside(layers);
  for (auto [each, slice] : llvm::zip_equal(inside, loop.getBody().getArguments()))
    each.gradient = slice;
  SmallVector<Value> made;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&loop.getBody().front());
    made = doForEach(inside, work, depth + 1);
    kd::YieldOp::create(builder, loc, made);
  }
  if (made.empty())
    return made;
  SmallVector<Type> stacked;
  for (Value value : made) {
    SmallVector<AffineExpr> extents = kd::getExtents(kd::rankedType(value));
    extents.insert(extents.begin(), cast<kd::LoopInterface>(loop.getOperation()).getTripCount());
    stacked.push_back(b.typeOf(extents, value));
  }
  auto stacking = create(stacked); // now that it is known what
  stacking.getBody().takeBody(loop.getBody());
  loop.erase();
  return SmallVector<Value>(stacking.getStacked());
}

SmallVector<Value> Updater::doForEach(ArrayRef<Trained> all, Work work, unsigned depth) {
  SmallVector<Value> made(all.size());
  llvm::MapVector<StringRef, SmallVector<unsigned>> stacks; // by the name up to the layer's number
  for (auto [i, each] : llvm::enumerate(all)) {
    size_t end = 0;
    for (unsigned level = 0; level <= depth && end != std::string::npos; ++level)
      end = each.name.find("{}", level == 0 ? 0 : end + 1);
    if (end == std::string::npos)
      made[i] = work(each);
    else
      stacks[StringRef(each.name).take_front(end)].push_back(i);
  }
  for (auto &[prefix, numbers] : stacks) {
    auto layers = llvm::map_to_vector(numbers, [&](unsigned i) { return all[i]; });
    for (auto [i, value] : llvm::zip(numbers, doForLayers(layers, work, depth)))
      made[i] = value;
  }
  llvm::erase(made, Value());
  return made;
}

void Updater::update(ArrayRef<Trained> all) {
  SmallVector<Trained> shared, whole;
  for (const Trained &each : all)
    (each.isShared ? shared : whole).push_back(each);
  SmallVector<Value> gathered = doForEach(shared, [&](const Trained &each) { return gatherNext(each); });
  for (auto [each, value] : llvm::zip_equal(shared, gathered))
    each.gradient = value;
  (void)doForEach(shared, [&](const Trained &each) {
    kd::AssignOp::create(builder, loc, b.reshape(each.gradient, kd::getExtents(each.type)), parameter(each));
    return Value();
  });
  (void)doForEach(whole, [&](const Trained &each) {
    Value weight = parameter(each);
    kd::AssignOp::create(builder, loc, next(each, weight), weight);
    return Value();
  });
}

/// Names that inputs and results have already, or that two parameters would share.
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
                                  << " requires different names for its inputs and outputs, got " << name << " twice";
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

/// A stage without a loss has the name of its first result alone, for which it stands.
void giveLoss(func::FuncOp function, const Entry &entry) {
  OpBuilder builder(function.getBody().front().getTerminator());
  kd::GradientBuilder b(builder, function.getLoc());
  addResults(function, b.zeros(RankedTensorType::get({}, builder.getF32Type())),
             {std::string(entry.output_names.front())});
}

/// What stages have together: gradients of what several of them have, and the loss.
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

/// Gradients become means over the replicas, if there are any; of what these share out a replica's part of them.
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

Value inputNamed(func::FuncOp function, StringRef name) {
  for (BlockArgument argument : llvm::reverse(function.getArguments()))
    if (auto own = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kd::nameAttrName); own && own == name)
      return argument;
  return {};
}

void addTrainingInputs(func::FuncOp function, const Graph &graph, const Entry &entry) {
  for (const TrainingInput &input : training_inputs(graph, entry))
    addInput(function, kd::fromElementType(input.element, function.getContext()), input.name);
}

/// The parameters whose gradients are wanted, which a stage of several has.
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
    last.hasStates = last.isOptimised() && !kept_moments(graph, entry.training, number).empty();
    last.isCounted = !stages.areSeveral() || stages.isCounted(function, name);
  }
  return trained;
}

/// Sums that are not yet means: those that replicas add in a fixed order.
static bool isAveragedLater(func::FuncOp function, const Entry &entry) {
  return countBatchParts(function, entry) > 0 && kd::getNumRanks(function, kd::Group::Replicas) > 1;
}

/// Of a call: of one batch, or means over the micro-batches.
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
  Value size = end->getOperand(0); // that has to be finite
  if (entry.training.clip > 0) {
    size = updater.clip(trained);
    addResults(function, size, {"grad_norm"});
  }
  kd::RequireFiniteOp::create(builder, function.getLoc(), size);
  updater.prepare(inputNamed(function, "learning_rate"), inputNamed(function, "step"));
  updater.update(trained);
  return success();
}

} // namespace kiln
