// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/Interface.h"

#include "compiler/dialect/NearestNames.h"
#include "kiln/batch.h"
#include "kiln/training.h"
#include "runtime/src/core/model.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace kiln {

/// Returns the dotted path of a scope, and adds the layer counts of its stacks to `layers`.
static std::string scopePath(const Graph &graph, int scope, std::vector<int64_t> &layers) {
  if (scope < 0)
    return "";
  const Scope &here = graph.scopes[scope];
  std::string path = scopePath(graph, here.parent, layers);
  if (here.name[0])
    path += std::string(here.name) + ".";
  if (here.copies > 0) {
    path += "{}.";
    layers.push_back(here.copies);
  }
  return path;
}

static void addSymbols(std::vector<Symbol> &symbols, const std::vector<Dim> &shape) {
  for (const Dim &dim : shape)
    for (const Symbol &symbol : dim.symbols)
      if (symbol.present() && std::find(symbols.begin(), symbols.end(), symbol) == symbols.end())
        symbols.push_back(symbol);
}

/// Adds the symbols of all nodes in the region and the regions nested in it. A node may use a symbol that only the
/// inputs of another entry have.
static void addSymbolsOfNodes(std::vector<Symbol> &symbols, const Graph &graph, const Region &region) {
  for (int number : region.nodes) {
    const Node &node = graph.nodes[number];
    addSymbols(symbols, node.shape);
    if (has_body(node))
      addSymbolsOfNodes(symbols, graph, graph.regions[node.attributes.index]);
  }
}

static uint64_t byteCount(const StateInterface &state, size_t firstExtent) {
  int64_t elements = 1;
  for (size_t i = firstExtent; i < state.shape.size(); ++i)
    elements *= state.shape[i];
  return stored_bytes(state.element, elements);
}

uint64_t StateInterface::rowBytes() const { return byteCount(*this, 1); }

uint64_t StateInterface::positionOffset() const {
  return llvm::alignTo(static_cast<uint64_t>(room) * rowBytes(), sizeof(int64_t));
}

/// Places states in sequence after `bytes` bytes of an arena, and returns where they end.
static uint64_t place(std::vector<StateInterface> &states, uint64_t bytes) {
  for (StateInterface &state : states) {
    state.offset = bytes;
    state.stride = KILN_ARENA_ROUND(state.room > 0 ? state.positionOffset() + sizeof(int64_t) : byteCount(state, 0));
    bytes += state.copies * state.stride;
  }
  return bytes;
}

void ModelInterface::placeStates() {
  stateBytes = place(states, states.empty() ? 0 : KILN_MARK_BYTES);
  trainingBytes = optimizerStates.empty() ? stateBytes : place(optimizerStates, stateBytes + KILN_MARK_BYTES);
  if (parallel)
    placeStatesOfRoles(*this);
  stateBytesPerRow = 0;
  for (const StateInterface &state : states)
    if (state.isAppended)
      stateBytesPerRow += state.copies * byteCount(state, 1);
  for (EntryInterface &entry : entries)
    if (!entry.isBatch())
      entry.stateBytes = entry.changesWeights ? trainingBytes : stateBytes;
}

static void describeStates(const Graph &graph, ModelInterface &model) {
  for (const StateTensor &state : graph.states) {
    std::vector<int64_t> layers;
    scopePath(graph, state.scope, layers);
    model.states.push_back(
        {graph.name(state), state.element, state.shape, graph.copies(state.scope), std::move(layers)});
  }
  for (const Node &node : graph.nodes)
    if (node.op == Op::append)
      model.states[node.attributes.index].isAppended = true;
}

/// Marks the states that nodes of the region and of nested regions read or write.
static void markStates(std::vector<bool> &isUsed, const Graph &graph, const Region &region) {
  for (const std::vector<int> *nodes : {&region.nodes, &region.effects})
    for (int number : *nodes) {
      const Node &node = graph.nodes[number];
      if (uses_state(node))
        isUsed[node.attributes.index] = true;
      if (has_body(node))
        markStates(isUsed, graph, graph.regions[node.attributes.index]);
    }
}

