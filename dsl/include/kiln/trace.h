// SPDX-License-Identifier: Apache-2.0
//
// The graph builder. Every operation appends one node to the current region, under the current scope, so tracing is
// linear in the size of the model. It works in constant expressions and at run time.
//
// A mistake does not stop the trace (reporter.h): the operation returns the type that the result should have had.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kiln/names.h"
#include "kiln/reporter.h"
#include "kiln/stored_weights.h"
#include "kiln/training.h"

namespace kiln {

class Tracer : public Reporter {
public:
  /// Scope 0 is the model itself.
  constexpr Tracer() {
    graph.scopes.push_back({});
    paths.push_back(14695981039346656037u);
    graph.nodes.reserve(256);
  }

  /// The graph so far; order.h brings it into its final order.
  constexpr Graph take() { return std::move(graph); }

  /// Sets the source line of the next operations; an unknown site keeps the previous one.
  constexpr Tracer &at(Site where) {
    if (where.line != 0 && !keeps_site)
      site = where;
    return *this;
  }
  /// Whether at() keeps the line as it is, from now on; returns the former choice.
  constexpr bool keep_site(bool keeps) { return std::exchange(keeps_site, keeps); }

  /// Appends a node to the current region and returns its number.
  constexpr int add(Node &&node) {
    int id = append(std::move(node));
    graph.regions[region].nodes.push_back(id);
    return id;
  }
  /// Appends an argument to the current region.
  constexpr int argument(ElementType element, std::vector<Dim> shape) {
    Node node{Op::input, element, std::move(shape), {}, {}};
    node.attributes.index = static_cast<int>(graph.regions[region].arguments.size());
    int id = append(std::move(node));
    graph.regions[region].arguments.push_back(id);
    return id;
  }
  /// Checks the dimensions of a tensor that enters the trace.
  template <std::size_t Rank> constexpr void declare(const Shape<Rank> &shape) {
    check_extents(shape);
    for (const Dim &dim : shape)
      for (const Symbol &symbol : dim.symbols)
        if (symbol.present())
          check_bounds(symbol);
  }
  /// Checks dimensions whose symbols other tensors of the trace must have, which finish() verifies.
  template <std::size_t Rank> constexpr void borrow(const Shape<Rank> &shape) {
    check_extents(shape);
    for (const Dim &dim : shape)
      for (const Symbol &symbol : dim.symbols)
        if (symbol.present())
          borrowed.push_back({symbol, site, scope});
  }
  /// Runs the checks that need the whole model. A template, since clang 22 instantiates the callees of a plain function
  /// too late for a constant expression.
  template <class = void> constexpr void finish() {
    auto has = [&](const char *name) {
      for (const Symbol &known : symbols)
        if (same_text(known.name, name))
          return true;
      return false;
    };
    for (const Borrowed &use : borrowed)
      if (!has(use.symbol.name)) {
        site = use.site;
        scope = use.scope;
        fail(rules::dim_c9, use.symbol.name);
      } else {
        check_bounds(use.symbol);
      }
    site = {};
    scope = 0;
    for (const Symbol &symbol : symbols)
      if (*symbol.least && !has(symbol.least))
        fail(rules::dim_c6, Text().put(symbol.name).put(" from ").put(symbol.least).data());
    if (const detail::Misreading found = detail::find_misreading(graph); found.parameter >= 0) {
      scope = graph.parameters[found.parameter].scope;
      fail(rules::parameter_c7,
           Text().put(graph.parameters[found.parameter].leaf).put(" in ").put(name_of(found.reader)).data());
    }
    if (dotted) {
      check_paths(graph.parameters);
      check_paths(graph.states);
      check_numbers();
    }
  }
  constexpr void result(int node) { graph.regions[region].results.push_back(node); }
  constexpr const Node &node(int id) const { return graph.nodes[id]; }
  constexpr const Graph &traced() const { return graph; }
  /// The symbols of the model, after finish().
  constexpr const std::vector<Symbol> &extents() const { return symbols; }

