// SPDX-License-Identifier: Apache-2.0
//
// Prints a spec:
// 1. Named extents become constants.
// 2. Each stack becomes a struct with a `forward`, innermost first; values that it captures become further arguments.
//    If a stack has several bodies, since several entries call it, a tag selects the body.
// 3. The entries become functions of the model. Node n is t<n>, wherever it is used.
#include "tests/fuzz/PrintSpec.h"

#include <algorithm>
#include <set>

#include "kiln/names.h"
#include "kiln/text.h"
#include "tests/fuzz/PrintNode.h"
#include "tests/fuzz/RandomGraph.h"

namespace kiln::fuzz {
namespace {

class Printer {
public:
  Printer(const Graph &graph, const std::string &model) : graph(graph), model(model), isUsed(graph.nodes.size()) {
    for (const Node &node : graph.nodes)
      for (int operand : node.operands)
        isUsed[operand] = true;
    for (const Region &region : graph.regions)
      for (int result : region.results)
        isUsed[result] = true;
  }

  std::string run() {
    for (const Symbol &symbol : ordered(symbolsOf(graph))) {
      text += "inline constexpr kiln::Dim " + extentName(symbol) + "{\"" + symbol.name + "\", " +
              (*symbol.least ? std::string(symbol.least) : std::to_string(symbol.min)) + ", " +
              std::to_string(symbol.max) + "};\n";
    }
    text += "\n";
    printStacks(0);
    text += "struct " + model + " : kiln::Model {\n";
    printMembers(0);
    for (const Entry &entry : graph.entries)
      printEntry(entry);
    text += "  static constexpr auto entries() {\n    return std::tuple{";
    for (const Entry &entry : graph.entries) {
      if (&entry != graph.entries.data())
        text += ",\n                      ";
      text += std::string("kiln::entry(\"") + entry.name + "\", &" + model + "::" + entry.name + ", {" +
              quoted(entry.input_names) + "}, {" + quoted(entry.output_names) + "})" +
              (entry.sequences ? ".batched(" + std::to_string(entry.sequences) + ")" : "");
    }
    text += "};\n  }\n};\n";
    return text;
  }

private:
  /// Orders the symbols: an extent comes after its `least`.
  static std::vector<Symbol> ordered(const std::vector<Symbol> &symbols) {
    std::vector<Symbol> result;
    for (bool hasLeast : {false, true})
      for (const Symbol &symbol : symbols)
        if ((*symbol.least != 0) == hasLeast)
          result.push_back(symbol);
    return result;
  }
  static std::string quoted(const std::vector<const char *> &names) {
    std::string result;
    for (const char *name : names)
      result += (result.empty() ? "\"" : ", \"") + std::string(name) + "\"";
    return result;
  }

  /// Returns the stack that encloses the scope, or the model.
  int ownerOf(int scope) const {
    while (scope > 0 && graph.scopes[scope].copies == 0)
      scope = graph.scopes[scope].parent;
    return std::max(scope, 0);
  }
  /// Returns the name within the owner, with the prefixes of the layers in between. The parts of numbers of patterns
  /// become names that a spec may have.
  std::string nameWithin(int scope, const std::string &leaf) const {
    std::string result = leaf;
    for (; scope > 0 && graph.scopes[scope].copies == 0; scope = graph.scopes[scope].parent)
      result = graph.scopes[scope].name + ("." + result);
    if (result.find('{') == std::string::npos)
      return result;
    std::string plain;
    for (char c : result)
      if (c == '+')
        plain += "from";
      else if (c != '{' && c != '}')
        plain += c;
    return plain;
  }

  /// Returns how many values the body of a stack carries.
  std::ptrdiff_t carriedOf(int region) const {
    for (const Node &node : graph.nodes)
      if (node.op == Op::stack && node.attributes.index == region)
        return node.attributes.states;
    return 1;
  }
  /// Returns the carried values of a stack's layer, and its outputs if it has some.
  static std::string returned(const Region &body, std::ptrdiff_t carried) {
    const std::vector<int> next(body.results.begin(), body.results.begin() + carried),
        outputs(body.results.begin() + carried, body.results.end());
    const std::string values = carried == 1 ? listed(next) : tuple(next);
    return outputs.empty() ? values : "std::pair{" + values + ", " + tuple(outputs) + "}";
  }

  std::vector<int> bodiesOf(int scope) const {
    std::vector<int> result;
    for (std::size_t i = 0; i < graph.regions.size(); ++i)
      if (graph.regions[i].scope == scope)
        result.push_back(static_cast<int>(i));
    return result;
  }