static std::vector<std::string> statesOf(const Graph &graph, const Region &region) {
  std::vector<bool> isUsed(graph.states.size());
  markStates(isUsed, graph, region);
  std::vector<std::string> names;
  for (size_t i = 0; i < isUsed.size(); ++i)
    if (const std::string name = written_name(graph.name(graph.states[i]));
        isUsed[i] && !llvm::is_contained(names, name))
      names.push_back(name);
  return names;
}

/// Describes the optimiser state. Entries whose optimisers have the same state for a parameter share it.
static void describeOptimizerState(const Graph &graph, ModelInterface &model) {
  for (const Entry &entry : graph.entries)
    for (int number : gradient_parameters(graph, entry))
      for (const std::string &moment : optimizer_states(graph, entry.training, number)) {
        const Parameter &parameter = graph.parameters[number];
        const std::string name = optimizer_state_name(moment, graph.name(parameter));
        if (model.findState(name))
          continue;
        std::vector<int64_t> shape = parameter.shape.empty() ? std::vector<int64_t>{1} : parameter.shape;
        std::vector<int64_t> layers;
        scopePath(graph, parameter.scope, layers);
        model.optimizerStates.push_back(
            {name, parameter.element, shape, graph.copies(parameter.scope), std::move(layers)});
      }
}

/// Returns the interface of NAME_batch, the batched version of an entry (compiler/transforms/BatchEntry.h).
static EntryInterface describeBatch(const EntryInterface &single, const BatchExtents &extents) {
  EntryInterface batch{batch_name(single.name),
                       {extents.sequences},
                       single.arguments,
                       single.symbols,
                       "",
                       single.name,
                       0,
                       false,
                       single.states};
  bool hasRows = false;
  for (ArgumentInterface &argument : batch.arguments) {
    Dim &rows = argument.shape.front();
    hasRows |= !rows.fixed();
    Dim whole(0);
    whole.factor = rows.fixed() ? rows.offset : 1;
    whole.symbols[0] = rows.fixed() ? extents.sequences : extents.rows;
    rows = whole;
  }
  if (hasRows) {
    batch.symbols.push_back(extents.rows);
    batch.ownRows = extents.own.name;
  }
  return batch;
}

/// Returns a parameter's initialisation as a constant or a distribution that does not depend on the shape.
static Initial resolve(const Parameter &parameter) {
  const Initial &given = parameter.initial;
  if (given.kind == Initial::Kind::fan_in)
    return Initial::uniform(1 / std::sqrt(given.number));
  if (given.kind != Initial::Kind::by_shape)
    return given;
  if (parameter.shape.size() < 2)
    return Initial::zeros();
  return Initial::uniform(1 / std::sqrt(static_cast<double>(element_count(parameter) / parameter.shape.front())));
}

