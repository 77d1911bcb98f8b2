// SPDX-License-Identifier: Apache-2.0
//
// What a trace leaves: plain data that the compiler's frontend imports. Nothing here depends on MLIR, and nothing in
// the compiler depends on the types of the DSL: this file is the boundary.
//
// Names are (scope, leaf) pairs, never strings: libstdc++ 12 cannot move a std::string in a constant expression.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/dim.h"
#include "kiln/names.h"
#include "kiln/op.h"
#include "kiln/storage.h"

namespace kiln {

/// How a checkpoint stores the weight of a linear layer.
enum class WeightOrder : std::uint8_t {
  out_in, // [out, in], as torch.nn.Linear
  in_out, // [in, out], as the Conv1D of GPT-2
};

/// A number for the height of an image and one for its width; one number stands for both.
struct Pair {
  int height = 0, width = 0;

  constexpr Pair() = default;
  constexpr Pair(int both) : height(both), width(both) {}
  constexpr Pair(int height, int width) : height(height), width(width) {}
  constexpr bool operator==(const Pair &) const = default;
};

/// What an element of the result reads of an image: `kernel` elements, `dilation` apart, the next result's `stride`
/// further on; the image has `padding` more elements on every side.
struct Window {
  Pair kernel = 1, stride = 1, padding = 0, dilation = 1;
  constexpr bool operator==(const Window &) const = default;
};

/// Only the fields that ops.def names for the op are meaningful.
struct Attributes {
  int index = -1;
  int axis = -1; // always normalised to [0, rank)
  std::int64_t start = 0;
  bool at_end = false;     // of a slice: the last elements; no start
  int states = 0;          // of a scan: how many operands, arguments and results of the body are its states
  bool reverse = false;    // a scan begins with the last step
  bool first = false;      // of max: its gradient goes to the first of the largest, not to all of them
  int heads = 0;           // H
  int key_value_heads = 0; // G, which divides H
  double scale = 0;
  double epsilon = 0;
  double base = 0;
  double probability = 0;
  double rate = 0;
  bool causal = false;      // query i sees keys 0 .. i + (Tk - Tq)
  bool has_mask = false;    // f32, added to the scaled scores, broadcastable to [..., Tq, Tk]
  bool has_lengths = false; // i32 [...]: keys at or beyond the length do not count
  WeightOrder weight_order = WeightOrder::out_in;
  Window window;
  int groups = 1;
  std::vector<int> permutation;
  std::vector<double> values;
};

/// An operation with one result, which has the node's own number. A scan has several: each is a node `result`, and the
/// scan's own number is no value. A stack's own number is what its last layer gives; what each gave is a `result`.
struct Node {
  Op op{};
  ElementType element{};
  std::vector<Dim> shape;
  std::vector<int> operands; // node numbers; a body may use nodes of the enclosing regions
  Attributes attributes;
  int scope = -1; // where it was traced, for messages and names
};

/// One step of a call path, "h", "attn": Graph::path joins them with dots. Scope 0 is the model itself, with the empty
/// name. A stack's layers share one scope whose `copies` > 0 is their number; the index is written "{}" in a path:
/// "h.{}.ln_1.weight".
struct Scope {
  int parent = -1;
  const char *name = "";
  std::int64_t copies = 0; // 0: not a stack's layer
  int first_child = -1, next_sibling = -1;
  std::vector<int> parameters, states; // traced in this scope, so that asking again finds the same
};

/// What a parameter is before a training, where no file has it (NAME_initialise_weights).
struct Initial {
  enum class Kind : std::uint8_t {
    by_shape, // a matrix as a linear layer's weight [out, in], anything of one axis or none: zeros
    constant,
    fan_in,  // uniform within 1 / sqrt(number) of 0
    uniform, // within the number of 0
    normal,  // around 0, with this standard deviation
  };
  Kind kind = Kind::by_shape;
  double number = 0;