  /// Prints the structs of the stacks directly below the owner.
  void printStacks(int owner) {
    for (std::size_t scope = 1; scope < graph.scopes.size(); ++scope) {
      if (graph.scopes[scope].copies == 0 || ownerOf(graph.scopes[scope].parent) != owner)
        continue;
      const int number = static_cast<int>(scope);
      printStacks(number);
      text += "struct Body" + std::to_string(number) + " {\n";
      printMembers(number);
      const std::vector<int> bodies = bodiesOf(number);
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        const Region &body = graph.regions[bodies[i]];
        text += "  constexpr auto forward(";
        for (int argument : body.arguments)
          text += (argument == body.arguments[0] ? "" : ", ") + unused(argument) + "const kiln::tensor auto &t" +
                  std::to_string(argument);
        if (bodies.size() > 1)
          text += ", std::integral_constant<int, " + std::to_string(i) + ">";
        for (int captured : capturesOf(bodies[i]))
          text += ", const kiln::tensor auto &t" + std::to_string(captured);
        text += ") const {\n";
        printNodes(body, "    ", body.arguments[0]);
        text += "    return " + returned(body, carriedOf(bodies[i])) + ";\n  }\n";
      }
      text += "};\n";
    }
  }

  void printMembers(int owner) {
    for (std::size_t i = 0; i < graph.states.size(); ++i) {
      const StateTensor &state = graph.states[i];
      if (ownerOf(state.scope) != owner)
        continue;
      text += std::string("  kiln::State<") + elementName(state.element);
      for (std::int64_t extent : state.shape)
        text += ", " + std::to_string(extent);
      text += "> state" + std::to_string(i) + "{\"" + nameWithin(state.scope, state.leaf) + "\"};\n";
    }
    for (std::size_t scope = 1; scope < graph.scopes.size(); ++scope) {
      const Scope &here = graph.scopes[scope];
      if (here.copies == 0 || ownerOf(here.parent) != owner)
        continue;
      const std::string number = std::to_string(scope);
      text += "  kiln::Stack<" + std::to_string(here.copies) + ", Body" + number + "> stack" + number + "{\"" +
              nameWithin(here.parent, here.name) + "\"};\n";
    }
  }

  /// Returns the values that the region and its nested regions use but do not compute, each once.
  std::vector<int> capturesOf(int region) const {
    std::vector<int> used;
    std::set<int> own;
    collect(region, used, own);
    std::vector<int> result;
    for (int node : used)
      if (!own.count(node) && std::find(result.begin(), result.end(), node) == result.end())
        result.push_back(node);
    return result;
  }
  void collect(int region, std::vector<int> &used, std::set<int> &own) const {
    const Region &here = graph.regions[region];
    own.insert(here.arguments.begin(), here.arguments.end());
    for (int node : here.nodes) {
      own.insert(node);
      used.insert(used.end(), graph.nodes[node].operands.begin(), graph.nodes[node].operands.end());
      if (has_body(graph.nodes[node]))
        collect(graph.nodes[node].attributes.index, used, own);
    }
    used.insert(used.end(), here.results.begin(), here.results.end());
  }

  void printEntry(const Entry &entry) {
    const Region &region = graph.regions[entry.region];
    text += std::string("  constexpr auto ") + entry.name + "(";
    for (int argument : region.arguments) {
      const Node &node = graph.nodes[argument];
      text += argument == region.arguments[0] ? "" : ", ";
      text += unused(argument) + "kiln::Tensor<" + elementName(node.element);
      for (const Dim &dim : node.shape)
        text += ", " + extentText(dim);
      text += "> t" + std::to_string(argument);
    }
    text += ") const {\n";
    printNodes(region, "    ", region.arguments[0]);
    if (region.results.size() == 1)
      text += "    return t" + std::to_string(region.results[0]) + ";\n  }\n";
    else
      text += "    return kiln::outputs(" + listed(region.results) + ");\n  }\n";
  }

  std::string unused(int node) const { return isUsed[node] ? "" : "[[maybe_unused]] "; }
  static std::string listed(const std::vector<int> &nodes) {
    std::string result;
    for (int node : nodes)
      result += (result.empty() ? "t" : ", t") + std::to_string(node);
    return result;
  }
  static std::string tuple(const std::vector<int> &nodes) {
    return nodes.empty() ? "std::tuple<>()" : "std::tuple{" + listed(nodes) + "}";
  }

  /// `context` is any visible tensor.
  void printNodes(const Region &region, const std::string &indent, int context) {
    for (int number : region.nodes) {
      const Node &node = graph.nodes[number];
      if (node.op == Op::store) {
        text += indent + "state" + std::to_string(node.attributes.index) + ".store(t" +
                std::to_string(node.operands[0]) + ");\n";
        continue;
      }
      if (node.op == Op::stack && !isPlain(node)) { // the stack and the first value that it carries
        text += indent + "auto all" + std::to_string(number) + " = " + call(node, "") + ";\n" + indent +
                "[[maybe_unused]] auto t" + std::to_string(number) + " = " + resultOf(number, 0) + ";\n";
        continue;
      }
      text += indent + unused(number) + "auto t" + std::to_string(number) + " = ";
      if (node.op == Op::scan) {
        printScan(node, number, indent);
        continue;
      }
      text +=
          call(node, "t" + std::to_string(context)) + "; // " + Text().put(node.element).put(node.shape).data() + "\n";
    }
  }

