// SPDX-License-Identifier: Apache-2.0
//
// Evaluation of functions of all pipeline stages: edge cases of scalar ops, where linalg reads and writes, names and
// layouts of weights, states and loops of entries, and ops that only kernels have.
#include "compiler/verify/ModuleInterpreter.h"
#include "support.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using verify::SharedTensor;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

SharedTensor tensorOf(ElementType element, verify::TensorShape shape, std::vector<double> values) {
  return std::make_shared<const interpreter::Tensor>(
      interpreter::Tensor::of(element, std::move(shape), std::move(values)));
}
SharedTensor integers(std::vector<double> values) {
  return tensorOf(ElementType::i32, {static_cast<std::int64_t>(values.size())}, values);
}
SharedTensor numbers(std::vector<double> values) {
  return tensorOf(ElementType::f32, {static_cast<std::int64_t>(values.size())}, values);
}

/// Returns weights of 100 times the number in their name, counted up.
SharedTensor weightOf(const std::string &, const std::string &name) {
  const double first = 100 * std::stod(name.substr(name.find_first_of("0123456789")));
  return numbers({first, first + 1});
}

class Function {
public:
  explicit Function(const std::string &text) : module(mlir::parseSourceString<mlir::ModuleOp>(text, &context)) {}

  std::vector<SharedTensor> operator()(const std::vector<SharedTensor> &arguments,
                                       const std::vector<std::int64_t> &extents = {}) {
    return interpreter.run(*module->getOps<mlir::func::FuncOp>().begin(), extents, arguments);
  }
  std::string errorOf(const std::vector<SharedTensor> &arguments) {
    try {
      (*this)(arguments);
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "";
  }

  Context context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  verify::ModuleInterpreter interpreter{weightOf};
};

/// Evaluates one op on each element: %a, and %b if there are two.
std::vector<double> evaluate(const std::string &op, const std::string &from, const std::string &to,
                             const SharedTensor &a, const SharedTensor &b = nullptr) {
  const std::string in = "tensor<" + std::to_string(a->size()) + "x" + from + ">",
                    out = "tensor<" + std::to_string(a->size()) + "x" + to + ">", map = "affine_map<(d0) -> (d0)>";
  const std::string second = b ? ", %y : " + in + ", " + in : " : " + in;
  Function run("func.func @f(%x: " + in + (b ? ", %y: " + in : "") + ") -> " + out +
               " {\n %e = tensor.empty() : " + out + "\n %r = linalg.generic {indexing_maps = [" + map + ", " +
               (b ? map + ", " : "") + map + "], iterator_types = [\"parallel\"]} ins(%x" + second +
               ") outs(%e : " + out + ") {\n ^bb0(%a: " + from + (b ? ", %b: " + from : "") + ", %o: " + to +
               "):\n %v = " + op + "\n linalg.yield %v : " + to + "\n } -> " + out + "\n return %r : " + out + "\n}");
  std::vector<SharedTensor> arguments{a};
  if (b)
    arguments.push_back(b);
  return run(arguments)[0]->values;
}

TEST(Scalars, IntegersWrapAndDivideByZero) {
  const SharedTensor a = integers({2147483647, -2147483648.0, 7, -7}), b = integers({1, -1, 0, 2});
  auto of = [&](const std::string &op) { return evaluate(op + " %a, %b : i32", "i32", "i32", a, b); };
  EXPECT_THAT(of("arith.addi"), ElementsAre(-2147483648.0, 2147483647, 7, -5));
  EXPECT_THAT(of("arith.subi"), ElementsAre(2147483646, -2147483647, 7, -9));
  EXPECT_THAT(of("arith.muli"), ElementsAre(2147483647, -2147483648.0, 0, -14));
  EXPECT_THAT(of("arith.divsi"), ElementsAre(2147483647, -2147483648.0, 0, -3));
  EXPECT_THAT(of("arith.floordivsi"), ElementsAre(2147483647, -2147483648.0, 0, -4));
  EXPECT_THAT(of("arith.remsi"), ElementsAre(0, 0, 0, -1));
  EXPECT_THAT(of("arith.maxsi"), ElementsAre(2147483647, -1, 7, 2));
}

TEST(Scalars, BitsAreThoseOfF32) {
  EXPECT_THAT(evaluate("arith.bitcast %a : f32 to i32", "f32", "i32", numbers({1, -2, 0.5})),
              ElementsAre(0x3f800000, -1073741824, 0x3f000000));
  EXPECT_THAT(evaluate("arith.bitcast %a : i32 to f32", "i32", "f32", integers({0x3f800000, 0x7f800000})),
              ElementsAre(1, infinity));
  const SharedTensor a = integers({-8, 127}), b = integers({2, 23});
  EXPECT_THAT(evaluate("arith.shli %a, %b : i32", "i32", "i32", a, b), ElementsAre(-32, 127 << 23));
  EXPECT_THAT(evaluate("arith.shrsi %a, %b : i32", "i32", "i32", a, b), ElementsAre(-2, 0));
  EXPECT_THAT(evaluate("arith.shrui %a, %b : i32", "i32", "i32", a, b), ElementsAre(0x3ffffffe, 0));
  EXPECT_THAT(evaluate("arith.cmpi ule, %a, %b : i32", "i32", "i1", a, b), ElementsAre(0, 0));
  EXPECT_THAT(evaluate("arith.cmpi sle, %a, %b : i32", "i32", "i1", a, b), ElementsAre(1, 0));
}

TEST(Scalars, NumbersAreRoundedToF32) {
  // 1 + 2^-24 is not an f32 number; the product inside of an fma is not rounded.
  EXPECT_THAT(evaluate("arith.addf %a, %b : f32", "f32", "f32", numbers({1}), numbers({0x1p-24})), ElementsAre(1));
  EXPECT_THAT(evaluate("math.fma %a, %a, %b : f32", "f32", "f32", numbers({1 + 0x1p-12}), numbers({-1})),
              ElementsAre(0x1p-11 + 0x1p-24));
  EXPECT_THAT(evaluate("arith.maximumf %a, %b : f32", "f32", "f32", numbers({1, nan}), numbers({2, 1})),
              ElementsAre(2, ::testing::IsNan()));
  EXPECT_THAT(evaluate("arith.cmpf olt, %a, %b : f32", "f32", "i1", numbers({1, nan}), numbers({2, 1})),
              ElementsAre(1, 0));
  EXPECT_THAT(evaluate("arith.cmpf uge, %a, %b : f32", "f32", "i1", numbers({1, nan}), numbers({2, 1})),
              ElementsAre(0, 1));
  EXPECT_THAT(evaluate("arith.fptosi %a : f32 to i32", "f32", "i32", numbers({-1.75, nan, 1e20})),
              ElementsAre(-1, -2147483648.0, -2147483648.0));
  EXPECT_THAT(evaluate("math.roundeven %a : f32", "f32", "f32", numbers({2.5, -1.5})), ElementsAre(2, -2));
}

TEST(Linalg, ReadsThroughMaps) {
  // Sums of neighbours, from the last to the first of each pair.
  Function run(R"(func.func @f(%x: tensor<5xf32>, %w: tensor<2xf32>) -> tensor<4xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %r = linalg.generic {
        indexing_maps = [affine_map<(d0, d1) -> (d0 + d1)>, affine_map<(d0, d1) -> (d1)>,
                         affine_map<(d0, d1) -> (d0)>],
        iterator_types = ["parallel", "reduction"]}
        ins(%x, %w : tensor<5xf32>, tensor<2xf32>) outs(%f : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %sum: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %sum, %p : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    return %r : tensor<4xf32>
  })");
  EXPECT_THAT(run({numbers({1, 2, 3, 4, 5}), numbers({10, 1})})[0]->values, ElementsAre(12, 23, 34, 45));
}

