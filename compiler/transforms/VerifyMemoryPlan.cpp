// SPDX-License-Identifier: Apache-2.0
//
// Memory is modelled as a list of pieces, each holding one value. For each op in order,
// 1. a value that the op reads must be the piece at its place;
// 2. a value that it writes invalidates the bytes of all other values; where it overlaps an argument of its kernel,
// that argument must have the same place, and the kernel may overwrite it; a custom function has separate memory;
// 3. the body of a loop is visited twice, since the second iteration reads what the first one wrote; the body of a loop
// that is ahead is visited alternately with its follower's.
#include "compiler/transforms/VerifyMemoryPlan.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/Extents.h"
#include "compiler/kernel/KernelFunction.h"
#include "compiler/transforms/RowsInPlace.h"

namespace mlir::kiln {
namespace {

struct ByteRange {
  MemoryPlacement::Kind kind;
  StringRef state;      // of states, which have separate memory
  int64_t argument = 0; // of arguments, likewise
  int64_t begin = 0, end = 0;

  bool operator==(const ByteRange &) const = default;
  bool overlaps(const ByteRange &other) const {
    return kind == other.kind && state == other.state && argument == other.argument && begin < other.end &&
           other.begin < end;
  }
};

class PlanWalker {
public:
  PlanWalker(func::FuncOp entry, const MemoryPlan &plan)
      : entry(entry), plan(plan), bounds(getSymbolBounds(entry)),
        inputs(llvm::count_if(entry.getArgumentTypes(), llvm::IsaPred<RankedTensorType>)) {}

  LogicalResult run() {
    for (BlockArgument argument : entry.getArguments())
      if (isa<RankedTensorType>(argument.getType()))
        write(argument);
    return walk(entry.getBody().front());
  }

private:
  ByteRange rangeOf(Value tensor) const {
    Value whole = getViewed(tensor);
    const MemoryPlacement place = plan.of(tensor);
    ByteRange range{place.kind, "", 0, 0, bytesOf(whole)};
    if (place.kind == MemoryPlacement::Kind::Argument) {
      range.argument = place.offset;
    } else if (Operation *home = plan.homeOf(whole)) {
      auto assign = dyn_cast<AssignOp>(home);
      range.kind = assign ? MemoryPlacement::Kind::Parameter : MemoryPlacement::Kind::State;
      range.state = nameOf(assign ? assign.getParameter().getDefiningOp() : home);
      if (auto slide = dyn_cast<SlideOp>(home)) {
        range.begin = bytesOf(slide.getResult()) - range.end; // for the largest number of rows
        range.end += range.begin;
      }
    } else if (place.kind == MemoryPlacement::Kind::State || place.kind == MemoryPlacement::Kind::Parameter) {
      range.state = nameOf(whole.getDefiningOp());
    } else {
      range.begin = place.offset;
      range.end += place.offset;
    }
    return range;
  }

  /// Returns the name of a state or a weight; for joined weights the first one's.
  static StringRef nameOf(Operation *op) {
    if (auto parameter = dyn_cast<ParameterOp>(op))
      return cast<StringAttr>(parameter.getSources()[0]).getValue();
    return op->getAttrOfType<StringAttr>("name").getValue();
  }
  bool isStored(ParameterOp parameter) const {
    return llvm::any_of(parameter.getSources(), [&](Attribute source) { return stored.contains(source); });
  }

  int64_t bytesOf(Value tensor) const {
    auto type = cast<RankedTensorType>(tensor.getType());
    auto elements = getBounds(getProduct(getKeptExtents(tensor), type.getContext()), bounds);
    return storedBytes(type.getElementType(), elements ? elements->max : 1);
  }

  void write(Value tensor) {
    const ByteRange range = rangeOf(tensor);
    llvm::erase_if(pieces, [&](const auto &piece) { return piece.second.overlaps(range); });
    pieces.emplace_back(getViewed(tensor), range);
  }