ModelInterface describeInterface(const Graph &graph, std::string name) {
  ModelInterface model;
  model.name = std::move(name);
  for (const Entry &entry : graph.entries)
    for (int input : graph.regions[entry.region].arguments)
      addSymbols(model.symbols, graph.nodes[input].shape);
  for (const Node &node : graph.nodes)
    if (brings_symbols(node))
      addSymbols(model.symbols, node.shape);
  const BatchExtents batch = batch_extents(graph);
  for (const Symbol &symbol : {batch.sequences, batch.rows})
    if (symbol.present())
      model.symbols.push_back(symbol);
  describeStates(graph, model);
  describeOptimizerState(graph, model);

  std::vector<EntryInterface> batches; // appended after the others
  for (const Entry &entry : graph.entries) {
    EntryInterface &to = model.entries.emplace_back();
    to.name = entry.name;
    const Region &region = graph.regions[entry.region];
    auto add = [&](std::string argument, ElementType element, std::vector<Dim> shape, bool isOutput) {
      to.arguments.push_back({std::move(argument), element, std::move(shape), isOutput, {}});
    };
    auto addNode = [&](int node, const char *argument, bool isOutput) {
      add(argument, graph.nodes[node].element, graph.nodes[node].shape, isOutput);
    };
    // Adds an argument that is stacked over the micro-batches.
    auto addStacked = [&](int node, const char *argument, bool isOutput) {
      addNode(node, argument, isOutput);
      std::vector<Dim> &shape = to.arguments.back().shape;
      if (entry.training.micro_batches > 0)
        shape.insert(shape.begin(), Dim(entry.training.micro_batches));
    };
    for (size_t i = 0; i < region.arguments.size(); ++i)
      addStacked(region.arguments[i], entry.input_names[i], false);
    for (const TrainingInput &input : training_inputs(graph, entry)) {
      add(input.name, input.element, {}, false);
      if (input.name == std::string_view("step"))
        to.arguments.back().check = ValueCheck{1, Dim(std::numeric_limits<int32_t>::max())};
    }
    for (size_t i = 0; i < region.results.size(); ++i)
      if (i == 0 && entry.training.update != Update::none)
        addNode(region.results[i], entry.output_names[i], true);
      else
        addStacked(region.results[i], entry.output_names[i], true);
    if (entry.training.update == Update::give)
      for (int number : gradient_parameters(graph, entry)) {
        const Parameter &parameter = graph.parameters[number];
        const std::vector<int64_t> shape = gradient_shape(graph, parameter);
        add(gradient_name(graph.name(parameter)), parameter.element, {shape.begin(), shape.end()}, true);
      }
    if (entry.training.changes_parameters() && entry.training.clip > 0)
      add("grad_norm", ElementType::f32, {}, true);
    to.changesWeights = entry.training.changes_parameters();
    to.states = statesOf(graph, region);
    std::vector<Symbol> used;
    for (const ArgumentInterface &argument : to.arguments)
      addSymbols(used, argument.shape);
    addSymbolsOfNodes(used, graph, region);
    for (const Symbol &symbol : model.symbols)
      if (std::find(used.begin(), used.end(), symbol) != used.end())
        to.symbols.push_back(symbol);
    if (entry.sequences > 0)
      batches.push_back(describeBatch(to, batch));
  }
  llvm::append_range(model.entries, batches);
  model.placeStates();

  for (const Parameter &parameter : graph.parameters) {
    WeightInterface &weight = model.weights.emplace_back();
    weight.name = scopePath(graph, parameter.scope, weight.layers) + parameter.leaf;
    for (int64_t count : weight.layers)
      weight.copies *= count;
    weight.element = parameter.element;
    weight.isVariable = parameter.is_variable;
    weight.initial = resolve(parameter);
    weight.shape = parameter.shape;
    int64_t elements = weight.copies;
    for (int64_t extent : weight.shape)
      elements *= extent;
    model.parameters += elements;
  }
  std::sort(model.weights.begin(), model.weights.end(), [](auto &a, auto &b) { return a.name < b.name; });
  return model;
}

uint64_t stagingBytes(const EntryInterface &entry) {
  uint64_t bytes = 0;
  for (const ArgumentInterface &argument : entry.arguments) {
    int64_t elements = 1;
    for (const Dim &dim : argument.shape)
      elements *= dim.max();
    bytes += KILN_ARENA_ROUND(stored_bytes(argument.element, elements));
  }
  return bytes;
}

EntryInterface derivingInterface() {
  EntryInterface entry;
  entry.name = "bind";
  return entry;
}

bool hasDevice(const std::vector<Variant> &variants) {
  return llvm::any_of(variants, [](const Variant &variant) { return variant.isOnDevice(); });
}

std::string tuningDigest(const std::vector<Variant> &variants) {
  std::vector<std::string> lines;
  for (const Variant &variant : variants)
    for (const KernelSummary &kernel : variant.kernels)
      lines.insert(lines.end(), kernel.choice.records.begin(), kernel.choice.records.end());
  return tuningDigest(std::move(lines));
}