  /// Returns the parameter `leaf` of the current scope; a repeated request returns the same one.
  template <std::size_t Rank>
  constexpr int parameter(const char *leaf, const WeightType &type, const Shape<Rank> &shape,
                          const Initial &initial = {}) {
    for (int known : graph.scopes[scope].parameters)
      if (same_text(graph.parameters[known].leaf, leaf)) {
        const Parameter &before = graph.parameters[known];
        if (before.element != type.element || !same_extents(before.shape, shape))
          fail(rules::parameter_c1, shape, before.shape);
        if (before.storage != type.storage)
          fail(rules::parameter_c5, name_of(type.storage), name_of(before.storage));
        return use(known);
      }
    check_leaf(leaf);
    int id = static_cast<int>(graph.parameters.size());
    if (Rank < 2 && type.storage.has_fewer_bits())
      fail(rules::parameter_c6, shape);
    Parameter made{scope, leaf, type.element, {}, false, type.storage, initial};
    for (const Dim &dim : shape)
      made.shape.push_back(dim.offset);
    declare(shape);
    graph.parameters.push_back(std::move(made));
    graph.scopes[scope].parameters.push_back(id);
    uses.push_back({});
    return use(id);
  }

  /// Marks the parameters whose names match one of the patterns as variables, after finish().
  constexpr void make_variables(const Names &patterns) {
    if (patterns.count > Names::capacity)
      return fail(rules::model_c15, patterns.count);
    for (int i = 0; i < patterns.count; ++i) {
      bool is_used = false;
      for (Parameter &parameter : graph.parameters) {
        Text name = full_name(parameter);
        const bool is_match = detail::matches(patterns.items[i], name.data());
        parameter.is_variable |= is_match;
        is_used |= is_match;
        if (is_match && parameter.storage.has_fewer_bits())
          fail(rules::model_c16, Text().put(name_of(parameter.storage)).put(" of ").put(name.data()).data());
      }
      if (!is_used)
        fail(rules::model_c14, with_nearest(patterns.items[i]).data());
    }
  }

  /// Marks the parameters that an entry updates as variables, after finish().
  constexpr void make_trained_variables() {
    for (const Entry &entry : graph.entries) {
      check_training(entry);
      if (!entry.training.changes_parameters())
        continue;
      std::vector<int> read(graph.parameters.size(), 0);
      detail::mark_parameters(graph, entry.region, read);
      for (std::size_t i = 0; i < read.size(); ++i) {
        Parameter &parameter = graph.parameters[i];
        Text name = full_name(parameter);
        if (!read[i] || detail::matches_one(entry.training.frozen, name.data()))
          continue;
        if (parameter.element != ElementType::f32 || parameter.storage.has_fewer_bits())
          fail(rules::train_c1, name.data());
        parameter.is_variable = true;
      }
    }
  }

  /// Returns the state `leaf` of the current scope; a repeated request returns the same one.
  template <std::size_t Rank> constexpr int state(const char *leaf, ElementType element, const Shape<Rank> &shape) {
    if (home_of(scope) != region || in_scan())
      fail(rules::state_c1, leaf);
    for (int known : graph.scopes[scope].states)
      if (same_text(graph.states[known].leaf, leaf)) {
        if (graph.states[known].element != element || !same_extents(graph.states[known].shape, shape))
          fail(rules::state_c5, shape, graph.states[known].shape);
        return known;
      }
    check_leaf(leaf);
    int id = static_cast<int>(graph.states.size());
    StateTensor made{scope, leaf, element, {}};
    for (const Dim &dim : shape)
      made.shape.push_back(dim.offset);
    declare(shape);
    graph.states.push_back(std::move(made));
    graph.scopes[scope].states.push_back(id);
    changes.push_back({});
    return id;
  }
  /// Records that the entry reads, appends to or replaces a state.
  constexpr void change(int state, Op op) {
    int entry = region;
    while (enclosing[entry] >= 0)
      entry = enclosing[entry];
    Change &known = changes[state];
    if (known.entry != entry)
      known = {entry};
    const char *name = graph.states[state].leaf;
    if (known.appended || (op == Op::append && (known.read || known.stored)))
      fail(rules::state_c2, name);
    if (op == Op::store && known.stored)
      fail(rules::state_c3, name);
    known.appended |= op == Op::append;
    known.read |= op == Op::state;
    known.stored |= op == Op::store;
  }
  constexpr void effect(int node) { graph.regions[region].effects.push_back(node); }

