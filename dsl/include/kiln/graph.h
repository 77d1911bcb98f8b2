// SPDX-License-Identifier: Apache-2.0
//
// The result of a trace: plain data that the compiler's frontend imports. Nothing here depends on MLIR, and nothing in
// the compiler depends on the types of the DSL: this file is the interface between the two.
//
// Names are (scope, leaf) pairs, never strings: libstdc++ 12 cannot move a std::string in a constant expression.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/dim.h"
#include "kiln/names.h"
#include "kiln/numbered.h"
#include "kiln/op.h"
#include "kiln/storage.h"

namespace kiln {

/// How a checkpoint stores the weight of a linear layer.
enum class WeightOrder : std::uint8_t {
  out_in, // [out, in], as torch.nn.Linear
  in_out, // [in, out], as the Conv1D of GPT-2
};

/// A value for the height and one for the width of an image; a single number sets both.
struct Pair {
  int height = 0, width = 0;

  constexpr Pair() = default;
  constexpr Pair(int both) : height(both), width(both) {}
  constexpr Pair(int height, int width) : height(height), width(width) {}
  constexpr bool operator==(const Pair &) const = default;
};

/// The window of an image that one result element reads: `kernel` elements, `dilation` apart; the window of the next
/// result starts `stride` later. The image has `padding` more elements on every side.
struct Window {
  Pair kernel = 1, stride = 1, padding = 0, dilation = 1;
  constexpr bool operator==(const Window &) const = default;
};

/// Only the fields that ops.def names for the op are meaningful.
struct Attributes {
  int index = -1;
  int axis = -1; // always normalised to [0, rank)
  std::int64_t start = 0;
  bool at_end = false;     // slice: the last elements; `start` is unused
  int states = 0;          // stack and scan: how many operands, body arguments and body results are carried
  bool reverse = false;    // scan: iterates from the last element to the first; argsort: descending
  bool until = false;      // scan: iterations after one whose first state is true change no state and give zeros
  bool shifted = false;    // mean: that of the differences from the first element, plus that element
  int heads = 0;           // H
  int key_value_heads = 0; // G, which divides H
  double scale = 0;
  double epsilon = 0;
  double base = 0;
  double probability = 0;
  double rate = 0;
  bool causal = false;          // query i sees keys 0 .. i + (Tk - Tq)
  std::int64_t window_keys = 0; // of causal attention: a query sees only the last so many of these; 0: all
  double softcap = 0;           // attention: scores are c tanh(scores / c) for this c; 0: they are not limited
  bool has_mask = false;        // f32, added to the scaled scores, broadcastable to [..., Tq, Tk]
  bool has_sinks = false;       // attention: [H], a further score of each head, whose value is 0
  bool has_lengths = false;     // i32 [...]: keys at or beyond the length are masked out
  WeightOrder weight_order = WeightOrder::out_in;
  Window window;
  int groups = 1;
  std::vector<int> permutation;
  std::vector<double> values; // of a constant; sinusoidal: the frequencies of pairs, or none for powers of the base
  std::vector<int>
      pair_axes; // sinusoidal: which of the positions' first axis each pair reads; none: there is no such axis
};

/// An operation with one result, which is identified by the node's number. A scan has several results: each is a
/// `result` node, and the scan's own number is not a value. The same holds for the call of a custom function. A stack's
/// own number is the first value that its last layer returns; the others, and the stacked outputs, are `result` nodes.
struct Node {
  Op op{};
  ElementType element{};
  std::vector<Dim> shape;
  std::vector<int> operands; // node numbers; a body may use nodes of the enclosing regions
  Attributes attributes;
  int scope = -1; // where the node was traced, for messages and names
};

/// One component of a call path, "h", "attn"; Graph::path joins them with dots. Scope 0 is the model itself, with the
/// empty name. The layers of a stack share one scope whose `copies` > 0 is their number; a path contains "{}" in place
/// of the index: "h.{}.ln_1.weight". Scopes of a pattern of layers have parts of the layers' numbers as their names.
struct Scope {
  int parent = -1;
  const char *name = "";
  std::int64_t copies = 0; // 0: not the layers of a stack
  int first_child = -1, next_sibling = -1;
  std::vector<int> parameters, states; // traced in this scope; a second request finds the same one
};

/// The initial value of a parameter for training without a checkpoint (NAME_initialise_weights).
struct Initial {
  enum class Kind : std::uint8_t {
    by_shape, // a matrix like the weight of a linear layer [out, in]; zeros for rank 0 or 1
    constant,
    fan_in,  // uniform within 1 / sqrt(number) of 0
    uniform, // uniform within `number` of 0
    normal,  // normal, with mean 0 and standard deviation `number`
  };
  Kind kind = Kind::by_shape;
  double number = 0;

