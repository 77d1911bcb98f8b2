// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/ModuleInterpreter.h"

#include <limits>

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/interpreter/EvaluateOp.h"
#include "compiler/kernel/Attention.h"
#include "compiler/verify/AffineValue.h"
#include "compiler/verify/EvaluateKilnOp.h"
#include "compiler/verify/EvaluateLinalg.h"
#include "compiler/verify/NodeOf.h"
#include "compiler/verify/ScalarOps.h"
#include "compiler/verify/Slices.h"
#include "compiler/verify/WeightValues.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {

static void require(bool holds, const std::string &rule) {
  if (!holds)
    throw std::runtime_error(rule);
}

static SharedTensor share(Tensor tensor) { return std::make_shared<const Tensor>(std::move(tensor)); }

/// One call of a function.
class ModuleInterpreter::Frame {
public:
  Frame(ModuleInterpreter &owner, ArrayRef<std::int64_t> extents) : owner(owner), extents(extents) {}

  std::vector<SharedTensor> run(func::FuncOp function, ArrayRef<SharedTensor> arguments);

private:
  /// Returns the operands of the block's terminator.
  std::vector<SharedTensor> runBlock(Block &block);
  void runOp(Operation &op);
  void runCall(kd::CallOp call);
  void runGroups(kd::CallOp call, ArrayRef<SharedTensor> arguments,
                 llvm::function_ref<std::vector<SharedTensor>(const SmallVector<std::int64_t> &,
                                                              const SmallVector<SharedTensor> &)>
                     run);
  void runRepeat(kd::RepeatOp repeat);
  void runScan(kd::ScanOp scan);
  void runEachSequence(kd::EachSequenceOp loop);
  void runIndex(Operation &op);
  void readDerived(kd::ParameterOp parameter);
  void runKilnOp(Operation &op);
  void runGeneric(linalg::GenericOp op);
  Tensor append(kd::AppendOp op);
  Tensor slide(kd::SlideOp op);
  Tensor given(Tensor value) const { return owner.given ? owner.given(value) : std::move(value); }

  TensorShape shapeOf(Type type);
  /// Sets the value of `to`, which must have the tensor's type.
  void set(Value to, SharedTensor tensor);
  void set(Value to, Tensor tensor) { set(to, share(std::move(tensor))); }
  const SharedTensor &get(Value value);
  Cell scalar(Value value);
  std::string nameOf(StringRef pattern) const;
  /// Returns the whole state.
  SharedTensor &stateOf(StringRef pattern) { return owner.states[nameOf(pattern) + sequence]; }
  SharedTensor stateOf(StringRef pattern, RankedTensorType rows, std::int64_t count);

  ModuleInterpreter &owner;
  ArrayRef<std::int64_t> extents;
  llvm::DenseMap<Value, SharedTensor> tensors;
  llvm::DenseMap<Value, Cell> scalars;
  SmallVector<std::int64_t> layers; // layers of the enclosing loops, the outermost first
  std::vector<SharedTensor> sent;   // to the next pipeline stage
  std::string sequence;             // suffix of state names: " of sequence 2"; empty for the first sequence
};

TensorShape ModuleInterpreter::Frame::shapeOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  require(tensor.hasStaticShape() || kd::hasExtents(tensor),
          "tensor: dynamic dimension without its extent; expected all stated");
  if (tensor.hasStaticShape())
    return {tensor.getShape().begin(), tensor.getShape().end()};
  TensorShape shape;
  for (AffineExpr extent : kd::getExtents(tensor))
    shape.push_back(valueOf(extent, {}, extents));
  return shape;
}

void ModuleInterpreter::Frame::set(Value to, SharedTensor tensor) {
  const TensorShape shape = shapeOf(to.getType());
  const ElementType element = elementTypeOf(getElementTypeOrSelf(to.getType()));
  require(tensor->shape == shape && tensor->element == element,
          "value: wrong type; expected " + std::string(name_of(element)) + interpreter::describe(shape) + ", got " +
              interpreter::describe(*tensor));
  tensors[to] = std::move(tensor);
}

const SharedTensor &ModuleInterpreter::Frame::get(Value value) {
  const SharedTensor &tensor = tensors[value];
  require(tensor != nullptr, "operand: not computed; expected a value");
  return tensor;
}

