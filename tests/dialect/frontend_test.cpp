// SPDX-License-Identifier: Apache-2.0
//
// Malformed graphs, as from another frontend than the DSL: each error gives a diagnostic. Each case starts with a
// correct graph of a stack of biased layers and breaks one thing.
#include "compiler/frontend/Import.h"

#include <functional>

#include <gtest/gtest.h>

#include "compiler/dialect/KilnDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "models/gpt2/gpt2.h"

namespace kiln {
namespace {

/// forward(x [tokens, 4]) = h(x), where h is a stack of 3 layers of exp(x + bias).
Graph goodGraph() {
  Graph graph;
  const std::vector<Dim> shape = {Dim("tokens", 1, 16), 4};
  graph.scopes.resize(2);
  graph.scopes[1].parent = 0;
  graph.scopes[1].name = "h";
  graph.scopes[1].copies = 3;
  graph.parameters.push_back({1, "bias", ElementType::f32, {4}});
  auto add = [&](Op op, std::vector<Dim> extents, std::vector<int> operands, int scope) {
    Node node;
    node.op = op;
    node.shape = std::move(extents);
    node.operands = std::move(operands);
    node.scope = scope;
    node.attributes.index = 0;
    graph.nodes.push_back(node);
  };
  add(Op::input, shape, {}, 0);        // 0
  add(Op::input, shape, {}, 1);        // 1: carried
  add(Op::parameter, {4}, {}, 1);      // 2
  add(Op::add, shape, {1, 2}, 1);      // 3
  add(Op::exp, shape, {3}, 1);         // 4
  add(Op::stack, shape, {0}, 0);       // 5
  graph.nodes[5].attributes.index = 1; // the body's region
  graph.nodes[5].attributes.states = 1;
  graph.regions.resize(2);
  graph.regions[0].nodes = {5};
  graph.regions[0].arguments = {0};
  graph.regions[0].results = {5};
  graph.regions[1].nodes = {2, 3, 4};
  graph.regions[1].arguments = {1};
  graph.regions[1].results = {4};
  graph.regions[1].count = 3;
  graph.regions[1].scope = 1;
  Entry entry;
  entry.region = 0;
  entry.input_names = {"x"};
  entry.output_names = {"y"};
  graph.entries.push_back(entry);
  return graph;
}

/// Returns the first diagnostic of the import, or an empty string.
std::string importError(const Graph &graph) {
  mlir::MLIRContext context;
  std::string first;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (first.empty())
      first = diagnostic.str();
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(graph, &context, "test");
  EXPECT_EQ(!module, !first.empty()) << first;
  return first;
}

TEST(Frontend, ImportsAGoodGraph) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(goodGraph(), &context, "test");
  ASSERT_TRUE(module);
  int parameters = 0;
  module->walk([&](mlir::kiln::ParameterOp op) {
    ++parameters;
    EXPECT_EQ(op.getCopies(), 3u);
    EXPECT_EQ(mlir::cast<mlir::StringAttr>(op.getSources()[0]).getValue(), "h.{}.bias");
    EXPECT_TRUE(op->getParentOfType<mlir::kiln::RepeatOp>());
  });
  EXPECT_EQ(parameters, 1);
}

TEST(Frontend, LocationsNameTheLayer) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(trace<specs::Gpt2<2, 8, 2>>(), &context, "gpt2");
  ASSERT_TRUE(module);
  int found = 0;
  module->walk([&](mlir::kiln::GeluTanhOp op) {
    ++found;
    EXPECT_EQ(mlir::cast<mlir::NameLoc>(op.getLoc()).getName(), "h.{}.mlp");
  });
  EXPECT_EQ(found, 1);
}

TEST(Frontend, DropoutLeavesNothing) {
  Graph graph = goodGraph();
  graph.nodes[4].op = Op::dropout;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(graph, &context, "test");
  ASSERT_TRUE(module);
  module->walk([](mlir::kiln::YieldOp yield) { EXPECT_TRUE(yield.getValues()[0].getDefiningOp<mlir::kiln::AddOp>()); });
}