/// Returns a copy of tensor<5xf32> to tensor<4xf32> through a map.
std::string copyThrough(const std::string &map) {
  return R"(func.func @f(%x: tensor<5xf32>) -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(d0) -> ()" +
         map + R"()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%x : tensor<5xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<4xf32>
    return %r : tensor<4xf32>
  })";
}

TEST(Linalg, KeepsWithinItsOperands) {
  const SharedTensor x = numbers({1, 2, 3, 4, 5});
  EXPECT_THAT(Function(copyThrough("d0 + 1"))({x})[0]->values, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(Function(copyThrough("d0 mod 2 + (d0 floordiv 2) * 2"))({x})[0]->values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Function(copyThrough("(d0 mod 2) * 3")).errorOf({x}), "");
  EXPECT_THAT(Function(copyThrough("(d0 mod 3) * 4")).errorOf({x}),
              HasSubstr("map leaves an operand; expected elements that exist"));
}

TEST(Linalg, ClampsWhatIsLookedUp) {
  Function run(R"(func.func @f(%x: tensor<3xf32>, %i: tensor<4xi32>) -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
        iterator_types = ["parallel"]} ins(%i : tensor<4xi32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: i32, %o: f32):
      %index = arith.index_cast %a : i32 to index
      %v = tensor.extract %x[%index] : tensor<3xf32>
      linalg.yield %v : f32
    } -> tensor<4xf32>
    return %r : tensor<4xf32>
  })");
  EXPECT_THAT(run({numbers({5, 6, 7}), integers({-1, 1, 2, 9})})[0]->values, ElementsAre(5, 6, 7, 7));
}