/// Splits a tensor of nested stacks into one tensor for each layer of the outer stacks. `add` gets such a tensor, with
/// the layers of the innermost stack as its copies, and the number of its first copy. A tensor of a pattern of layers
/// is split into one for each layer, since the numbers of these are not consecutive.
template <class Tensor> static void unfold(const Tensor &tensor, llvm::function_ref<void(Tensor, int64_t)> add) {
  if (has_number_parts(tensor.name)) {
    for (const auto &[copy, name] : llvm::enumerate(names_in_layers(tensor.name, tensor.layers))) {
      Tensor row = tensor;
      row.name = name;
      row.copies = 1;
      row.layers.clear();
      add(std::move(row), static_cast<int64_t>(copy));
    }
    return;
  }
  const int64_t inner = tensor.layers.empty() ? 1 : tensor.layers.back();
  for (int64_t first = 0; first < tensor.copies; first += inner) {
    Tensor row = tensor;
    row.copies = inner;
    row.layers = tensor.layers.empty() ? std::vector<int64_t>() : std::vector{inner};
    // Compute the numbers of the outer layers, innermost first: `first` counts over all of them.
    int64_t number = first / inner;
    size_t hole = row.name.rfind("{}");
    for (size_t level = tensor.layers.size(); level-- > 1; number /= tensor.layers[level - 1]) {
      hole = row.name.rfind("{}", hole - 1);
      row.name.replace(hole, 2, std::to_string(number % tensor.layers[level - 1]));
    }
    add(std::move(row), first);
  }
}

void unfoldNestedStacks(ModelInterface &model, std::vector<Variant> &variants) {
  const size_t roles = model.parallel ? model.parallel->roles.size() : 1;
  std::vector<WeightInterface> weights;
  std::vector<TensorLayout> layouts;
  std::vector<std::vector<WeightPlacement>> placements(variants.size());
  for (size_t role = 0; role < roles; ++role) {
    weights.clear();
    layouts.clear();
    for (size_t i = 0; i < model.weights.size(); ++i)
      unfold<WeightInterface>(model.weights[i], [&](WeightInterface row, int64_t first) {
        weights.push_back(std::move(row));
        if (model.parallel)
          layouts.push_back(model.parallel->weights[i]);
        for (size_t v = 0; v < variants.size(); ++v) {
          WeightPlacement &place = placements[v].emplace_back(variants[v].placements[role * model.weights.size() + i]);
          place.offset += first * place.stride;
        }
      });
  }
  model.weights = std::move(weights);
  if (model.parallel)
    model.parallel->weights = std::move(layouts);
  for (size_t v = 0; v < variants.size(); ++v)
    variants[v].placements = std::move(placements[v]);
}

std::vector<StateInterface> nameStates(const std::vector<StateInterface> &states) {
  std::vector<StateInterface> named;
  for (const StateInterface &state : states)
    if (!has_number_parts(state.name))
      named.push_back(state);
    else
      unfold<StateInterface>(state, [&](StateInterface row, int64_t copy) {
        row.offset += copy * row.stride;
        named.push_back(std::move(row));
      });
  return named;
}

std::vector<TrainingState> trainingStates(const ModelInterface &model) {
  std::vector<TrainingState> all;
  auto add = [&](const StateInterface &state, const TensorLayout *layout) {
    unfold<StateInterface>(state, [&](StateInterface row, int64_t first) {
      const uint64_t before = first * row.stride;
      row.offset += before;
      TrainingState &added = all.emplace_back(TrainingState{std::move(row), std::nullopt});
      if (!layout)
        return;
      added.layout = *layout;
      for (uint64_t &offset : added.layout->offsets)
        offset += before;
    });
  };
  if (!model.trains())
    return all;
  for (auto [i, state] : llvm::enumerate(model.states)) {
    StateInterface named = state;
    named.name = "state:" + state.name;
    add(named, model.parallel ? &model.parallel->states[i] : nullptr);
  }
  for (auto [i, moment] : llvm::enumerate(model.optimizerStates))
    add(moment, model.parallel ? &model.parallel->optimizerStates[i] : nullptr);
  return all;
}

bool ModelInterface::trains() const {
  return llvm::any_of(entries, [](const EntryInterface &entry) { return entry.changesWeights; });
}

