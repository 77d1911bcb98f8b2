// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/Interpreter.h"

#include <algorithm>

#include "compiler/interpreter/EvaluateOp.h"
#include "compiler/interpreter/OpCall.h"
#include "compiler/interpreter/QuantizeRows.h"

namespace kiln::interpreter {

using Shared = std::shared_ptr<const Tensor>;

static void require(bool holds, const std::string &rule) {
  if (!holds)
    throw std::runtime_error(rule);
}

/// Returns the element, or throws if there is none.
template <class List> static const auto &elementOf(const List &list, std::int64_t number, const char *what) {
  require(number >= 0 && number < static_cast<std::int64_t>(list.size()),
          std::string("graph: unknown ") + what + "; expected one of the graph, got " + std::to_string(number));
  return list[static_cast<std::size_t>(number)];
}

Interpreter::Interpreter(Graph given, WeightSource weights) : graph(std::move(given)), weights(std::move(weights)) {
  for (std::size_t i = 0; i < graph.scopes.size(); ++i) {
    const Scope &scope = graph.scopes[i];
    require(scope.name && scope.copies >= 0 && scope.parent >= -1 && scope.parent < static_cast<int>(i),
            "graph: wrong scope; expected a name and an earlier scope around it");
  }
  for (const Parameter &parameter : graph.parameters) {
    elementOf(graph.scopes, parameter.scope, "scope of a parameter");
    require(parameter.leaf, "graph: unnamed parameter; expected a name");
  }
  for (const StateTensor &state : graph.states) {
    elementOf(graph.scopes, state.scope, "scope of a state");
    require(state.leaf && !state.shape.empty(), "graph: incomplete state; expected a name and a shape");
  }
}

/// One call of an entry: the values so far, by node number, and the updates of the states.
class Interpreter::Run {
public:
  Run(Interpreter &owner, const Extents &extents)
      : owner(owner), graph(owner.graph), extents(extents), values(graph.nodes.size()), loops(graph.nodes.size()),
        isEntered(graph.regions.size()) {}

  std::vector<Shared> runRegion(int number, const std::vector<Shared> &arguments);
  /// Commits the updates of the states.
  void keepStates() {
    for (auto &[name, value] : written)
      owner.states[name] = std::move(value);
  }

private:
  Shared evaluateNode(int number);
  bool takesInt8(const Node &node) const;
  Shared evaluateParameter(const Node &node);
  Shared evaluateStack(const Node &node, int number);
  void evaluateScan(const Node &node, int number);
  Shared evaluateResult(const Node &node);
  Shared evaluateState(const Node &node);

  Shared valueOf(int number) const {
    const Shared &value = elementOf(values, number, "operand");
    require(value != nullptr,
            "graph: operand is not computed; expected an earlier node, got node " + std::to_string(number));
    return value;
  }
  std::vector<Shared> operandsOf(const Node &node) const {
    std::vector<Shared> operands;
    for (int operand : node.operands)
      operands.push_back(valueOf(operand));
    return operands;
  }
  std::string nameOf(int scope, std::string name) const;
  void requireType(const Node &node, const Tensor &value, const char *what) const {
    const TensorShape shape = evaluate(node.shape, extents);
    require(value.element == node.element && value.shape == shape, std::string(what) + ": wrong type; expected " +
                                                                       name_of(node.element) + describe(shape) +
                                                                       ", got " + describe(value));
  }

  struct Layer {
    int scope;
    std::int64_t number;
  };

