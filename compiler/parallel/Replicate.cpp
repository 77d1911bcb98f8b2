// SPDX-License-Identifier: Apache-2.0
//
//   %dx, %dw, %db, %dg = kiln.scan (%dy) over (...) reverse layers { ...; kiln.yield %dx, %dw, %db, %dg }
//
//   %dx, %dw, %bucket = kiln.scan (%dy) over (...) reverse layers {
//     ...
//     %begun = kiln.begin_reduce %dw over replicas        overlaps with the gradients of the next layers
//     %small = kiln.begin_reduce (kiln.concat %db, %dg) over replicas
//     kiln.yield %dx, %begun, %small
//   }
//   %sums... = kiln.finish %dw, %bucket over replicas     slices of the bucket are the sums of %db and %dg
//   %mean = %sum * 1 / 4
//
// If the optimiser state is sharded among replicas:
//
//     %begun = kiln.begin_reduce (kiln.reshape %dw to [4, n]) over replicas scattered
//   ...
//     %sum = kiln.gather %sums (kiln.rank over replicas)    the replica's own shard
#include "compiler/dialect/Training.h"
#include "compiler/dialect/gradients/GradientBuilder.h"
#include "compiler/dialect/gradients/RankParts.h"
#include "compiler/parallel/Passes.h"
#include "compiler/training/TrainProcess.h"
#include "llvm/ADT/MapVector.h"

namespace kiln {

using namespace mlir;
namespace kd = mlir::kiln;

namespace {

/// Gradients with fewer elements share a bucket: the time of such messages does not depend on their bytes.
constexpr int64_t bucketed = 1 << 14;

/// A gradient. If `layers` is set, each replica gets its shard of each copy, and `layers` axes of layers precede a
/// copy's axes.
struct ReplicaGradient {
  Value value;
  std::optional<unsigned> layers;
};

int64_t elementsOf(Value value) { return kd::rankedType(value).getNumElements(); }

/// The place of a gradient's sum: the index of a started reduction and, in a bucket, the first element along the last
/// axis.
struct Sum {
  unsigned begun = 0;
  std::optional<int64_t> first;
};

class Replicator {
public:
  Replicator(func::FuncOp function, int64_t replicas)
      : function(function), replicas(replicas), builder(function.getContext()), b(builder, function.getLoc()) {}

  void average(MutableArrayRef<ReplicaGradient> gradients);
  void averageInOrder(int64_t microBatches, MutableArrayRef<ReplicaGradient> gradients);
  void setStep();

private:
  SmallVector<Value> begin(ArrayRef<ReplicaGradient> gradients, MutableArrayRef<Sum> sums);
  SmallVector<Value> beginInLoop(kd::ScanOp loop, ArrayRef<ReplicaGradient> stacked, MutableArrayRef<Sum> sums);
  Value beginParts(Value gradient, unsigned layers);
  Value begin(Value gradient, bool isScattered = false) {
    return kd::BeginReduceOp::create(builder, gradient.getLoc(), gradient, kd::Group::Replicas, isScattered);
  }
  Value meanOf(Value sum, const Sum &place, std::optional<unsigned> layers, RankedTensorType type);