Cell ModuleInterpreter::Frame::scalar(Value value) {
  auto found = scalars.find(value);
  require(found != scalars.end(), "scalar: not computed; expected a value");
  return found->second;
}

/// Returns the name in the layers of the enclosing loops, or in layer 0 if there are no more loops.
std::string ModuleInterpreter::Frame::nameOf(StringRef pattern) const {
  return name_in_layers(pattern.str(), {layers.begin(), layers.end()});
}

std::vector<SharedTensor> ModuleInterpreter::Frame::run(func::FuncOp function, ArrayRef<SharedTensor> arguments) {
  require(!function.isExternal(), "call: callee has no body; expected a function with one");
  const DecomposedKernel decomposed(function);
  Block &body = decomposed.get().getBody().front();
  std::size_t indices = 0;
  for (BlockArgument argument : body.getArguments()) {
    if (argument.getType().isIndex()) {
      require(indices < extents.size(), "function: too few extents; expected one for each index argument");
      scalars[argument].integer = extents[indices++];
    } else {
      require(!arguments.empty(), "function: too few arguments; expected one for each tensor");
      set(argument, arguments.front());
      arguments = arguments.drop_front();
    }
  }
  require(indices == extents.size() && arguments.empty(),
          "function: too many extents or arguments; expected no more than its own");
  std::vector<SharedTensor> results = runBlock(body);
  llvm::append_range(results, sent);
  return results;
}

std::vector<SharedTensor> ModuleInterpreter::Frame::runBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    runOp(op);
  std::vector<SharedTensor> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(get(value));
  return results;
}

void ModuleInterpreter::Frame::runOp(Operation &op) {
  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](kd::CallOp call) { runCall(call); })
      .Case([&](kd::RepeatOp repeat) { runRepeat(repeat); })
      .Case([&](kd::ScanOp scan) { runScan(scan); })
      .Case([&](kd::EachSequenceOp loop) { runEachSequence(loop); })
      .Case([&](kd::ParameterOp parameter) {
        if (parameter.getDerived())
          return readDerived(parameter);
        auto weightOf = [&](StringRef source) {
          auto written = owner.written.find(nameOf(source));
          return written != owner.written.end() ? written->second : owner.weights(source.str(), nameOf(source));
        };
        set(parameter.getResult(), given(valueOf(parameter, shapeOf(parameter.getType()), weightOf)));
      })
      .Case([&](kd::ConstantOp constant) { set(constant.getResult(), given(tensorOf(constant.getValue()))); })
      .Case([&](kd::StateOp state) {
        const SharedTensor whole = stateOf(state.getName(), cast<RankedTensorType>(state.getType()), state.getRows());
        set(state.getResult(), takeRange(*whole, 0, 0, shapeOf(state.getType())[0]));
      })
      .Case([&](kd::AppendOp op) { set(op.getResult(), append(op)); })
      .Case([&](kd::SlideOp op) { set(op.getResult(), slide(op)); })
      .Case([&](kd::StoreOp store) {
        const SharedTensor &value = get(store.getX());
        require(value->rank() > 0 && value->shape[0] == static_cast<std::int64_t>(store.getRows()),
                "store: wrong number of rows; expected all of the state");
        stateOf(store.getName()) = store.getFlushed() ? std::make_shared<Tensor>(flushed(*value)) : value;
      })
      .Case([&](kd::AssignOp assign) {
        auto parameter = assign.getParameter().getDefiningOp<kd::ParameterOp>();
        (parameter.getDerived() ? owner.derived
                                : owner.written)[nameOf(cast<StringAttr>(parameter.getSources()[0]).getValue())] =
            get(assign.getX());
      })
      .Case([&](kd::RequireFiniteOp required) {
        require(std::isfinite(get(required.getX())->values[0]), "loss: not finite; expected a finite value");
      })
      .Case([&](kd::SendOp send) {
        for (Value value : send.getValues())
          sent.push_back(get(value));
      })
      .Case([&](tensor::EmptyOp empty) {
        // Nothing may depend on the contents.
        Tensor result = Tensor::zeros(elementTypeOf(empty.getType().getElementType()), shapeOf(empty.getType()));
        if (floating(result.element))
          result.values.assign(result.values.size(), std::numeric_limits<double>::quiet_NaN());
        set(empty.getResult(), std::move(result));
      })
      .Case([&](linalg::FillOp fill) {
        Tensor result = *get(fill.getOutputs()[0]);
        const double value = toNumber(scalar(fill.getInputs()[0]), floating(result.element));
        result.values.assign(result.values.size(), value);
        set(fill.getResult(0), std::move(result));
      })
      .Case([&](linalg::GenericOp generic) { runGeneric(generic); })
      .Default([&](Operation *other) {
        if (isa_and_nonnull<kd::KilnDialect>(other->getDialect()))
          runKilnOp(*other);
        else
          runIndex(*other);
      });
}