TEST(Entries, NameTheWeightsOfLayers) {
  Function run(R"(func.func @f(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
    %y = kiln.repeat 2 (%a = %x : tensor<1x2xf32>) {
      %z = kiln.repeat 2 (%b = %a : tensor<1x2xf32>) {
        %w = kiln.parameter {sources = ["h{}{}"], copies = 4} : tensor<1x2xf32, #kiln.tiled<1, 2>>
        %s = kiln.add %b, %w : (tensor<1x2xf32>, tensor<1x2xf32, #kiln.tiled<1, 2>>) -> tensor<1x2xf32>
        kiln.yield %s : tensor<1x2xf32>
      }
      kiln.yield %z : tensor<1x2xf32>
    }
    return %y : tensor<1x2xf32>
  })");
  EXPECT_THAT(run({tensorOf(ElementType::f32, {1, 2}, {0, 0})})[0]->values, ElementsAre(100 * (0 + 1 + 10 + 11), 2204));
}

TEST(Entries, JoinWeights) {
  Function run(R"(func.func @f() -> tensor<4xf32> {
    %w = kiln.parameter {sources = ["b", "a"], source_extents = array<i64: 2, 2>} : tensor<4xf32>
    return %w : tensor<4xf32>
  })");
  run.interpreter = verify::ModuleInterpreter(
      [](const std::string &, const std::string &name) { return name == "a" ? numbers({1, 2}) : numbers({3, 4}); });
  EXPECT_THAT(run({})[0]->values, ElementsAre(3, 4, 1, 2));
}

// Rows of [1, 127] and [2, 254] have scales of 1 and 2.
TEST(Entries, RoundWeightsToTheirStorage) {
  const SharedTensor weight = tensorOf(ElementType::f32, {2, 2}, {1.25 + 0x1p-8, 127, 3.5, 254});
  auto stored = [&](const std::string &attribute, const std::string &encoding) {
    const std::string type = "tensor<2x2xf32" + encoding + ">";
    Function run("func.func @f() -> " + type + " {\n%w = kiln.parameter {sources = [\"w\"]" + attribute +
                 "} : " + type + "\nreturn %w : " + type + "\n}");
    run.interpreter = verify::ModuleInterpreter([&](const std::string &, const std::string &) { return weight; });
    return run({})[0]->values;
  };
  EXPECT_THAT(stored("", ""), ElementsAre(1.25 + 0x1p-8, 127, 3.5, 254));
  EXPECT_THAT(stored(", storage = #kiln.storage<i8>", ""), ElementsAre(1, 127, 4, 254));
  EXPECT_THAT(stored("", ", #kiln.tiled<0, 8, storage = <i8>>"), ElementsAre(1, 127, 4, 254));
  EXPECT_EQ(stored(", storage = #kiln.storage<i8, dim = 1>", ""),
            stored("", ", #kiln.tiled<1, 8, storage = <i8, dim = 1>>"));
  EXPECT_NE(stored(", storage = #kiln.storage<i8, dim = 1>", ""), stored(", storage = #kiln.storage<i8>", ""));
  EXPECT_THAT(stored("", ", #kiln.tiled<0, 8, storage = <bf16>>"), ElementsAre(1.25, 127, 3.5, 254));
}