struct Case {
  const char *name;
  std::function<void(Graph &)> breakIt;
  std::string message;
};

void PrintTo(const Case &badCase, std::ostream *stream) { *stream << badCase.name; }

class BadGraph : public testing::TestWithParam<Case> {};

TEST_P(BadGraph, GetsADiagnostic) {
  Graph graph = goodGraph();
  ASSERT_EQ(importError(graph), "");
  GetParam().breakIt(graph);
  EXPECT_EQ(importError(graph), GetParam().message);
}

const Case cases[] = {
    {"ScopeAboveItself", [](Graph &g) { g.scopes[1].parent = 1; },
     "forward: graph: wrong scope; expected a name and an earlier scope around it, got 1 above 1"},
    {"ScopeWithoutName", [](Graph &g) { g.scopes[1].name = nullptr; },
     "forward: graph: wrong scope; expected a name and an earlier scope around it, got 0 above 1"},
    {"NegativeCopies", [](Graph &g) { g.scopes[1].copies = -1; },
     "forward: graph: wrong number of layers; expected one that 32 bits hold, got -1"},
    {"ParameterWithoutScope", [](Graph &g) { g.parameters[0].scope = 9; },
     "forward: graph: incomplete parameter; expected a scope and a name, got 9"},
    {"ParameterWithoutName", [](Graph &g) { g.parameters[0].leaf = ""; },
     "h.{}: graph: incomplete parameter; expected a scope and a name, got 1"},
    {"ParameterOfNoExtent", [](Graph &g) { g.parameters[0].shape = {0}; },
     "h.{}: tensor: empty dimension; expected at least 1, got [0] [tensor_c1]"},
    {"ParameterTooLarge", [](Graph &g) { g.parameters[0].shape = {1 << 16, 1 << 16}; },
     "h.{}: tensor: too many elements; expected at most 2147483647, got [65536, 65536] [tensor_c4]"},
    {"ParameterOfRankNine", [](Graph &g) { g.parameters[0].shape = {1, 1, 1, 1, 1, 1, 1, 1, 4}; },
     "h.{}: tensor: rank too large; expected at most 8, got [1, 1, 1, 1, 1, 1, 1, 1, 4] [tensor_c3]"},
    {"NodeOfRankNine", [](Graph &g) { g.nodes[4].shape.insert(g.nodes[4].shape.begin(), 7, Dim(1)); },
     "h.{}: tensor: rank too large; expected at most 8, got [1, 1, 1, 1, 1, 1, 1, tokens 1..16, 4] [tensor_c3]"},
    {"ExtentOfNoForm", [](Graph &g) { g.nodes[0].shape[0] = Dim("tokens", 5, 4); },
     "forward: dimension: bounds out of order; expected 1 <= min <= max, got tokens 5..4 [dim_c2]"},
    {"ParameterOfOtherShape", [](Graph &g) { g.parameters[0].shape = {5}; },
     "h.{}: parameter: another element type or shape than before; got [4] [parameter_c1]"},
    {"ParameterOutsideItsStack",
     [](Graph &g) {
       g.regions[0].nodes = {2, 5};
       g.regions[1].nodes = {3, 4};
     },
     "h.{}: parameter of a stack's layer: used outside the stack; expected a use inside it, got h.{}.bias "
     "[parameter_c2]"},
    {"UnknownParameter", [](Graph &g) { g.nodes[2].attributes.index = 1; },
     "h.{}: node: unknown parameter; expected one of the graph, got 1"},
    {"EntryWithoutName", [](Graph &g) { g.entries[0].name = ""; },
     "forward: entry: invalid name; expected identifiers in C and C++, got no name [model_c3]"},
    {"EntryWithoutRegion", [](Graph &g) { g.entries[0].region = 2; },
     "forward: entry: unknown region; expected one of the graph, got 2"},
    {"TooFewInputNames", [](Graph &g) { g.entries[0].input_names.clear(); },
     "forward: entry: wrong number of input names; got 0 names of 1 [model_c1]"},
    {"TooManyOutputNames", [](Graph &g) { g.entries[0].output_names.push_back("z"); },
     "forward: entry: wrong number of output names; got 2 names of 1 [model_c2]"},
    {"NullInputName", [](Graph &g) { g.entries[0].input_names[0] = nullptr; },
     "forward: entry: invalid name; expected identifiers in C and C++, got no name [model_c3]"},
    {"SameEntryTwice",
     [](Graph &g) {
       g.entries.push_back(g.entries[0]);
       g.entries[1].region = 2;
       g.regions.emplace_back();
       g.entries[1].input_names.clear();
       g.entries[1].output_names.clear();
     },
     "entry: name is used twice; expected different names in one model, got forward twice [model_c5]"},
    {"RegionOfTwoEntries",
     [](Graph &g) {
       g.entries.push_back(g.entries[0]);
       g.entries[1].name = "again";
     },
     "again: region: used twice; expected the body of one entry or loop, got 0"},
    {"StackInsideItself", [](Graph &g) { g.nodes[5].attributes.index = 0; },
     "forward: stack: invalid number of layers; expected at least one, got 1 [stack_c2]"},
    {"ArgumentIsNoInput", [](Graph &g) { g.nodes[1].op = Op::exp; },
     "h.{}: region: wrong argument; expected an input that no other region has, got 1"},
    {"ArgumentUnknown", [](Graph &g) { g.regions[0].arguments[0] = -1; },
     "forward: region: unknown argument; expected a node, got -1"},
    {"NodeTwice", [](Graph &g) { g.regions[1].nodes.push_back(3); },
     "h.{}: region: unknown or repeated node; expected each of its nodes once, got 3"},
    {"OperandLater", [](Graph &g) { g.nodes[3].operands[1] = 4; },
     "h.{}: node: wrong operand; expected an earlier node, got 4"},
    {"OperandOfAnotherRegion",
     [](Graph &g) {
       g.regions[0].nodes = {5, 4};
       g.regions[1].nodes = {2, 3};
       g.regions[1].results = {3};
     },
     "h.{}: node: wrong operand; expected an earlier node, got 3"},
    {"ResultUnknown", [](Graph &g) { g.regions[0].results[0] = 99; },
     "forward: region: wrong result; expected one that is computed in it, got 99"},
    {"OperationUnknown", [](Graph &g) { g.nodes[4].op = static_cast<Op>(200); },
     "h.{}: node: unknown operation; expected one of the language, got 200"},
    {"InputAmongNodes", [](Graph &g) { g.nodes[4].op = Op::input; },
     "h.{}: node: unknown operation; expected one of the language, got 0"},
    {"ElementUnknown", [](Graph &g) { g.nodes[4].element = static_cast<ElementType>(77); },
     "h.{}: node: unknown element type; expected one of the language, got 77"},
    {"ElementOfAParameterUnknown", [](Graph &g) { g.parameters[0].element = static_cast<ElementType>(77); },
     "h.{}: parameter: unknown element type; expected one of the language, got 77"},
    {"ElementBelowAByte", [](Graph &g) { g.nodes[0].element = ElementType::i4; },
     "forward: tensor: unsupported element type; expected one of at least a byte, got i4"},
    {"ElementOfStoredWeights", [](Graph &g) { g.nodes[0].element = ElementType::f8e4m3; },
     "forward: tensor: unsupported element type; expected one that not only stored weights have, got f8e4m3"},
    {"ElementOfStoredWeightsBelowAByte", [](Graph &g) { g.nodes[0].element = ElementType::u4; },
     "forward: tensor: unsupported element type; expected one that not only stored weights have, got u4"},
    {"ElementOfAParameterBelowAByte", [](Graph &g) { g.parameters[0].element = ElementType::i4; },
     "h.{}: tensor: unsupported element type; expected one of at least a byte, got i4"},
    {"ScopeUnknown", [](Graph &g) { g.nodes[4].scope = 5; },
     "forward: node: unknown scope; expected one of the graph, got 5"},
    {"BoundsCrossed", [](Graph &g) { g.nodes[0].shape[0].symbols[0].min = 17; },
     "forward: dimension: bounds out of order; expected 1 <= min <= max, got tokens 17..16 [dim_c2]"},
    {"BoundsDiffer", [](Graph &g) { g.nodes[4].shape[0].symbols[0].max = 8; },
     "h.{}: dimension: other bounds than before; got tokens 1..8 [dim_c5]"},
    {"SymbolOfNoInput", [](Graph &g) { g.nodes[4].shape[0] = Dim("batch", 1, 8); },
     "h.{}: named dimension: in no input or state; expected one that has it, got batch [dim_c9]"},
    {"FactorWithoutSymbol", [](Graph &g) { g.nodes[0].shape[1].factor = 2; },
     "forward: product of dimensions: unsupported form; expected at most two terms of at most two symbols, got 4 + 2 "
     "of "
     "0 symbols [dim_c3]"},
    {"SecondTermWithoutSymbol", [](Graph &g) { g.nodes[0].shape[0].second = 3; },
     "forward: product of dimensions: unsupported form; expected at most two terms of at most two symbols, got 0 + 3 "
     "of "
     "0 symbols [dim_c3]"},
    {"SecondTermWithoutFirst", [](Graph &g) { g.nodes[0].shape[1].second = 3; },
     "forward: product of dimensions: unsupported form; expected at most two terms of at most two symbols, got 4 + 3 "
     "[dim_c3]"},
    {"ExtentBelowOne", [](Graph &g) { g.nodes[4].shape[0].offset = -1; },
     "h.{}: tensor: empty dimension; expected at least 1, got [tokens-1 0..15, 4] [tensor_c1]"},
    {"StackWithoutResults", [](Graph &g) { g.regions[1].results = {}; },
     "h.{}: stack: layer returns another type than its argument's; got 1 arguments and 0 results [stack_c1]"},
    {"StackWithoutCarriedValue", [](Graph &g) { g.nodes[5].attributes.states = 0; },
     "h.{}: stack: layer returns another type than its argument's; got 1 arguments and 1 results [stack_c1]"},
    {"SlicesOfOtherLayers",
     [](Graph &g) {
       g.nodes[5].operands = {0, 0};
       g.regions[1].arguments = {1, 1};
     },
     "h.{}: stack: first dimension of per_layer differs from the number of layers; got [tokens 1..16, 4] [stack_c6]"},
    {"CountsDiffer", [](Graph &g) { g.regions[1].count = 4; },
     "forward: stack: invalid number of layers; expected at least one, got 4 [stack_c2]"},
    {"OperandsMissing", [](Graph &g) { g.nodes[3].operands = {1}; },
     "h.{}: add: wrong number of operands; expected 2, got 1"},
    {"ConstantValuesMissing",
     [](Graph &g) {
       g.nodes[2].op = Op::constant;
       g.nodes[2].attributes.values = {1, 2, 3};
     },
     "h.{}: constant: wrong number of values; expected 4, got 3 [constant_c1]"},
    {"ConstantOutOfRange",
     [](Graph &g) {
       g.nodes[2].op = Op::constant;
       g.nodes[2].element = ElementType::i8;
       g.nodes[2].attributes.values = {1, 2, 3, 128};
     },
     "h.{}: constant: value does not fit the element type; expected one that it holds, got 128.000000"},
    {"DropoutChangesType",
     [](Graph &g) {
       g.nodes[4].op = Op::dropout;
       g.nodes[4].element = ElementType::f16;
     },
     "h.{}: dropout: wrong operands; expected one of the result's type, got 1 operands"},
    {"ShapesDoNotBroadcast",
     [](Graph &g) {
       g.parameters[0].shape = {3};
       g.nodes[2].shape = {3};
     },
     "h.{}: elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1, got [tokens "
     "1..16, 4] and [3] [broadcast_c1]"},
    {"ResultOfOtherShape", [](Graph &g) { g.nodes[3].shape[1] = 5; },
     "h.{}: add: result does not follow from the operands; expected f32[tokens 1..16, 4], got f32[tokens "
     "1..16, 5]"},
    {"AxisOutOfRange",
     [](Graph &g) {
       g.nodes[4].op = Op::softmax;
       g.nodes[4].attributes.axis = 2;
     },
     "h.{}: softmax: axis out of range; expected one within the rank, got axis 2 of f32[tokens 1..16, 4] [softmax_c1]"},
};