void ModuleInterpreter::Frame::readDerived(kd::ParameterOp parameter) {
  if (llvm::all_of(parameter->getUsers(), llvm::IsaPred<kd::AssignOp>))
    return; // the entry is about to derive it
  const std::string name = nameOf(cast<StringAttr>(parameter.getSources()[0]).getValue());
  if (!owner.derived.contains(name)) {
    auto function = parameter->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(kd::derivesFunctionName);
    require(function, "derived weight: no function derives it; expected one");
    owner.run(function, {}, {});
  }
  set(parameter.getResult(), owner.derived.at(name));
}

void ModuleInterpreter::Frame::runKilnOp(Operation &op) {
  SmallVector<const Tensor *> operands;
  for (Value operand : op.getOperands())
    operands.push_back(get(operand).get());
  SmallVector<TensorShape> shapes;
  for (Type type : op.getResultTypes())
    shapes.push_back(shapeOf(type));
  std::vector<Tensor> results = evaluateKilnOp(&op, operands, shapes);
  if (isa<kd::QuantizeRowsOp>(op) && owner.quantized)
    owner.quantized(results[0]);
  for (auto [result, tensor] : llvm::zip_equal(op.getResults(), results))
    set(result, std::move(tensor));
}

void ModuleInterpreter::Frame::runGeneric(linalg::GenericOp op) {
  SmallVector<const Tensor *> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand).get());
  auto scalarOf = [this](Value value) { return scalar(value); };
  auto tensorOf = [this](Value value) -> const Tensor & { return *get(value); };
  const Outside outside{scalarOf, tensorOf};
  for (auto [result, tensor] : llvm::zip_equal(op.getResults(), evaluateGeneric(op, operands, outside)))
    set(result, std::move(tensor));
}

void ModuleInterpreter::Frame::runIndex(Operation &op) {
  require(op.getNumResults() == 1 && op.getNumOperands() <= 3 && !isa<RankedTensorType>(op.getResult(0).getType()),
          op.getName().getStringRef().str() + " is not evaluated");
  SmallVector<Cell> operands;
  SmallVector<std::int64_t> indices;
  for (Value operand : op.getOperands()) {
    operands.push_back(scalar(operand));
    indices.push_back(operands.back().integer);
  }
  Cell result;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    result = cellOf(constant.getValue());
  } else if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    const unsigned dims = apply.getAffineMap().getNumDims();
    result.integer = valueOf(apply.getAffineMap().getResult(0), ArrayRef(indices).take_front(dims),
                             ArrayRef(indices).drop_front(dims));
  } else {
    result = evaluateScalar(&op, operands);
  }
  scalars[op.getResult(0)] = result;
}

void ModuleInterpreter::Frame::runCall(kd::CallOp call) {
  auto kernel = call->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(call.getCallee());
  require(kernel, "call: callee is no kernel; expected one, got " + call.getCallee().str());
  SmallVector<std::int64_t> values;
  for (Value extent : call.getExtents())
    values.push_back(scalar(extent).integer);
  SmallVector<SharedTensor> arguments;
  for (Value argument : call.getArguments())
    arguments.push_back(get(argument));
  auto run = [&](const SmallVector<std::int64_t> &of, const SmallVector<SharedTensor> &given) {
    if (owner.observer)
      owner.observer(kernel, of, given);
    return owner.run(kernel, of, given);
  };
  try {
    if (call.getEnds())
      return runGroups(call, arguments, run);
    for (auto [result, tensor] : llvm::zip_equal(call.getResults(), run(values, arguments)))
      set(result, tensor);
  } catch (const std::runtime_error &error) {
    throw std::runtime_error(kernel.getName().str() + ": " + error.what());
  }
}