  static constexpr Initial zeros() { return {Kind::constant, 0}; }
  static constexpr Initial ones() { return {Kind::constant, 1}; }
  static constexpr Initial constant(double value) { return {Kind::constant, value}; }
  /// As PyTorch's linear layers and convolutions; `products` is the number of products that each output sums.
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
  Storage storage{};        // the storage format that the spec states; a quantised parameter has element type f32
  Initial initial{};
};

constexpr std::int64_t element_count(const Parameter &parameter) {
  std::int64_t product = 1;
  for (std::int64_t extent : parameter.shape)
    product *= extent;
  return product;
}

/// Results of a smaller magnitude are stored in states as 0: decaying values would otherwise become subnormal, and
/// arithmetic on subnormals is many times slower on some CPUs. 2^-100 times any weight above 2^-26 is normal.
inline constexpr float least_state_magnitude = 0x1p-100f;

/// A tensor that persists between calls.
struct StateTensor {
  int scope = -1;
  const char *leaf = "";
  ElementType element{};
  std::vector<std::int64_t> shape;
};

struct TensorType {
  ElementType element{};
  std::vector<Dim> shape;
  constexpr bool operator==(const TensorType &) const = default;
};

/// A function that the program defines and that the library calls, NAME_custom_<name>.
struct CustomFunction {
  const char *name = "";
  std::vector<TensorType> operands, results;
  Dim workspace = 0;           // bytes
  const char *derivative = ""; // the name of another such function; empty: none
  constexpr bool has_derivative() const { return *derivative != 0; }
  /// Whether the workspace has a size, over dimensions of the tensors.
  constexpr bool has_valid_workspace() const {
    if (workspace.flaw != Flaw::none || workspace.min() < 0 || workspace.max() > Dim::largest)
      return false;
    for (const Symbol &symbol : workspace.symbols)
      if (symbol.present() && !has_symbol(operands, symbol) && !has_symbol(results, symbol))
        return false;
    return true;
  }

private:
  static constexpr bool has_symbol(const std::vector<TensorType> &tensors, const Symbol &symbol) {
    for (const TensorType &tensor : tensors)
      for (const Dim &extent : tensor.shape)
        for (const Symbol &other : extent.symbols)
          if (other == symbol)
            return true;
    return false;
  }
};

/// A list of nodes: the body of an entry, of a stack or of a scan. The body of a stack or of a scan takes the carried
/// values, which a scan calls its state, and a slice of each sequence; it returns the next carried values and outputs.
struct Region {
  std::vector<int> nodes;     // in order of execution, without the arguments; a nested stack is one node
  std::vector<int> arguments; // nodes with Op::input: an entry's inputs, or the arguments of a loop body
  std::vector<int> results;   // the results of an entry or of a loop body
  std::int64_t count = 1;     // layers
  int scope = -1;             // stack: the scope of its layers; otherwise -1
  std::vector<int> effects{}; // nodes that change states: append, store
};

/// Whether the node's Attributes::index is the region of its body.
constexpr bool has_body(const Node &node) { return node.op == Op::stack || node.op == Op::scan; }
/// Whether the node's own number is no value: its results are `result` nodes.
constexpr bool has_only_results(const Node &node) { return node.op == Op::scan || node.op == Op::custom; }
/// Whether the node may have symbols that no input has: those of states, and those of counted positions.
constexpr bool brings_symbols(const Node &node) {
  return node.op == Op::state || node.op == Op::append || node.op == Op::expand;
}
/// Whether the node's Attributes::index is a state.
constexpr bool uses_state(const Node &node) {
  return node.op == Op::state || node.op == Op::append || node.op == Op::store;
}

/// What an entry does with the gradients of its first result with respect to the parameters: nothing, return them, or
/// update the parameters.
enum class Update { none, give, sgd, adam, adamw };

struct Training {
  Update update = Update::none;
  double momentum = 0;                      // sgd
  double beta1 = 0, beta2 = 0, epsilon = 0; // adam and adamw
  double weight_decay = 0;
  double clip = 0;             // largest norm of all gradients together; 0: no clipping
  Names frozen{}, undecayed{}; // patterns of parameters that are not updated, and that have no weight decay
  bool recomputes = false;     // gradient checkpointing: recomputes the layers of stacks instead of storing them
  ElementType activations = ElementType::f32; // the type in which loops store values for the gradients
  int micro_batches = 0;                      // micro-batches of a call, each with its own loss; 0: no accumulation
  double average = 0;                         // decay of the moving average of the parameters; 0: there is none

  constexpr bool changes_parameters() const { return update != Update::none && update != Update::give; }
};

/// An entry point: a function of the generated library.
struct Entry {
  const char *name = "forward";
  int region = -1;
  std::vector<const char *> input_names;
  std::vector<const char *> output_names;
  int sequences = 0; // batched entry: the largest number of sequences of a call
  Training training;
};

/// A finished trace. The nodes are in order of execution, and only those are kept that a result depends on. The order
/// follows from the operands only, so that every C++ compiler produces the same graph.
struct Graph {
  std::vector<Node> nodes;
  std::vector<Scope> scopes;
  std::vector<Parameter> parameters;
  std::vector<StateTensor> states;
  std::vector<CustomFunction> functions; // in the order of their first call
  std::vector<Region> regions;
  std::vector<Entry> entries;

  /// Returns "h.{}.ln_1", or an empty string for the model itself.
  std::string path(int scope) const {
    if (scope <= 0)
      return "";
    std::string above = path(scopes[scope].parent);
    return above + (above.empty() ? "" : ".") + scopes[scope].name + (scopes[scope].copies > 0 ? ".{}" : "");
  }
  /// Returns "h.{}.ln_1.weight". In a pattern of layers the name says how they are numbered (numbered.h).
  std::string name(const Parameter &parameter) const { return name(parameter.scope, parameter.leaf); }
  std::string name(const StateTensor &state) const { return name(state.scope, state.leaf); }
  /// Returns the name as patterns of the spec match it: "layers.{}.weight" also in a pattern of layers.
  std::string written(const Parameter &parameter) const { return written_name(name(parameter)); }
  /// Returns the numbers of layers of the stacks around a scope, outermost first.
  std::vector<std::int64_t> layers(int scope) const {
    std::vector<std::int64_t> counts;
    for (int at = scope; at > 0; at = scopes[at].parent)
      if (scopes[at].copies > 0)
        counts.insert(counts.begin(), scopes[at].copies);
    return counts;
  }
  /// Returns how many tensors a parameter or a state of the scope stands for: the product of the enclosing stacks'
  /// layers.
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