INSTANTIATE_TEST_SUITE_P(Frontend, BadGraph, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<Case> &info) { return info.param.name; });

/// forward(x [tokens, 4], h [4]) = the last state and all states of h = h + x.
Graph scanGraph() {
  Graph graph;
  const std::vector<Dim> row = {4}, rows = {Dim("tokens", 1, 16), 4};
  graph.scopes.resize(1);
  auto add = [&](Op op, std::vector<Dim> extents, std::vector<int> operands, int index) {
    Node node;
    node.op = op;
    node.shape = std::move(extents);
    node.operands = std::move(operands);
    node.scope = 0;
    node.attributes.index = index;
    graph.nodes.push_back(node);
  };
  add(Op::input, rows, {}, 0);   // 0
  add(Op::input, row, {}, 1);    // 1
  add(Op::scan, {}, {1, 0}, 1);  // 2
  add(Op::input, row, {}, 0);    // 3: the state
  add(Op::input, row, {}, 1);    // 4: the slice
  add(Op::add, row, {3, 4}, -1); // 5
  add(Op::result, row, {2}, 0);  // 6
  add(Op::result, rows, {2}, 1); // 7
  graph.nodes[2].attributes.states = 1;
  graph.regions.resize(2);
  graph.regions[0] = {{2, 6, 7}, {0, 1}, {6, 7}};
  graph.regions[1] = {{5}, {3, 4}, {5, 5}};
  Entry entry;
  entry.region = 0;
  entry.input_names = {"x", "h"};
  entry.output_names = {"last", "all"};
  graph.entries.push_back(entry);
  return graph;
}