  Interpreter &owner;
  const Graph &graph;
  const Extents &extents;
  std::vector<Shared> values;             // by node; null: not computed, or out of scope
  std::vector<std::vector<Shared>> loops; // by node: the results of a scan or stack
  std::vector<bool> isEntered;            // by region
  std::vector<Layer> layers;              // of the enclosing stacks
  std::map<std::string, Tensor> written;  // states after the call
};

std::vector<Shared> Interpreter::Run::runRegion(int number, const std::vector<Shared> &arguments) {
  const Region &region = elementOf(graph.regions, number, "region");
  require(!isEntered[number], "region: part of itself; expected no recursion");
  require(region.arguments.size() == arguments.size(), "region: wrong number of arguments; expected " +
                                                           std::to_string(region.arguments.size()) + ", got " +
                                                           std::to_string(arguments.size()));
  isEntered[number] = true;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Node &node = elementOf(graph.nodes, region.arguments[i], "argument");
    require(node.op == Op::input, "region: wrong argument; expected an input");
    requireType(node, *arguments[i], "argument");
    values[region.arguments[i]] = arguments[i];
  }
  for (int node : region.nodes)
    values[node] = evaluateNode(node);
  std::vector<Shared> results;
  for (int result : region.results)
    results.push_back(valueOf(result));
  for (const std::vector<int> &list : {region.arguments, region.nodes})
    for (int node : list)
      values[node] = nullptr;
  isEntered[number] = false;
  return results;
}

Shared Interpreter::Run::evaluateNode(int number) {
  const Node &node = elementOf(graph.nodes, number, "node");
  switch (node.op) {
  case Op::parameter:
    return evaluateParameter(node);
  case Op::stack:
    return evaluateStack(node, number);
  case Op::scan:
    evaluateScan(node, number);
    return nullptr;
  case Op::result:
    return evaluateResult(node);
  case Op::state:
  case Op::append:
  case Op::store:
    return evaluateState(node);
  default:
    break;
  }
  const std::vector<Shared> operands = operandsOf(node);
  std::vector<const Tensor *> tensors;
  for (const Shared &operand : operands)
    tensors.push_back(operand.get());
  try {
    Tensor rows;
    if (takesInt8(node)) {
      rows = throughInt8(*tensors[0]);
      tensors[0] = &rows;
    }
    auto result = std::make_shared<Tensor>(evaluateOp(node, tensors, evaluate(node.shape, extents)));
    if (owner.after)
      owner.after(*result);
    return result;
  } catch (const std::runtime_error &error) {
    const bool hasScope = node.scope > 0 && node.scope < static_cast<int>(graph.scopes.size());
    throw std::runtime_error((hasScope ? graph.path(node.scope) + ": " : "") + error.what());
  }
}

/// Whether a linear quantises its rows to int8.
bool Interpreter::Run::takesInt8(const Node &node) const {
  if (node.op != Op::linear || !owner.takesInt8 || node.operands.size() < 2)
    return false;
  const Node &weight = elementOf(graph.nodes, node.operands[1], "weight");
  if (weight.op != Op::parameter)
    return false;
  const Parameter &parameter = elementOf(graph.parameters, weight.attributes.index, "parameter");
  const int dim = node.attributes.weight_order == WeightOrder::in_out ? 1 : 0;
  return owner.takesInt8(nameOf(parameter.scope, graph.name(parameter)), dim);
}

/// Replaces the parts of a name that stand for the layers of the stacks that enclose its scope.
std::string Interpreter::Run::nameOf(int scope, std::string name) const {
  std::vector<std::int64_t> numbers;
  for (int at = scope; at > 0; at = graph.scopes[at].parent)
    if (graph.scopes[at].copies > 0) {
      auto layer = std::find_if(layers.begin(), layers.end(), [&](const Layer &layer) { return layer.scope == at; });
      require(layer != layers.end(), name + " is used outside of its stack");
      numbers.insert(numbers.begin(), layer->number);
    }
  return name_in_layers(name, numbers);
}

Shared Interpreter::Run::evaluateParameter(const Node &node) {
  const Parameter &parameter = elementOf(graph.parameters, node.attributes.index, "parameter");
  const std::string name = nameOf(parameter.scope, graph.name(parameter));
  Shared &known = owner.known[name];
  if (!known) {
    Tensor weight = owner.weights(name);
    require(weight.element == parameter.element && weight.shape == parameter.shape,
            "weight " + name + ": wrong type; expected " + name_of(parameter.element) + describe(parameter.shape) +
                ", got " + describe(weight));
    Tensor rounded = Tensor::of(weight.element, weight.shape, std::move(weight.values));
    for (std::size_t i = 0; i < weight.errors.size(); ++i)
      rounded.errors[i] = std::max(rounded.errors[i], weight.errors[i]);
    known = std::make_shared<Tensor>(std::move(rounded));
  }
  requireType(node, *known, "parameter");
  return known;
}