  /// Returns the function of this name; a repeated request must have the same types.
  constexpr int function(CustomFunction &&wanted) {
    for (std::size_t i = 0; i < graph.functions.size(); ++i)
      if (const CustomFunction &known = graph.functions[i]; same_text(known.name, wanted.name)) {
        if (known.operands != wanted.operands || known.results != wanted.results ||
            known.workspace != wanted.workspace || !same_text(known.derivative, wanted.derivative))
          fail(rules::custom_c3, wanted.name);
        return static_cast<int>(i);
      }
    graph.functions.push_back(std::move(wanted));
    return static_cast<int>(graph.functions.size()) - 1;
  }

  /// Opens a region and returns its number. The second overload opens the body of a stack, the first any other region.
  constexpr int open() { return open(-1, 1); }
  constexpr int open(int stack_scope, std::int64_t count) {
    int id = static_cast<int>(graph.regions.size());
    graph.regions.push_back({});
    graph.regions[id].scope = stack_scope;
    graph.regions[id].count = count;
    enclosing.push_back(region);
    return region = id;
  }
  constexpr void close() { region = enclosing[region]; }
  constexpr void entry(Entry entry) { graph.entries.push_back(std::move(entry)); }
  constexpr const std::vector<Entry> &entries() const { return graph.entries; }

  /// A new scope below the current one.
  constexpr int child(const char *name, std::int64_t copies) {
    if (*name == 0)
      fail(rules::layer_c2, "an empty one");
    check_name(name);
    for (int known = graph.scopes[scope].first_child; known >= 0; known = graph.scopes[known].next_sibling)
      if (same_text(graph.scopes[known].name, name)) {
        fail(rules::layer_c1, name);
        break;
      }
    return add_scope(name, copies);
  }
  /// The same for a name that is not of the spec: part of the number of a layer (numbered.h).
  constexpr int add_scope(const char *name, std::int64_t copies) {
    int *link = &graph.scopes[scope].first_child;
    while (*link >= 0)
      link = &graph.scopes[*link].next_sibling;
    int id = static_cast<int>(graph.scopes.size());
    Scope made;
    made.parent = scope;
    made.name = name;
    made.copies = copies;
    *link = id;
    graph.scopes.push_back(std::move(made));
    paths.push_back(detail::hashed(detail::hashed(paths[scope], name), copies > 0 ? ".{}." : "."));
    return id;
  }
  /// Returns how many layers a scope stands for.
  constexpr std::int64_t copies(int of) const { return graph.copies(of); }
  /// Makes `to` the current scope and returns the previous one.
  constexpr int enter(int to) { return std::exchange(scope, to); }

private:
  struct Use {
    int region = -1, node = -1;
  };
  struct Change {
    int entry = -1; // the region of the entry
    bool read = false, appended = false, stored = false;
  };

  constexpr int append(Node &&node) {
    node.scope = scope;
    graph.nodes.push_back(std::move(node));
    return static_cast<int>(graph.nodes.size()) - 1;
  }