class BadScan : public testing::TestWithParam<Case> {};

TEST_P(BadScan, GetsADiagnostic) {
  Graph graph = scanGraph();
  ASSERT_EQ(importError(graph), "");
  GetParam().breakIt(graph);
  EXPECT_EQ(importError(graph), GetParam().message);
}

const Case scanCases[] = {
    {"NoBody", [](Graph &g) { g.nodes[2].attributes.index = 9; },
     "forward: scan: no body; expected a region of the graph, got 9"},
    {"NoSequence", [](Graph &g) { g.nodes[2].attributes.states = 2; },
     "forward: scan: no sequence; expected one after its states, got 2 of 2 operands"},
    {"ArgumentMissing", [](Graph &g) { g.regions[1].arguments = {3}; },
     "forward: scan: step changes the state's type; got 1 arguments and 2 results [scan_c2]"},
    {"StateOfAnotherType",
     [](Graph &g) {
       g.nodes[1].shape = g.nodes[6].shape = {1};
       g.regions[0] = {{2, 6}, {0, 1}, {6}};
       g.regions[1].results = {5};
       g.entries[0].output_names = {"last"};
     },
     "forward: scan: step changes the state's type; expected tensor<1xf32>, got tensor<4xf32> [scan_c2]"},
    {"ScalarSequence", [](Graph &g) { g.nodes[0].shape = {}, g.nodes[7].shape = {4}; },
     "forward: scan: sequences differ in the first dimension; got f32[] [scan_c1]"},
    {"ScanAsValue", [](Graph &g) { g.regions[0].results = {2, 7}; },
     "forward: region: wrong result; expected one that is computed in it, got 2"},
    {"ScanAsOperand", [](Graph &g) { g.nodes[6].op = Op::exp; },
     "forward: scan: used directly; expected uses of its results, got 2"},
    {"ResultOfAnInput", [](Graph &g) { g.nodes[6].operands = {1}; },
     "forward: result: wrong operand; expected a scan, a stack or a custom, got 1"},
    {"ResultOfTwo", [](Graph &g) { g.nodes[6].operands = {2, 2}; },
     "forward: result: wrong number of operands; expected one scan, got 2"},
    {"ResultOutOfRange", [](Graph &g) { g.nodes[7].attributes.index = 2; },
     "forward: result: number out of range; expected below 2, got 2"},
    {"ResultOfOtherShape", [](Graph &g) { g.nodes[7].shape = {5, 4}; },
     "forward: result: type differs from that of the loop or the function; expected f32[tokens 1..16, 4], got f32[5, "
     "4]"},
};