  LogicalResult read(Operation *op, Value tensor) {
    Value whole = getViewed(tensor);
    if (Operation *source = whole.getDefiningOp(); isa_and_nonnull<ParameterOp, ConstantOp, RankOp>(source))
      return success();
    if (llvm::is_contained(pieces, std::pair(whole, rangeOf(tensor))))
      return success();
    return op->emitError() << "memory plan: overwritten value of type " << tensor.getType()
                           << "; expected it to be kept until it is read here";
  }

  /// Two values that must be one piece of memory: the later value takes over the earlier one's.
  LogicalResult pass(Operation *op, Value from, Value to) {
    if (failed(read(op, from)))
      return failure();
    if (rangeOf(from) != rangeOf(to))
      return op->emitError() << "memory plan: misplaced carried value of type " << to.getType()
                             << "; expected it where the loop reads it";
    return success();
  }

  LogicalResult walk(Block &block) {
    for (Operation &op : block) {
      LogicalResult result = success();
      if (auto call = dyn_cast<CallOp>(op))
        result = walk(call);
      else if (auto loop = dyn_cast<LoopInterface>(op))
        result = walk(loop);
      else if (isa<StateOp>(op))
        result = readState(&op);
      else if (auto slide = dyn_cast<SlideOp>(op))
        result = walk(slide);
      else if (isa<AppendOp, StoreOp>(op))
        result = writeState(&op);
      else if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op))
        result = walkRanks(&op);
      else if (auto concat = dyn_cast<ConcatOp>(op))
        result = walk(concat);
      else if (auto custom = dyn_cast<CustomOp>(op))
        result = walk(custom);
      else if (isa<ArgsortOp, IndexAddOp, ScatterAddOp>(op))
        result = walkApart(&op);
      else if (isa<ReceiveOp>(op))
        for (Value value : op.getResults())
          write(value);
      else if (isa<BeginReduceOp, FinishOp, RequireFiniteOp, SendOp>(op))
        for (Value operand : op.getOperands())
          result = succeeded(result) ? read(&op, operand) : result;
      else if (auto assign = dyn_cast<AssignOp>(op))
        result = writeParameter(assign);
      else if (isa<func::ReturnOp>(op))
        result = walkReturn(&op);
      if (failed(result))
        return failure();
    }
    return success();
  }

  /// An argument of a kernel or of a custom function, which may be a weight.
  LogicalResult readArgument(Operation *op, Value argument) {
    if (failed(read(op, argument)))
      return failure();
    if (auto parameter = getViewed(argument).getDefiningOp<ParameterOp>(); parameter && isStored(parameter))
      return op->emitError() << "memory plan: weight is read after it is replaced; expected the read first";
    return success();
  }

  /// Nothing is known of the order in which a custom function reads and writes.
  LogicalResult walk(CustomOp custom) {
    for (Value input : custom.getInputs())
      if (failed(readArgument(custom, input)))
        return failure();
    for (auto [number, result] : llvm::enumerate(custom.getResults())) {
      auto overlaps = [&, range = rangeOf(result)](Value other) { return range.overlaps(rangeOf(other)); };
      if (llvm::any_of(custom.getInputs(), overlaps) || llvm::any_of(custom.getResults().take_front(number), overlaps))
        return custom.emitError() << "memory plan: result " << number
                                  << " overlaps another tensor of the function; expected separate memory";
    }
    for (Value result : custom.getResults())
      write(result);
    return success();
  }