  template <std::size_t Rank> constexpr void check_extents(const Shape<Rank> &shape) {
    if (detail::sound(shape))
      return;
    for (const Dim &dim : shape)
      if (dim.flaw != Flaw::none)
        fail(rule_of(dim.flaw), dim);
      else if (dim.min() < 1)
        fail(rules::tensor_c1, dim);
      else if (dim.max() > Dim::largest)
        fail(rules::dim_c7, dim);
    fail(Rank > largest_rank ? rules::tensor_c3 : rules::tensor_c4, shape);
  }
  constexpr void check_name(const char *name) {
    if (!detail::is_printable(name))
      fail(rules::layer_c4, "others");
    dotted = dotted || detail::has_dot(name);
  }
  constexpr void check_leaf(const char *leaf) {
    if (*leaf == 0)
      fail(rules::parameter_c3, "an empty one");
    check_name(leaf);
  }
  /// Reports a name clash such as "a.b" of the model and "b" of a layer "a". Without dots, layer_c1 has reported it.
  template <class Leaf> constexpr void check_paths(const std::vector<Leaf> &leaves) {
    std::vector<std::uint64_t> hashes;
    for (const auto &leaf : leaves)
      hashes.push_back(detail::hashed(paths[leaf.scope], leaf.leaf));
    std::vector<std::uint64_t> sorted = hashes;
    std::sort(sorted.begin(), sorted.end());
    auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    for (std::size_t i = 0; twice != sorted.end() && i < hashes.size(); ++i)
      if (hashes[i] == *twice) {
        scope = leaves[i].scope;
        fail(rules::parameter_c4, leaves[i].leaf);
      }
  }
  /// Reports a name such as "h.0" of the owner of a stack "h", whose layers have the names "h.0", "h.1" ...
  constexpr void check_numbers() {
    std::vector<std::uint64_t> stacks; // hashes of the names' parts before the number
    for (const Scope &each : graph.scopes)
      if (detail::is_number_part(each.name))
        stacks.push_back(paths[each.parent]);
      else if (each.copies > 0)
        stacks.push_back(detail::hashed(detail::hashed(paths[each.parent], each.name), "."));
    auto check = [&](int owner, const char *name) {
      if (!detail::continues_with_digit(paths[owner], name, stacks))
        return;
      scope = owner;
      fail(rules::layer_c9, name);
    };
    for (const Scope &each : graph.scopes)
      if (each.parent >= 0)
        check(each.parent, each.name);
    for (const Parameter &each : graph.parameters)
      check(each.scope, each.leaf);
    for (const StateTensor &each : graph.states)
      check(each.scope, each.leaf);
  }
  constexpr void check_bounds(const Symbol &symbol) {
    if (!detail::is_identifier(symbol.name))
      fail(rules::dim_c8, symbol.name);
    for (const Symbol &known : symbols)
      if (same_text(known.name, symbol.name)) {
        if (!(known == symbol)) {
          Text got, expected;
          got.put(symbol.name).put(" ").put(symbol.min).put("..").put(symbol.max);
          expected.put(known.name).put(" ").put(known.min).put("..").put(known.max);
          fail(rules::dim_c5, got.data(), expected.data());
        }
        return;
      }
    symbols.push_back(symbol);
  }

  template <std::size_t Rank>
  static constexpr bool same_extents(const std::vector<std::int64_t> &known, const Shape<Rank> &shape) {
    bool same = known.size() == Rank;
    for (std::size_t i = 0; same && i < Rank; ++i)
      same = known[i] == shape[i].offset;
    return same;
  }

  /// Returns the enclosing region that is the body of the innermost stack around `owner`, or that of the entry if there
  /// is no such stack; -1 if the current region is not inside that stack.
  constexpr int home_of(int owner) const {
    while (owner > 0 && graph.scopes[owner].copies == 0)
      owner = graph.scopes[owner].parent;
    int home = region;
    while (home >= 0 && (owner > 0 ? graph.regions[home].scope != owner : enclosing[home] >= 0))
      home = enclosing[home];
    return home;
  }