/// Returns element `step` of the first axis, without the axis.
static Shared sliceOf(const Tensor &sequence, std::int64_t step) {
  Tensor slice = Tensor::zeros(sequence.element, {sequence.shape.begin() + 1, sequence.shape.end()});
  for (std::int64_t i = 0; i < slice.size(); ++i)
    slice.set(i, sequence.at(step * slice.size() + i));
  return std::make_shared<Tensor>(std::move(slice));
}

static Shared stackOf(const std::vector<Shared> &slices) {
  TensorShape shape = slices[0]->shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(slices.size()));
  Tensor stacked = Tensor::zeros(slices[0]->element, shape);
  std::int64_t flat = 0;
  for (const Shared &slice : slices)
    for (std::int64_t i = 0; i < slice->size(); ++i)
      stacked.set(flat++, slice->at(i));
  return std::make_shared<Tensor>(std::move(stacked));
}

Shared Interpreter::Run::evaluateStack(const Node &node, int number) {
  const Region &body = elementOf(graph.regions, node.attributes.index, "body of a stack");
  elementOf(graph.scopes, body.scope, "scope of a stack");
  const std::vector<Shared> operands = operandsOf(node);
  const auto count = static_cast<std::size_t>(std::max(node.attributes.states, 0));
  require(count >= 1 && count <= operands.size() && body.results.size() >= count && body.count >= 1,
          "stack: incomplete; expected a carried value, its result and at least one layer");
  for (std::size_t i = count; i < operands.size(); ++i)
    require(operands[i]->rank() >= 1 && operands[i]->shape[0] == body.count,
            "stack: wrong length of a sequence; expected the number of layers");
  std::vector<Shared> carried(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<std::vector<Shared>> outputs(body.results.size() - count);
  for (std::int64_t layer = 0; layer < body.count; ++layer) {
    std::vector<Shared> arguments = carried;
    for (std::size_t sequence = count; sequence < operands.size(); ++sequence)
      arguments.push_back(sliceOf(*operands[sequence], layer));
    layers.push_back({body.scope, layer});
    const std::vector<Shared> results = runRegion(node.attributes.index, arguments);
    layers.pop_back();
    std::copy_n(results.begin(), count, carried.begin());
    for (std::size_t output = 0; output < outputs.size(); ++output)
      outputs[output].push_back(results[count + output]);
  }
  requireType(node, *carried[0], "result of a stack");
  loops[number] = carried;
  for (const std::vector<Shared> &output : outputs)
    loops[number].push_back(stackOf(output));
  return carried[0];
}

void Interpreter::Run::evaluateScan(const Node &node, int number) {
  const std::vector<Shared> operands = operandsOf(node);
  const int states = node.attributes.states;
  require(states >= 0 && states < static_cast<int>(operands.size()),
          "scan: no sequence; expected one after its states");
  for (std::size_t i = states; i < operands.size(); ++i)
    require(operands[i]->rank() >= 1 && operands[i]->shape[0] == operands[states]->shape[0],
            "scan: lengths of the sequences differ; expected one");
  const std::int64_t steps = operands[states]->shape[0];
  std::vector<Shared> carried(operands.begin(), operands.begin() + states);
  std::vector<std::vector<Shared>> outputs;
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t step = node.attributes.reverse ? steps - 1 - i : i;
    std::vector<Shared> arguments = carried;
    for (std::size_t sequence = states; sequence < operands.size(); ++sequence)
      arguments.push_back(sliceOf(*operands[sequence], step));
    const std::vector<Shared> results = runRegion(node.attributes.index, arguments);
    require(results.size() >= carried.size(), "scan: too few results of the step; expected the next states");
    outputs.resize(results.size() - carried.size(), std::vector<Shared>(static_cast<std::size_t>(steps)));
    std::copy_n(results.begin(), carried.size(), carried.begin());
    for (std::size_t output = 0; output < outputs.size(); ++output)
      outputs[output][step] = results[carried.size() + output];
  }
  loops[number] = carried;
  for (const std::vector<Shared> &output : outputs)
    loops[number].push_back(stackOf(output));
}