// Each source of a concatenation has its own largest number, also where a row has numbers of both.
TEST(Entries, RoundEachSourceOfAJoin) {
  for (const char *dim : {"0", "1"}) {
    SCOPED_TRACE(dim);
    const std::string d = dim, type = d == "0" ? "tensor<2x2xf32>" : "tensor<1x4xf32>";
    Function run("func.func @f() -> " + type + " {\n%w = kiln.parameter {sources = [\"a\", \"b\"], source_extents = " +
                 (d == "0" ? "array<i64: 1, 1>" : "array<i64: 2, 2>") + ", join_dim = " + d +
                 " : i64, storage = #kiln.storage<i8>} : " + type + "\nreturn %w : " + type + "\n}");
    run.interpreter = verify::ModuleInterpreter([](const std::string &, const std::string &name) {
      return tensorOf(ElementType::f32, {1, 2}, name == "a" ? std::vector{0.75, 127.0} : std::vector{1.75, 254.0});
    });
    EXPECT_THAT(run({})[0]->values, ElementsAre(1, 127, 2, 254));
  }
}

TEST(Entries, KeepStates) {
  Function run(R"(module attributes {kiln.symbols = [#kiln.symbol<"n", 1, 4>]} {
    func.func @f(%n: index, %x: tensor<1x3xf32>) -> tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>
        attributes {kiln.entry} {
      %y = kiln.append %x column = 1 to "s" rows = 4
          : tensor<1x3xf32> -> tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>
      return %y : tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>
    }
  })");
  EXPECT_THAT(run({tensorOf(ElementType::f32, {1, 3}, {1, 2, 3})}, {1})[0]->values, ElementsAre(2, 3));
  EXPECT_THAT(run({tensorOf(ElementType::f32, {1, 3}, {4, 5, 6})}, {3})[0]->values, ElementsAre(2, 3, 0, 0, 5, 6));
  EXPECT_THAT(run.interpreter.states.at("s")->values, ElementsAre(2, 3, 0, 0, 5, 6, 0, 0));
}

TEST(Kernels, HaveOpsOfTheirOwn) {
  Function transposed(R"(func.func @f(%a: tensor<1x2xf32>, %b: tensor<3x2xf32>) -> tensor<1x3xf32> {
    %y = kiln.matmul %a, %b transpose_b : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<1x3xf32>
    return %y : tensor<1x3xf32>
  })");
  EXPECT_THAT(transposed({tensorOf(ElementType::f32, {1, 2}, {1, 10}),
                          tensorOf(ElementType::f32, {3, 2}, {1, 2, 3, 4, 5, 6})})[0]
                  ->values,
              ElementsAre(21, 43, 65));
  Function sinusoid(R"(func.func @f(%p: tensor<2xi32>, %t: tensor<3x1xi32>) -> tensor<2x1xf32> {
    %y = kiln.sinusoid %p, %t : (tensor<2xi32>, tensor<3x1xi32>) -> tensor<2x1xf32>
    return %y : tensor<2x1xf32>
  })");
  // An eighth of a turn for each position, starting at a quarter.
  EXPECT_THAT(sinusoid({integers({1, 2}), tensorOf(ElementType::i32, {3, 1}, {0x1p29, 0, 0x1p30})})[0]->values,
              ElementsAre(::testing::DoubleNear(std::sqrt(0.5), 1e-12), ::testing::DoubleNear(0, 1e-12)));
}

} // namespace
} // namespace kiln::testing