  static constexpr Initial zeros() { return {Kind::constant, 0}; }
  static constexpr Initial ones() { return {Kind::constant, 1}; }
  static constexpr Initial constant(double value) { return {Kind::constant, value}; }
  /// As PyTorch's linear layers and convolutions, of which each output adds up so many products.
  static constexpr Initial fan_in(std::int64_t products) { return {Kind::fan_in, static_cast<double>(products)}; }
  static constexpr Initial uniform(double bound) { return {Kind::uniform, bound}; }
  static constexpr Initial normal(double deviation) { return {Kind::normal, deviation}; }
  constexpr bool operator==(const Initial &) const = default;
};

/// A weight that the caller binds by name.
struct Parameter {
  int scope = -1;
  const char *leaf = "";
  ElementType element{};
  std::vector<std::int64_t> shape;
  bool is_variable = false; // may be written between calls
  Storage storage{};        // as the spec states it; one with fewer bits is of f32
  Initial initial{};
};

constexpr std::int64_t element_count(const Parameter &parameter) {
  std::int64_t product = 1;
  for (std::int64_t extent : parameter.shape)
    product *= extent;
  return product;
}

/// Computed floats of a smaller magnitude are stored in states as 0: what decays would otherwise become subnormal, and
/// arithmetic on such numbers takes many times as long on some CPUs. 2^-100 times any weight above 2^-26 is normal.
inline constexpr float least_state_magnitude = 0x1p-100f;

/// A tensor that lives between calls.
struct StateTensor {
  int scope = -1;
  const char *leaf = "";
  ElementType element{};
  std::vector<std::int64_t> shape;
};

/// A list of nodes: the body of an entry, of a stack, which carries one value, or of a scan, which gets the states and
/// a slice of each sequence, and gives the next states and the step's outputs.
struct Region {
  std::vector<int> nodes;     // in order of execution, without the arguments; a nested stack is one node
  std::vector<int> arguments; // nodes with Op::input: an entry's inputs, or what the body of a loop gets
  std::vector<int> results;   // what an entry returns, or what the body of a loop gives
  std::int64_t count = 1;     // layers
  int scope = -1;             // a stack: the scope of its layers; otherwise -1
  std::vector<int> effects{}; // nodes that change states: append, store
};

/// Whether the node's Attributes::index is the region of its body.
constexpr bool has_body(const Node &node) { return node.op == Op::stack || node.op == Op::scan; }
/// Whether the node may have named extents that no input has: those of states, and of positions that are counted.
constexpr bool brings_symbols(const Node &node) {
  return node.op == Op::state || node.op == Op::append || node.op == Op::expand;
}
/// Whether the node's Attributes::index is a state.
constexpr bool uses_state(const Node &node) {
  return node.op == Op::state || node.op == Op::append || node.op == Op::store;
}

/// An entry point: a function of the generated library.
/// What an entry does with the gradients of its first result by the parameters: nothing, gives them, or changes the
/// parameters.
enum class Update { none, give, sgd, adam, adamw };

struct Training {
  Update update = Update::none;
  double momentum = 0;                      // of sgd
  double beta1 = 0, beta2 = 0, epsilon = 0; // of adam and adamw
  double weight_decay = 0;
  double clip = 0;             // the largest norm of all gradients together; 0: any
  Names frozen{}, undecayed{}; // patterns of the parameters that stay as they are, and that have no weight decay
  bool recomputes = false;     // layers of stacks are computed once more for the gradients, rather than kept
  ElementType activations = ElementType::f32; // as which loops keep what is read for the gradients
  int micro_batches = 0;                      // of a call, each with a loss of its own; 0: the call is one
  double average = 0; // how much of the moving average of the parameters stays in a step; 0: there is none

  constexpr bool changes_parameters() const { return update != Update::none && update != Update::give; }
};

struct Entry {
  const char *name = "forward";
  int region = -1;
  std::vector<const char *> input_names;
  std::vector<const char *> output_names;
  int sequences = 0; // of a batched entry: how many a call takes, at most
  Training training;
};

/// A finished trace. Nodes stand in order of execution, and only those that a result depends on; the order follows from
/// the operands alone, so that every C++ compiler gives the same graph.
struct Graph {
  std::vector<Node> nodes;
  std::vector<Scope> scopes;
  std::vector<Parameter> parameters;
  std::vector<StateTensor> states;
  std::vector<Region> regions;
  std::vector<Entry> entries;

  /// "h.{}.ln_1", empty for the model itself.
  std::string path(int scope) const {
    if (scope <= 0)
      return "";
    std::string above = path(scopes[scope].parent);
    return above + (above.empty() ? "" : ".") + scopes[scope].name + (scopes[scope].copies > 0 ? ".{}" : "");
  }
  /// "h.{}.ln_1.weight".
  std::string name(const Parameter &parameter) const { return name(parameter.scope, parameter.leaf); }
  std::string name(const StateTensor &state) const { return name(state.scope, state.leaf); }
  /// How many tensors a parameter or a state of the scope stands for: the layers of the stacks around it.
  constexpr std::int64_t copies(int scope) const {
    std::int64_t product = 1;
    for (int at = scope; at > 0; at = scopes[at].parent)
      product *= scopes[at].copies > 0 ? scopes[at].copies : 1;
    return product;
  }

private:
  std::string name(int scope, const char *leaf) const {
    std::string owner = path(scope);
    return owner + (owner.empty() ? "" : ".") + leaf;
  }
};

} // namespace kiln