Shared Interpreter::Run::evaluateResult(const Node &node) {
  require(node.operands.size() == 1, "result: wrong number of operands; expected one scan");
  const std::vector<Shared> &results = elementOf(loops, node.operands[0], "scan");
  const Shared &result = elementOf(results, node.attributes.index, "result of a loop");
  requireType(node, *result, "result");
  return result;
}

/// Reads see the states before the call: writes are kept separately until the call ends.
Shared Interpreter::Run::evaluateState(const Node &node) {
  const StateTensor &state = elementOf(graph.states, node.attributes.index, "state");
  const std::string name = nameOf(state.scope, graph.name(state));
  auto found = owner.states.find(name);
  Tensor now = found == owner.states.end() ? Tensor::zeros(state.element, state.shape) : found->second;
  require(now.element == state.element && now.shape == state.shape && now.errors.size() == now.values.size() &&
              now.size() == elementCount(now.shape),
          "state " + name + ": wrong type; expected that of the graph, got " + describe(now));
  require(node.operands.size() == (node.op != Op::state),
          "state: wrong number of operands; expected one to write and none to read");
  require(node.op == Op::state || !written.count(name),
          "state: several changes in an entry; expected one, got more of " + name);
  if (node.op == Op::store) {
    const Tensor &value = *valueOf(node.operands[0]);
    require(value.element == now.element && value.shape == now.shape,
            "store: wrong type; expected that of the state " + name + ", got " + describe(value));
    written[name] = flushed(value);
    return nullptr;
  }
  const TensorShape shape = evaluate(node.shape, extents);
  TensorShape rows = state.shape;
  require(!shape.empty() && shape[0] <= rows[0], "state " + name + ": too many rows; expected at most its own number");
  const std::int64_t width = now.size() / rows[0];
  rows[0] = shape[0];
  require(shape == rows && node.element == state.element,
          "state " + name + ": wrong type of the rows; expected its own");
  if (node.op == Op::append) {
    const Tensor &added = *valueOf(node.operands[0]);
    require(added.rank() >= 1 && added.shape[0] <= rows[0], "append: too few rows; expected as many in all or more");
    rows[0] = added.shape[0];
    require(added.element == now.element && added.shape == rows,
            "append: wrong type; expected rows of the state " + name + ", got " + describe(added));
    for (std::int64_t i = 0; i < added.size(); ++i)
      now.set((shape[0] - added.shape[0]) * width + i, added.at(i));
    written[name] = now;
  }
  now.shape[0] = shape[0];
  now.values.resize(static_cast<std::size_t>(shape[0] * width));
  now.errors.resize(now.values.size());
  return std::make_shared<Tensor>(std::move(now));
}

std::vector<Tensor> Interpreter::run(std::size_t entry, const Extents &extents, const std::vector<Tensor> &inputs) {
  const Region &region = elementOf(
      graph.regions, elementOf(graph.entries, static_cast<std::int64_t>(entry), "entry").region, "region of an entry");
  require(region.arguments.size() == inputs.size(), "entry: wrong number of inputs; expected " +
                                                        std::to_string(region.arguments.size()) + ", got " +
                                                        std::to_string(inputs.size()));
  std::vector<Shared> arguments;
  for (const Tensor &input : inputs) {
    Tensor rounded = Tensor::of(input.element, input.shape, input.values);
    if (!input.errors.empty()) {
      require(input.errors.size() == input.values.size(),
              "input: wrong number of errors; expected one for each value, or none");
      rounded.errors = input.errors;
    }
    arguments.push_back(std::make_shared<Tensor>(std::move(rounded)));
  }
  Run call(*this, extents);
  std::vector<Tensor> outputs;
  for (const Shared &output : call.runRegion(graph.entries[entry].region, arguments))
    outputs.push_back(*output);
  call.keepStates();
  return outputs;
}

} // namespace kiln::interpreter
