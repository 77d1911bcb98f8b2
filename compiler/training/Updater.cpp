// SPDX-License-Identifier: Apache-2.0
//
// If the optimiser state of a parameter is sharded, each replica updates its own shard:
//
//   %nexts = kiln.scan () over (%g = %own) layers {
//     %w = kiln.gather (kiln.reshape (kiln.parameter) to [replicas, n]) (kiln.rank over replicas)
//     ...                                                  states have n elements
//     kiln.yield (kiln.all_gather %next over replicas)
//   }
//   kiln.scan () over (%next = %nexts) layers { kiln.assign (kiln.reshape %next) to (kiln.parameter) }
//
// No weight is changed before all are gathered, since a replica may fail until then.
#include "compiler/training/Updater.h"

#include "compiler/dialect/gradients/RankParts.h"
#include "compiler/training/TrainProcess.h"
#include "kiln/training.h"
#include "llvm/ADT/MapVector.h"
#include <cmath>
#include <limits>

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

/// Returns sum(x^2).
static Value squares(kd::GradientBuilder &b, Value x) {
  return b.sumTo(b.mul(x, x), RankedTensorType::get({}, kd::rankedType(x).getElementType()));
}

/// Returns max(|x|), reduced along the last axis first; NaN if x contains a NaN.
static Value largest(kd::GradientBuilder &b, Value x) {
  if (kd::rankedType(x).getRank() == 0)
    return b.create<kd::AbsOp>(x);
  Value rows = b.create<kd::MaxOp>(b.create<kd::AbsOp>(b.asMatrix(x)), 1);
  return b.create<kd::MaxOp>(rows, 0);
}

/// Returns 0 if a magnitude is finite, else infinity. Such values can be summed over processes.
static Value orInfinity(kd::GradientBuilder &b, Value magnitude) {
  Value isFinite = b.create<kd::LessEqualOp>(magnitude, b.number(magnitude, std::numeric_limits<float>::max()));
  return b.where(isFinite, b.number(magnitude, 0), b.number(magnitude, std::numeric_limits<double>::infinity()));
}

Value Updater::size(ArrayRef<Trained> all, Value loss, Value norm) {
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  // A module of one rank also has shards if its sums are in parts. Nothing is summed over ranks then.
  auto shards =
      kd::getNumRanks(module) > 1 ? module->getAttrOfType<DictionaryAttr>(kd::shardsAttrName) : DictionaryAttr();
  Value sizes[2][2]; // indexed by [sharded among ranks][sharded among replicas]
  auto include = [&](Value &to, Value value) { to = to ? b.create<kd::MaximumOp>(to, value) : value; };
  for (const Trained &each : all)
    if (!norm || !each.isOptimised())
      include(sizes[shards && shards.contains(each.name)][each.isShared], largest(b, each.gradient));
  for (auto &[own, ofReplica] : sizes)
    if (ofReplica)
      include(own, b.create<kd::AllReduceOp>(orInfinity(b, ofReplica), kd::Group::Replicas));
  if (Value ofRank = sizes[true][false])
    include(sizes[false][false], b.create<kd::AllReduceOp>(orInfinity(b, ofRank)));
  Value own = sizes[false][false];
  if (countStages(function) > 1)
    own =
        sumOverStages(b, function, own ? orInfinity(b, own) : b.zeros(RankedTensorType::get({}, builder.getF32Type())));
  for (Value value : {loss, norm, rate, meanRate, squareScale})
    if (value)
      include(own, b.create<kd::AbsOp>(value));
  return own;
}

Value Updater::clip(MutableArrayRef<Trained> all) {
  auto isOptimised = [](const Trained &each) { return each.isOptimised(); };
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto shards = module->getAttrOfType<DictionaryAttr>(kd::shardsAttrName);
  Value sums[2][2]; // indexed by [sharded among ranks][sharded among replicas]
  auto add = [&](Value &to, Value value) { to = to ? b.add(to, value) : value; };
  const std::optional<kd::RankParts> parts = kd::RankParts::of(module);
  SmallVector<Value> ofParts;
  for (const Trained &each : llvm::make_filter_range(all, isOptimised)) {
    auto shard = shards ? shards.getAs<kd::ShardAttr>(each.name) : kd::ShardAttr();
    if (!each.isCountedHere)
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
  if (!sum) // all parameters of the stage are frozen
    sum = b.zeros(RankedTensorType::get({}, builder.getF32Type()));
  Value norm = b.create<kd::SqrtOp>(sumOverStages(b, function, sum));
  Value factor = b.create<kd::MinimumOp>(b.number(norm, 1),
                                         b.div(b.number(norm, training.clip), b.add(norm, b.number(norm, 1e-6))));
  for (Trained &each : llvm::make_filter_range(all, isOptimised))
    each.gradient = b.mul(each.gradient, factor);
  return norm;
}

/// Computes Adam's bias corrections. After t steps the means lack a factor 1 - beta^t = 1 - e^-x, which is 2 t / (1 +
/// t) for t = tanh(x / 2): this form keeps its precision for small x.
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

/// Returns the type of a state, which has at least one axis.
static RankedTensorType stateType(RankedTensorType type) {
  return type.getRank() > 0 ? type : RankedTensorType::get({1}, type.getElementType());
}

Value Updater::state(const char *moment, const Trained &each, RankedTensorType type) {
  RankedTensorType kept = stateType(type);
  Value value =
      kd::StateOp::create(builder, loc, kept, optimizer_state_name(moment, each.name), each.copies, kept.getDimSize(0));
  return b.reshape(value, kd::getExtents(type));
}

void Updater::store(const char *moment, const Trained &each, Value value) {
  RankedTensorType kept = stateType(kd::rankedType(value));
  kd::StoreOp::create(builder, loc, b.reshape(value, kd::getExtents(kept)), optimizer_state_name(moment, each.name),
                      each.copies, kept.getDimSize(0));
}

/// Returns the gradient with weight decay added, unless weight decay is decoupled.
Value Updater::withDecay(const Trained &each, Value weight) {
  return each.decays && training.update != Update::adamw ? b.add(each.gradient, b.scale(weight, training.weight_decay))
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
  if (each.decays && training.update == Update::adamw)
    weight = b.sub(weight, b.mul(weight, b.scale(rate, training.weight_decay)));
  Value next = b.sub(weight, b.div(b.mul(mean, meanRate), size));
  store("mean", each, mean);
  store("square", each, square);
  return next;
}

/// Updates the running average of a weight. It starts with the weight after the first step.
void Updater::updateAverage(const Trained &each, Value next) {
  Value before = state("average", each, kd::rankedType(next));
  store("average", each, b.where(isFirst, next, mix(training.average, before, next)));
}

/// Returns the weight after the step, and stores the optimiser state.
Value Updater::next(const Trained &each, Value weight) {
  Value next = !each.isOptimised()              ? b.sub(weight, b.scale(each.gradient, each.runningRate))
               : training.update == Update::sgd ? descend(each, weight)
                                                : descendByMoments(each, weight);
  if (training.average != 0)
    updateAverage(each, next);
  return next;
}

/// Computes the replica's own shard of the new weight, and gathers those of all replicas.
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
  auto stacking = create(stacked); // the stacked types are now known
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

} // namespace kiln