uint64_t storedBytes(const WeightInterface &weight, const WeightPlacement &place) {
  int64_t elements = 1;
  for (int64_t extent : weight.shape)
    elements *= extent;
  uint64_t bytes = stored_bytes(place.element, elements);
  const Format *format = find_placed_format(place.element, place.group, place.zeros != 0);
  if (!format || !place.scales)
    return bytes;
  const uint64_t outputs = weight.shape[place.dim];
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS];
  kiln_format_arrays(format, place.group, arrays);
  for (const kiln_format_array_t &array : llvm::drop_begin(arrays))
    bytes += outputs * kiln_format_items(&array, elements / outputs) * array.bytes;
  return bytes;
}

const StateInterface *ModelInterface::findState(const std::string &state) const {
  for (const std::vector<StateInterface> *kept : {&states, &optimizerStates})
    for (const StateInterface &each : *kept)
      if (each.name == state)
        return &each;
  return nullptr;
}

const WeightInterface *ModelInterface::findWeight(const std::string &weight) const {
  auto found = std::lower_bound(weights.begin(), weights.end(), weight,
                                [](const WeightInterface &a, const std::string &b) { return a.name < b; });
  return found != weights.end() && found->name == weight ? &*found : nullptr;
}

std::string toString(const Dim &dim, llvm::function_ref<std::string(const Symbol &)> name) {
  if (dim.fixed())
    return std::to_string(dim.offset);
  std::string text;
  for (int i = 0; i < dim.terms(); ++i) {
    const std::int64_t factor = i == 0 ? dim.factor : dim.second;
    text += i == 0 ? "" : " + ";
    text += factor == 1 ? "" : fmt::format("{} * ", factor);
    text += name(dim.symbols[2 * i]);
    if (dim.symbols[2 * i + 1].present())
      text += " * " + name(dim.symbols[2 * i + 1]);
  }
  return dim.offset ? fmt::format("{} + {}", text, dim.offset) : text;
}

std::string toString(const Dim &dim) {
  return toString(dim, [](const Symbol &symbol) { return std::string(symbol.name); });
}

const Symbol *findLeast(const std::vector<Symbol> &symbols, const Symbol &symbol) {
  for (const Symbol &other : symbols)
    if (*symbol.least && std::strcmp(other.name, symbol.least) == 0)
      return &other;
  return nullptr;
}

/// Checks the value of an extent against its bounds and, if that has a value too, against the extent that it must not
/// be below.
static std::string checkExtent(const Symbol &symbol, const std::map<std::string, int64_t> &extents) {
  auto given = extents.find(symbol.name);
  if (given == extents.end())
    return "";
  if (given->second < symbol.min || given->second > symbol.max)
    return fmt::format("dimension \"{}\": size is out of range; expected one in [{}, {}], got {}", symbol.name,
                       symbol.min, symbol.max, given->second);
  auto least = extents.find(symbol.least);
  if (least != extents.end() && given->second < least->second)
    return fmt::format("dimension \"{}\": size is less than \"{}\"; expected at least {}, got {}", symbol.name,
                       symbol.least, least->second, given->second);
  return "";
}

std::string checkExtents(const ModelInterface &model, const std::map<std::string, int64_t> &extents) {
  for (const auto &[name, value] : extents) {
    bool isThere = false;
    std::vector<std::string> names;
    for (const EntryInterface &entry : model.entries)
      for (const Symbol &symbol : entry.symbols) {
        names.push_back(symbol.name);
        isThere = isThere || name == symbol.name;
        if (std::string wrong = checkExtent(symbol, extents); !wrong.empty())
          return wrong;
      }
    if (!isThere)
      return fmt::format("no entry has a dimension \"{}\"{}", name, nearestNames(name, names));
  }
  return "";
}

ArenaBytes arenaBytes(const std::vector<Variant> &variants, size_t entry) {
  ArenaBytes most;
  for (const Variant &variant : variants)
    for (const EntryCode &code : variant.entries) {
      if (code.entry != entry)
        continue;
      const uint64_t fixed = kiln_arena_fixed_bytes(code.planBytes, code.scratchBytes, code.taskBytes);
      most.fixed = std::max(most.fixed, fixed + code.stagingBytes);
      most.perWorker = std::max(most.perWorker, kiln_arena_worker_bytes(code.taskBytes));
    }
  return most;
}

} // namespace kiln