/// Runs the kernel for each group of rows that is not empty, and concatenates the rows of its result.
void ModuleInterpreter::Frame::runGroups(
    kd::CallOp call, ArrayRef<SharedTensor> arguments,
    llvm::function_ref<std::vector<SharedTensor>(const SmallVector<std::int64_t> &, const SmallVector<SharedTensor> &)>
        run) {
  const Tensor &ends = *get(call.getEnds());
  const std::int64_t groups = call.getNumGroups(), rows = shapeOf(call.getResult(0).getType())[0];
  Tensor result = Tensor::zeros(elementTypeOf(getElementTypeOrSelf(call.getResult(0).getType())),
                                shapeOf(call.getResult(0).getType()));
  std::int64_t first = 0, written = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    const auto stated = static_cast<std::int64_t>(ends.values[group]);
    const std::int64_t end = group + 1 == groups ? rows : std::clamp(stated, first, rows);
    if (end == first)
      continue;
    SmallVector<SharedTensor> parts;
    for (auto [i, argument] : llvm::enumerate(arguments)) {
      const std::int64_t each = argument->shape[0] / groups;
      parts.push_back(share(call.isPerGroup(static_cast<std::int64_t>(i))
                                ? takeRange(*argument, 0, group * each, each)
                                : takeRange(*argument, 0, first, end - first)));
    }
    const std::vector<SharedTensor> computed = run({end - first}, parts);
    for (std::int64_t i = 0; i < computed[0]->size(); ++i)
      result.set(written++, computed[0]->at(i));
    first = end;
  }
  set(call.getResult(0), std::move(result));
}

void ModuleInterpreter::Frame::runRepeat(kd::RepeatOp repeat) {
  std::vector<SharedTensor> carried;
  for (Value value : repeat.getInits())
    carried.push_back(get(value));
  Block &body = repeat.getBody().front();
  std::vector<std::vector<SharedTensor>> outputs(kd::LoopInterface(repeat).getStacked().size());
  for (std::int64_t layer = 0; layer < static_cast<std::int64_t>(repeat.getCount()); ++layer) {
    layers.push_back(layer);
    for (auto [argument, value] : llvm::zip_equal(body.getArguments(), carried))
      set(argument, value);
    const std::vector<SharedTensor> yielded = runBlock(body);
    require(yielded.size() == carried.size() + outputs.size(),
            "repeat: wrong number of results of its layer; expected carried values and outputs");
    std::copy_n(yielded.begin(), carried.size(), carried.begin());
    for (std::size_t output = 0; output < outputs.size(); ++output)
      outputs[output].push_back(yielded[carried.size() + output]);
    layers.pop_back();
  }
  for (auto [i, value] : llvm::enumerate(carried))
    set(repeat.getResult(i), value);
  for (auto [i, slices] : llvm::enumerate(outputs))
    set(repeat.getResult(carried.size() + i), stack(slices));
}

void ModuleInterpreter::Frame::runScan(kd::ScanOp scan) {
  std::vector<SharedTensor> carried, sequences;
  for (Value value : scan.getInits())
    carried.push_back(get(value));
  for (Value value : scan.getSequences())
    sequences.push_back(get(value));
  Block &body = scan.getBody().front();
  const std::int64_t steps = valueOf(scan.getTripCount(), {}, extents);
  for (const SharedTensor &sequence : sequences)
    require(sequence->rank() > 0 && sequence->shape[0] == steps, "scan: lengths of the sequences differ; expected one");
  std::vector<std::vector<SharedTensor>> outputs(scan.getStacked().size(), std::vector<SharedTensor>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t step = scan.getReverse() ? steps - 1 - i : i;
    if (scan.getLayers())
      layers.push_back(step);
    for (auto [argument, value] : llvm::zip_equal(scan.getCarried(), carried))
      set(argument, value);
    for (auto [argument, sequence] : llvm::zip_equal(scan.getSlices(), sequences))
      set(argument, takeStep(*sequence, step));
    const std::vector<SharedTensor> yielded = runBlock(body);
    require(yielded.size() == carried.size() + outputs.size(),
            "scan: wrong number of results of its step; expected carried values and outputs");
    if (scan.getLayers())
      layers.pop_back();
    std::copy_n(yielded.begin(), carried.size(), carried.begin());
    for (std::size_t output = 0; output < outputs.size(); ++output)
      outputs[output][step] = yielded[carried.size() + output];
  }
  for (auto [result, value] : llvm::zip_equal(scan.getLast(), carried))
    set(result, value);
  for (auto [result, slices] : llvm::zip_equal(scan.getStacked(), outputs))
    set(result, stack(slices));
}