  LogicalResult walk(CallOp call) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    ArrayRef<int64_t> inPlace = ::kiln::KernelFunction(kernel).inPlace();
    FunctionType type = kernel.getFunctionType();
    for (Value argument : call.getArguments())
      if (failed(readArgument(call, argument)))
        return failure();
    if (call.getEnds() && failed(readArgument(call, call.getEnds())))
      return failure();
    for (auto [number, result] : llvm::enumerate(call.getResults())) {
      for (auto [i, argument] : llvm::enumerate(call.getArguments())) {
        if (!rangeOf(result).overlaps(rangeOf(argument)))
          continue;
        const bool isAllowed = llvm::is_contained(inPlace, static_cast<int64_t>(i)) &&
                               type.getInput(call.getExtents().size() + i) == type.getResult(number);
        if (!isAllowed || rangeOf(result).begin != rangeOf(argument).begin)
          return call.emitError() << "memory plan: result " << number << " overlaps argument " << i
                                  << "; expected separate memory, since the kernel reads it elsewhere";
      }
      if (call.getEnds() && rangeOf(result).overlaps(rangeOf(call.getEnds())))
        return call.emitError() << "memory plan: result " << number
                                << " overlaps the ends of groups; expected separate memory";
      for (Value other : call.getResults().take_front(number))
        if (rangeOf(result).overlaps(rangeOf(other)))
          return call.emitError() << "memory plan: results overlap; expected separate memory";
    }
    for (Value result : call.getResults()) {
      write(result);
      if (Operation *home = plan.homeOf(result); home && !isa<SlideOp>(home))
        stored.insert_range(getMemoryNames(home));
    }
    return success();
  }

  LogicalResult walk(ConcatOp concat) {
    for (Value part : concat.getInputs()) {
      if (failed(read(concat, part)))
        return failure();
      if (rangeOf(part).overlaps(rangeOf(concat.getResult())))
        return concat.emitError()
               << "memory plan: rows overlap what they are put together in; expected separate memory";
    }
    write(concat.getResult());
    return success();
  }

  /// A function of the run time whose result is separate from its operands, which may be weights.
  LogicalResult walkApart(Operation *op) {
    for (Value operand : op->getOperands()) {
      if (failed(readArgument(op, operand)))
        return failure();
      if (rangeOf(op->getResult(0)).overlaps(rangeOf(operand)))
        return op->emitError() << "memory plan: result overlaps an operand; expected separate memory";
    }
    write(op->getResult(0));
    return success();
  }

  static ValueRange initsOf(LoopInterface loop) { return loop->getOperands().take_front(loop.getNumCarried()); }
  static ValueRange stackedOf(LoopInterface loop) { return loop->getResults().drop_front(loop.getNumCarried()); }

  LogicalResult enter(LoopInterface loop) {
    for (auto [init, carried] : llvm::zip_equal(initsOf(loop), loop.getCarried()))
      if (failed(pass(loop, init, carried)))
        return failure();
    for (Value carried : loop.getCarried())
      write(carried);
    for (Value stacked : stackedOf(loop))
      write(stacked);
    return success();
  }

  LogicalResult walkIteration(LoopInterface loop) {
    stored.clear();
    for (Value sequence : loop->getOperands().drop_front(loop.getNumCarried()))
      if (failed(read(loop, sequence)))
        return failure();
    if (failed(walk(loop->getRegion(0).front())))
      return failure();
    Operation *yield = loop.getYield();
    for (auto [i, carried] : llvm::enumerate(loop.getCarried()))
      if (failed(pass(yield, yield->getOperand(i), carried)))
        return failure();
    for (auto [i, stacked] : llvm::enumerate(stackedOf(loop)))
      if (getViewed(yield->getOperand(loop.getNumCarried() + i)) != getViewed(stacked) || failed(read(yield, stacked)))
        return yield->emitError() << "memory plan: misplaced output; expected it where it is stacked";
    for (Value carried : loop.getCarried())
      write(carried);
    return success();
  }

  LogicalResult leave(LoopInterface loop) {
    for (auto [carried, result] : llvm::zip(loop.getCarried(), loop->getResults()))
      if (failed(pass(loop, carried, result)))
        return failure();
    for (Value result : loop->getResults().take_front(loop.getNumCarried()))
      write(result);
    stored.clear();
    return success();
  }

  LogicalResult walk(LoopInterface loop) {
    SmallVector<LoopInterface> together{loop};
    if (auto scan = dyn_cast<ScanOp>(loop.getOperation())) {
      if (isFollower(scan))
        return success();
      if (scan.getAhead() > 0)
        together.push_back(cast<LoopInterface>(getFollower(scan).getOperation()));
    }
    for (LoopInterface each : together)
      if (failed(enter(each)))
        return failure();
    for (int iteration = 0; iteration < 2; ++iteration)
      for (LoopInterface each : together)
        if (failed(walkIteration(each)))
          return failure();
    for (LoopInterface each : together)
      if (failed(leave(each)))
        return failure();
    return success();
  }

  /// The result of an all-reduce is in place; the results of other collectives must not overlap their operand.
  LogicalResult walkRanks(Operation *op) {
    Value part = op->getOperand(0), whole = op->getResult(0);
    if (failed(read(op, part)))
      return failure();
    const bool isRight =
        isa<AllReduceOp>(op) ? rangeOf(part) == rangeOf(whole) : !rangeOf(part).overlaps(rangeOf(whole));
    if (!isRight)
      return op->emitError() << "memory plan: misplaced result of a collective; expected its operand's memory for a "
                                "sum, else separate memory";
    write(whole);
    return success();
  }

  LogicalResult readState(Operation *state) {
    if (stored.contains(state->getAttr("name")))
      return state->emitError() << "memory plan: state is read after it is replaced; expected the read first";
    pieces.emplace_back(state->getResult(0), rangeOf(state->getResult(0))); // in addition to other reads of it
    return success();
  }

  /// The state's rows stay in place; the rows after them are the operand, or become it.
  LogicalResult walk(SlideOp slide) {
    if (failed(read(slide, slide.getX())) || failed(readState(slide)))
      return failure();
    pieces.pop_back();
    const ByteRange whole = rangeOf(slide.getResult());
    ByteRange added = whole;
    added.begin = whole.end - bytesOf(slide.getX());
    if (plan.homeOf(slide.getX()) == slide && rangeOf(slide.getX()) != added)
      return slide.emitError() << "memory plan: misplaced rows; expected them right after those of the state";
    if (plan.homeOf(slide.getX()) != slide)
      llvm::erase_if(pieces, [&](const auto &piece) { return piece.second.overlaps(added); });
    pieces.emplace_back(slide.getResult(), whole);
    return success();
  }

  LogicalResult writeState(Operation *op) {
    if (failed(read(op, op->getOperand(0))))
      return failure();
    stored.insert(op->getAttr("name"));
    const bool isThere = plan.homeOf(op->getOperand(0)) == op;
    auto store = dyn_cast<StoreOp>(op);
    if (store && getViewed(store.getX()).getDefiningOp<SlideOp>() && !getSlide(store))
      return op->emitError()
             << "memory plan: copy is missing; expected one of what slides into a state that is stored elsewhere";
    if (isThere && isa<AppendOp>(op))
      pieces.emplace_back(op->getResult(0), rangeOf(op->getResult(0))); // its last rows are the operand
    else if (isa<AppendOp>(op))
      write(op->getResult(0));
    if (isThere || isa<AppendOp>(op))
      return success();
    auto name = op->getAttrOfType<StringAttr>("name").getValue();
    llvm::erase_if(pieces, [&](const auto &piece) { return piece.second.state == name; });
    return success();
  }

  LogicalResult writeParameter(AssignOp assign) {
    stored.insert_range(getMemoryNames(assign));
    return read(assign, assign.getX());
  }

  LogicalResult walkReturn(Operation *op) {
    for (auto [i, value] : llvm::enumerate(op->getOperands())) {
      if (failed(read(op, value)))
        return failure();
      if (rangeOf(value).kind != MemoryPlacement::Kind::Argument ||
          rangeOf(value).argument != inputs + static_cast<int64_t>(i))
        return op->emitError() << "memory plan: misplaced result " << i << "; expected it in the caller's memory";
    }
    return success();
  }

  func::FuncOp entry;
  const MemoryPlan &plan;
  SmallVector<Interval> bounds;
  int64_t inputs;
  std::vector<std::pair<Value, ByteRange>> pieces;
  llvm::SmallDenseSet<Attribute> stored; // states and weights that the current block has written
};

} // namespace

LogicalResult verifyMemoryPlan(func::FuncOp entry, const MemoryPlan &plan) { return PlanWalker(entry, plan).run(); }

} // namespace mlir::kiln