  /// Whether the current region is the body of a scan, or of a stack nested in one.
  constexpr bool in_scan() const {
    for (int at = region; enclosing[at] >= 0; at = enclosing[at])
      if (graph.regions[at].scope < 0)
        return true;
    return false;
  }

  /// A parameter's node belongs to the innermost stack that owns it, or otherwise to the entry, so that a body captures
  /// the parameters of its owner.
  constexpr int use(int parameter) {
    int home = home_of(graph.parameters[parameter].scope);
    if (home < 0) {
      fail(rules::parameter_c2, graph.parameters[parameter].leaf);
      home = region;
    }
    if (uses[parameter].region != home) {
      const Parameter &source = graph.parameters[parameter];
      Node node{Op::parameter, source.element, {source.shape.begin(), source.shape.end()}, {}, {}};
      node.attributes.index = parameter;
      int id = append(std::move(node));
      graph.nodes[id].scope = source.scope;
      graph.regions[home].nodes.push_back(id);
      uses[parameter] = {home, id};
    }
    return uses[parameter].node;
  }

  constexpr void check_training(const Entry &entry) {
    const Training &given = entry.training;
    if (!detail::fits_its_kind(given))
      fail(rules::train_c6, entry.name);
    if (given.micro_batches != 0 && !detail::can_accumulate(graph, entry))
      fail(rules::train_c7, entry.name);
    if (given.activations != ElementType::f32 && given.activations != ElementType::bf16)
      fail(rules::train_c9, given.activations);
    if (const detail::Mistake found = detail::find_mistake(given); found.rule)
      fail(found.rule, found.value);
    check_patterns(given.frozen);
    check_patterns(given.undecayed);
    if (given.undecayed.count > 0 && given.weight_decay == 0)
      fail(rules::train_c13, entry.name);
    if (given.frozen.count > 0 && !trains_some(entry))
      fail(rules::train_c12, entry.name);
  }
  /// Whether the entry reads a parameter that is not frozen.
  constexpr bool trains_some(const Entry &entry) const {
    std::vector<int> read(graph.parameters.size(), 0);
    detail::mark_parameters(graph, entry.region, read);
    for (std::size_t i = 0; i < read.size(); ++i)
      if (read[i] && !detail::matches_one(entry.training.frozen, full_name(graph.parameters[i]).data()))
        return true;
    return false;
  }
  /// Checks the patterns of the frozen parameters, or of those without weight decay.
  constexpr void check_patterns(const Names &patterns) {
    if (patterns.count > Names::capacity)
      return fail(rules::train_c11, patterns.count);
    for (int i = 0; i < patterns.count; ++i) {
      bool is_used = false;
      for (const Parameter &parameter : graph.parameters)
        is_used |= detail::matches(patterns.items[i], full_name(parameter).data());
      if (!is_used)
        fail(rules::train_c10, with_nearest(patterns.items[i]).data());
    }
  }
  int region = -1;
  bool dotted = false; // a name has a dot
  bool keeps_site = false;
  std::vector<std::uint64_t> paths; // indexed by scope: the hash of its path
  std::vector<int> enclosing;       // indexed by region
  std::vector<Use> uses;            // indexed by parameter: where it was last used
  std::vector<Change> changes;      // indexed by state: how the last entry changed it
  struct Borrowed {
    Symbol symbol;
    Site site;
    int scope;
  };
  std::vector<Symbol> symbols;
  std::vector<Borrowed> borrowed;
};

/// Makes a scope current for the duration of a block, and restores the scope and the line afterwards.
class ScopeGuard {
public:
  constexpr ScopeGuard(Tracer &tracer, int scope) : tracer(tracer), former(tracer.enter(scope)), site(tracer.where()) {}
  constexpr ~ScopeGuard() {
    tracer.enter(former);
    tracer.at(site);
  }
  ScopeGuard(const ScopeGuard &) = delete;
  ScopeGuard &operator=(const ScopeGuard &) = delete;

private:
  Tracer &tracer;
  int former;
  Site site;
};

} // namespace kiln