/// All sequences have the extents of the call (RandomCalls.cpp).
void ModuleInterpreter::Frame::runEachSequence(kd::EachSequenceOp loop) {
  const kd::BatchSymbols symbols = loop.getBatchSymbols();
  const std::int64_t count = extents[symbols.count];
  require(symbols.own < 0 || extents[symbols.rows] == count * extents[symbols.own],
          "each_sequence: rows of the sequences differ; expected as many of each");
  std::vector<std::vector<SharedTensor>> outputs(loop.getNumResults());
  for (std::int64_t number = 0; number < count; ++number) {
    for (auto [slice, whole] : llvm::zip_equal(loop.getBody().getArguments(), loop.getWholes())) {
      const std::int64_t rows = shapeOf(slice.getType()).front();
      set(slice, takeRange(*get(whole), 0, number * rows, rows));
    }
    sequence = number > 0 ? " of sequence " + std::to_string(number) : "";
    for (auto [output, value] : llvm::zip_equal(outputs, runBlock(loop.getBody().front())))
      output.push_back(value);
  }
  sequence.clear();
  for (auto [result, parts] : llvm::zip_equal(loop.getResults(), outputs))
    set(result, join(parts, 0));
}

SharedTensor ModuleInterpreter::Frame::stateOf(StringRef pattern, RankedTensorType rows, std::int64_t count) {
  SharedTensor &state = stateOf(pattern);
  if (!state) {
    TensorShape shape = shapeOf(rows);
    require(!shape.empty(), "state: rank 0; expected rank 1 or more");
    shape[0] = count;
    state = share(Tensor::zeros(elementTypeOf(rows.getElementType()), shape));
  }
  require(state->shape[0] == count, "state: numbers of rows differ; expected one");
  return state;
}

Tensor ModuleInterpreter::Frame::append(kd::AppendOp op) {
  const TensorShape shape = shapeOf(op.getType());
  SharedTensor &state = stateOf(op.getName());
  Tensor whole = *stateOf(op.getName(), cast<RankedTensorType>(op.getType()), op.getRows());
  Tensor rows = *get(op.getX());
  if (rows.rank() > 1 && rows.shape.back() != shape.back())
    rows = takeRange(rows, rows.rank() - 1, op.getColumn(), shape.back());
  TensorShape expected = shape;
  expected[0] = rows.shape.empty() ? 0 : rows.shape[0];
  require(rows.shape == expected && rows.shape[0] <= shape[0],
          "append: wrong rows; expected those of the state, and room for them");
  const std::int64_t width = whole.size() / whole.shape[0], first = shape[0] - rows.shape[0];
  for (std::int64_t i = 0; i < rows.size(); ++i)
    whole.set(first * width + i, rows.at(i));
  state = share(std::move(whole));
  return takeRange(*state, 0, 0, shape[0]);
}

Tensor ModuleInterpreter::Frame::slide(kd::SlideOp op) {
  const auto type = cast<RankedTensorType>(op.getType());
  const SharedTensor state = stateOf(op.getName(), type, op.getRows());
  const Tensor &rows = *get(op.getX());
  Tensor result = Tensor::zeros(elementTypeOf(type.getElementType()), shapeOf(type));
  require(state->size() + rows.size() == result.size(),
          "slide: wrong number of rows; expected the state's and the operand's");
  for (std::int64_t i = 0; i < result.size(); ++i)
    result.set(i, i < state->size() ? state->at(i) : rows.at(i - state->size()));
  return result;
}

std::vector<SharedTensor> ModuleInterpreter::run(func::FuncOp function, ArrayRef<std::int64_t> extents,
                                                 ArrayRef<SharedTensor> arguments) {
  return Frame(*this, extents).run(function, arguments);
}

} // namespace kiln::verify