INSTANTIATE_TEST_SUITE_P(Frontend, BadScan, testing::ValuesIn(scanCases),
                         [](const testing::TestParamInfo<Case> &info) { return info.param.name; });

/// forward(x [tokens, 4]) = the second result of half(x).
Graph customGraph() {
  Graph graph;
  const std::vector<Dim> rows = {Dim("tokens", 1, 16), 4};
  graph.scopes.resize(1);
  auto add = [&](Op op, std::vector<Dim> extents, std::vector<int> operands, int index) {
    Node node;
    node.op = op;
    node.shape = std::move(extents);
    node.operands = std::move(operands);
    node.scope = 0;
    node.attributes.index = index;
    graph.nodes.push_back(node);
  };
  add(Op::input, rows, {}, 0);   // 0
  add(Op::custom, {}, {0}, 0);   // 1
  add(Op::result, rows, {1}, 1); // 2
  add(Op::exp, rows, {2}, 0);    // 3
  graph.functions.push_back({"half", {{f32, rows}}, {{i32, {3}}, {f32, rows}}, 8 * rows[0], "gradient"});
  graph.regions.resize(1);
  graph.regions[0] = {{1, 2, 3}, {0}, {3}};
  Entry entry;
  entry.region = 0;
  entry.input_names = {"x"};
  entry.output_names = {"y"};
  graph.entries.push_back(entry);
  return graph;
}