  bool hasOutputs(const Node &stack) const {
    return graph.regions[stack.attributes.index].results.size() > static_cast<std::size_t>(stack.attributes.states);
  }
  /// Whether the call of a stack is its only value.
  bool isPlain(const Node &stack) const { return stack.attributes.states == 1 && !hasOutputs(stack); }
  /// Returns a result of a stack that is not plain.
  std::string resultOf(int number, int index) const {
    const Node &stack = graph.nodes[number];
    const int states = stack.attributes.states;
    std::string all = "all" + std::to_string(number);
    if (hasOutputs(stack))
      all += index < states ? ".first" : ".second";
    if (index < states && states == 1)
      return all;
    return "std::get<" + std::to_string(index < states ? index : index - states) + ">(" + all + ")";
  }

  std::string call(const Node &node, const std::string &context) const {
    const Attributes &a = node.attributes;
    switch (node.op) {
    case Op::parameter: {
      const Parameter &parameter = graph.parameters[a.index];
      return "kiln::parameter<" + typeArguments(parameter) + ">(" + context + ", \"" +
             nameWithin(parameter.scope, parameter.leaf) + "\")";
    }
    case Op::state:
      return "state" + std::to_string(a.index) + ".template read<" + extentText(node.shape[0]) + ">(" + context + ")";
    case Op::append:
      return "state" + std::to_string(a.index) + ".template append<" + extentText(node.shape[0]) + ">(" +
             listed(node.operands) + ")";
    case Op::result: {
      if (graph.nodes[node.operands[0]].op == Op::stack)
        return resultOf(node.operands[0], a.index);
      const int states = graph.nodes[node.operands[0]].attributes.states;
      const bool isState = a.index < states;
      return "std::get<" + std::to_string(isState ? a.index : a.index - states) + ">(" + listed(node.operands) +
             (isState ? ".first)" : ".second)");
    }
    case Op::stack: {
      const int scope = graph.regions[a.index].scope;
      const std::vector<int> bodies = bodiesOf(scope), captured = capturesOf(a.index);
      const std::vector<int> carried(node.operands.begin(), node.operands.begin() + a.states);
      std::string result = "stack" + std::to_string(scope) + (hasOutputs(node) ? ".with_outputs" : "") + "(" +
                           (a.states == 1 ? listed(carried) : tuple(carried));
      for (std::size_t i = carried.size(); i < node.operands.size(); ++i)
        result += ", kiln::per_layer(t" + std::to_string(node.operands[i]) + ")";
      if (bodies.size() > 1)
        result += ", std::integral_constant<int, " +
                  std::to_string(std::find(bodies.begin(), bodies.end(), a.index) - bodies.begin()) + ">()";
      return result + (captured.empty() ? "" : ", ") + listed(captured) + ")";
    }
    default:
      return callText(node, context);
    }
  }

  void printScan(const Node &node, int number, const std::string &indent) {
    const Region &body = graph.regions[node.attributes.index];
    const std::string id = std::to_string(number);
    const std::ptrdiff_t states = node.attributes.states;
    const std::vector<int> &x = node.operands, &all = body.results;
    text += std::string("kiln::scan") + (node.attributes.reverse ? "<kiln::Direction::reverse>" : "") + "(" +
            tuple({x.begin(), x.begin() + states}) + ", " + tuple({x.begin() + states, x.end()}) + ", [&](" +
            (states == 0 ? "const auto &" : "const auto &state" + id) + ", const auto &here" + id + ") {\n";
    for (std::size_t i = 0; i < body.arguments.size(); ++i) {
      const bool isState = static_cast<std::ptrdiff_t>(i) < states;
      const Node &argument = graph.nodes[body.arguments[i]];
      text +=
          indent + "  " + unused(body.arguments[i]) + "auto t" + std::to_string(body.arguments[i]) + " = std::get<" +
          std::to_string(isState ? static_cast<std::ptrdiff_t>(i) : static_cast<std::ptrdiff_t>(i) - states) + ">(" +
          (isState ? "state" : "here") + id + "); // " + Text().put(argument.element).put(argument.shape).data() + "\n";
    }
    printNodes(body, indent + "  ", body.arguments[0]);
    text += indent + "  return std::pair{" + tuple({all.begin(), all.begin() + states}) + ", " +
            tuple({all.begin() + states, all.end()}) + "};\n" + indent + "});\n";
  }

  const Graph &graph;
  std::string model, text;
  std::vector<bool> isUsed; // by node
};

} // namespace

std::string printModel(const Graph &graph, const std::string &name) { return Printer(graph, name).run(); }

std::string printSpec(const Graph &graph) {
  return "#include \"kiln/generator.h\"\n\n#include <limits>\n\nnamespace {\n\n" + printModel(graph, "Fuzzed") +
         "\n} // namespace\n\nKILN_MODEL(fuzzed, Fuzzed)\n";
}

} // namespace kiln::fuzz