  func::FuncOp function;
  const int64_t replicas;
  OpBuilder builder;
  kd::GradientBuilder b;
};

/// Returns the loop over layers that stacks a gradient which only the optimiser reads, or null.
kd::ScanOp stackingLoop(Value gradient) {
  auto loop = gradient.getDefiningOp<kd::ScanOp>();
  return loop && loop.isOverLayers() && gradient.use_empty() &&
                 cast<OpResult>(gradient).getResultNumber() >= loop.getNumCarried()
             ? loop
             : kd::ScanOp();
}

/// Starts the reductions of a block's gradients and records their places. Gradients that loops over layers stack are
/// reduced in these loops. Loops come last, since they are replaced.
SmallVector<Value> Replicator::begin(ArrayRef<ReplicaGradient> gradients, MutableArrayRef<Sum> sums) {
  SmallVector<Value> begun, small;
  SmallVector<unsigned> numbers; // indices of the small gradients
  llvm::MapVector<Operation *, SmallVector<unsigned>> loops;
  for (auto [i, gradient] : llvm::enumerate(gradients))
    if (kd::ScanOp loop = stackingLoop(gradient.value)) {
      loops[loop].push_back(i);
    } else if (!gradient.layers && elementsOf(gradient.value) < bucketed) {
      numbers.push_back(i);
    } else {
      sums[i].begun = begun.size();
      builder.setInsertionPointAfterValue(gradient.value);
      begun.push_back(gradient.layers ? beginParts(gradient.value, *gradient.layers) : begin(gradient.value));
    }
  if (!numbers.empty()) {
    Value one = gradients[numbers.front()].value;
    builder.setInsertionPoint(one.getParentBlock()->getTerminator());
    int64_t first = 0;
    for (unsigned i : numbers) {
      sums[i] = {static_cast<unsigned>(begun.size()), first};
      const int64_t elements = elementsOf(gradients[i].value);
      first += elements;
      small.push_back(b.reshape(gradients[i].value, builder.getAffineConstantExpr(elements)));
    }
    begun.push_back(begin(small.size() == 1 ? small.front() : b.create<kd::ConcatOp>(small, 0)));
  }
  for (auto &[loop, stacked] : loops) {
    SmallVector<Sum> inside(stacked.size());
    auto values = llvm::map_to_vector(stacked, [&](unsigned i) { return gradients[i]; });
    SmallVector<Value> made = beginInLoop(cast<kd::ScanOp>(loop), values, inside);
    for (auto [i, sum] : llvm::zip_equal(stacked, inside))
      sums[i] = {sum.begun + static_cast<unsigned>(begun.size()), sum.first};
    llvm::append_range(begun, made);
  }
  return begun;
}

/// Starts a reduce-scatter with one shard per replica. If the gradient has axes of layers, this is a loop over each of
/// them.
Value Replicator::beginParts(Value gradient, unsigned layers) {
  auto number = [&](int64_t value) { return builder.getAffineConstantExpr(value); };
  ArrayRef<int64_t> shape = kd::rankedType(gradient).getShape();
  const int64_t copy = ShapedType::getNumElements(shape.drop_front(layers));
  SmallVector<AffineExpr> extents = kd::getExtents(kd::rankedType(gradient));
  extents.truncate(layers);
  llvm::append_values(extents, number(replicas), number(copy / replicas));
  if (layers == 0)
    return begin(b.reshape(gradient, extents), /*isScattered=*/true);
  auto loop = kd::ScanOp::create(builder, gradient.getLoc(), ValueRange(), gradient, b.typeOf(extents, gradient),
                                 /*reverse=*/false, /*layers=*/true);
  OpBuilder::InsertionGuard guard(builder);
  Block &body = loop.getBody().front();
  builder.setInsertionPointToEnd(&body);
  kd::YieldOp::create(builder, gradient.getLoc(), beginParts(body.getArgument(0), layers - 1));
  return loop.getStacked().front();
}

/// Replaces the loop by one that stacks started reductions instead of gradients.
SmallVector<Value> Replicator::beginInLoop(kd::ScanOp loop, ArrayRef<ReplicaGradient> stacked,
                                           MutableArrayRef<Sum> sums) {
  Operation *yield = cast<kd::LoopInterface>(loop.getOperation()).getYield();
  SmallVector<Value> kept(yield->getOperands().take_front(loop.getNumCarried()));
  SmallVector<ReplicaGradient> inner;
  SmallVector<Type> types;
  SmallVector<unsigned> others; // results that are not gradients
  for (const auto &[value, layers] : stacked)
    inner.push_back({yield->getOperand(cast<OpResult>(value).getResultNumber()),
                     layers ? std::optional(*layers - 1) : std::nullopt});
  for (OpResult result : loop->getResults().drop_front(loop.getNumCarried()))
    if (llvm::none_of(stacked, [&](const ReplicaGradient &gradient) { return gradient.value == result; })) {
      others.push_back(result.getResultNumber());
      kept.push_back(yield->getOperand(result.getResultNumber()));
      types.push_back(result.getType());
    }
  SmallVector<Value> begun = begin(inner, sums);
  for (Value value : begun) {
    SmallVector<AffineExpr> extents = kd::getExtents(kd::rankedType(value));
    extents.insert(extents.begin(), cast<kd::LoopInterface>(loop.getOperation()).getTripCount());
    types.push_back(b.typeOf(extents, value));
  }
  llvm::append_range(kept, begun);
  yield->setOperands(kept);
  builder.setInsertionPoint(loop);
  auto next = kd::ScanOp::create(builder, loop.getLoc(), loop.getInits(), loop.getSequences(), types, loop.getReverse(),
                                 loop.getLayers());
  next.getBody().takeBody(loop.getBody());
  for (unsigned i = 0; i < loop.getNumCarried(); ++i)
    loop->getResult(i).replaceAllUsesWith(next->getResult(i));
  for (auto [i, number] : llvm::enumerate(others))
    loop->getResult(number).replaceAllUsesWith(next.getStacked()[i]);
  loop->erase();
  return SmallVector<Value>(next.getStacked().take_back(begun.size()));
}

Value Replicator::meanOf(Value sum, const Sum &place, std::optional<unsigned> layers, RankedTensorType type) {
  if (layers)
    sum = partOfReplica(b, sum, *layers);
  if (place.first) {
    SmallVector<AffineExpr> extents = kd::getExtents(kd::rankedType(sum));
    const int64_t rows = elementsOf(sum) / kd::rankedType(sum).getShape().back();
    extents.back() = builder.getAffineConstantExpr(type.getNumElements() / rows);
    sum = b.createAs<kd::SliceOp>(b.typeOf(extents, sum), sum, extents.size() - 1, *place.first, /*at_end=*/false);
    sum = b.reshape(sum, kd::getExtents(type));
  }
  return b.scale(sum, 1.0 / static_cast<double>(replicas));
}

/// Replaces the loss and the gradients by their means over the replicas. A gradient's all-reduce starts where it is
/// computed, also in loops over layers, and overlaps with the computation of others. All are finished before the
/// function returns.
void Replicator::average(MutableArrayRef<ReplicaGradient> gradients) {
  Operation *end = function.getBody().front().getTerminator();
  SmallVector<ReplicaGradient> all{{end->getOperand(0), std::nullopt}};
  llvm::append_range(all, gradients);
  const auto types = llvm::map_to_vector(all, [](const ReplicaGradient &each) { return kd::rankedType(each.value); });
  SmallVector<Sum> sums(all.size());
  SmallVector<Value> begun = begin(all, sums);
  builder.setInsertionPoint(end);
  auto finish =
      kd::FinishOp::create(builder, function.getLoc(), ValueRange(begun).getTypes(), begun, kd::Group::Replicas);
  for (auto [gradient, sum, type] : llvm::zip_equal(all, sums, types))
    gradient.value = meanOf(finish.getResult(sum.begun), sum, gradient.layers, type);
  end->setOperand(0, all.front().value);
  llvm::copy(ArrayRef(all).drop_front(), gradients.begin());
}

/// Replaces a replica's sums in a fixed order by the mean over all micro-batches of all replicas: gathers the sums of
/// all replicas and adds them as a tree.
void Replicator::averageInOrder(int64_t microBatches, MutableArrayRef<ReplicaGradient> gradients) {
  Operation *end = function.getBody().front().getTerminator();
  builder.setInsertionPoint(end);
  auto mean = [&](Value own) {
    SmallVector<AffineExpr> extents = kd::getExtents(kd::rankedType(own));
    extents.insert(extents.begin(), builder.getAffineConstantExpr(replicas));
    Value all = b.createAs<kd::AllGatherOp>(b.typeOf(extents, own), own, kd::Group::Replicas);
    return b.scale(kd::addAsTree(b, all), 1.0 / static_cast<double>(replicas * microBatches));
  };
  end->setOperand(0, mean(end->getOperand(0)));
  for (ReplicaGradient &gradient : gradients)
    gradient.value = mean(gradient.value);
}

/// Gives each replica its own dropout: replica i of step t uses the random numbers of step t * replicas + i.
void Replicator::setStep() {
  Value step = kd::getInput(function, "step");
  if (!step || step.use_empty())
    return;
  builder.setInsertionPointToStart(&function.getBody().front());
  auto type = RankedTensorType::get({}, builder.getI32Type());
  Value count = b.create<kd::ConstantOp>(DenseElementsAttr::get(type, static_cast<int32_t>(replicas)));
  Value first = b.mul(step, count), own = b.add(first, b.createAs<kd::RankOp>(type, kd::Group::Replicas));
  step.replaceAllUsesExcept(own, first.getDefiningOp());
}

/// Whether the optimiser state of a copy of a parameter is sharded among replicas: the number of elements must be large
/// and divisible by the number of replicas.
bool isSharedOut(RankedTensorType parameter, int64_t replicas) {
  const int64_t elements = parameter.getNumElements();
  return elements >= bucketed && elements % replicas == 0;
}

/// Averages the gradients of an entry, or shards them if the optimiser state is sharded.
LogicalResult averageGradients(func::FuncOp function, const kd::TrainingRequest &request, int64_t replicas,
                               bool sharesStates) {
  FailureOr<SmallVector<kd::GradientResult>> results = kd::takeGradients(function, request);
  if (failed(results))
    return failure();
  SmallVector<ReplicaGradient> gradients;
  for (auto [each, parameter] : llvm::zip_equal(*results, request.parameters)) {
    RankedTensorType type = kd::rankedType(each.value);
    type = RankedTensorType::get(type.getShape().drop_front(parameter.layers()), type.getElementType());
    const bool isShared = sharesStates && parameter.hasMoments && isSharedOut(type, replicas);
    if (isShared)
      each.whole = type;
    gradients.push_back({each.value, isShared ? std::optional(parameter.layers()) : std::nullopt});
  }
  Replicator replicator(function, replicas);
  replicator.setStep();
  if (countBatchParts(function, request) > 0)
    replicator.averageInOrder(request.getMicroBatches(), gradients);
  else
    replicator.average(gradients);
  for (auto [each, gradient] : llvm::zip_equal(*results, gradients))
    each.value = gradient.value;
  kd::addGradients(function, *results);
  return success();
}

/// Whether some gradient is sharded among replicas.
bool sharesOut(ModuleOp module) {
  return module
      ->walk([](kd::BeginReduceOp begun) {
        return begun.getScattered() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

} // namespace kiln

namespace mlir::kiln {

#define GEN_PASS_DEF_AVERAGEGRADIENTS
#include "compiler/parallel/Passes.h.inc"

namespace {

struct AverageGradients : impl::AverageGradientsBase<AverageGradients> {
  using AverageGradientsBase::AverageGradientsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const int64_t replicas = getNumRanks(module, Group::Replicas);
    for (auto function : module.getOps<func::FuncOp>()) {
      const std::optional<TrainingRequest> request = TrainingRequest::of(function);
      if (request && replicas > 1 && failed(::kiln::averageGradients(function, *request, replicas, shardStates)))
        return signalPassFailure();
    }
    if (shardStates && !::kiln::sharesOut(module)) {
      module.emitError() << "--shard-optimizer: nothing to shard; expected a large trained weight that " << replicas
                         << " replicas divide, got none";
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::kiln