class BadCustom : public testing::TestWithParam<Case> {};

TEST_P(BadCustom, GetsADiagnostic) {
  Graph graph = customGraph();
  ASSERT_EQ(importError(graph), "");
  GetParam().breakIt(graph);
  EXPECT_EQ(importError(graph), GetParam().message);
}

const Case customCases[] = {
    {"NoFunction", [](Graph &g) { g.nodes[1].attributes.index = 1; },
     "forward: node: unknown function; expected one of the graph, got 1"},
    {"OtherOperands", [](Graph &g) { g.functions[0].operands[0].element = ElementType::f16; },
     "forward: custom: function has other types, workspace or derivative than before; expected one signature for a "
     "name, got half [custom_c3]"},
    {"UnknownExtent", [](Graph &g) { g.functions[0].results[0].shape[0] = Dim("others", 1, 3); },
     "forward: named dimension: in no input or state; expected one that has it, got others [dim_c9]"},
    {"NegativeWorkspace", [](Graph &g) { g.functions[0].workspace = g.functions[0].workspace - 9; },
     "forward: custom: invalid workspace; expected 0 bytes or more, over dimensions of the operands and results, got "
     "8*tokens-9 -1..119 [custom_c4]"},
    {"UsedDirectly", [](Graph &g) { g.nodes[3].operands[0] = 1; },
     "forward: custom: used directly; expected uses of its results, got 1"},
    {"Returned", [](Graph &g) { g.regions[0].results[0] = 1; },
     "forward: region: wrong result; expected one that is computed in it, got 1"},
    {"NumberOutOfRange", [](Graph &g) { g.nodes[2].attributes.index = 3; },
     "forward: result: number out of range; expected below 3, got 3"},
    {"ResultIsTheWorkspace", [](Graph &g) { g.nodes[2].attributes.index = 2; },
     "forward: result: type differs from that of the loop or the function; expected i8[8*tokens 8..128], got "
     "f32[tokens 1..16, 4]"},
};

INSTANTIATE_TEST_SUITE_P(Frontend, BadCustom, testing::ValuesIn(customCases),
                         [](const testing::TestParamInfo<Case> &info) { return info.param.name; });

} // namespace
} // namespace kiln
