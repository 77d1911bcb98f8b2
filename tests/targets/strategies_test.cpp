// SPDX-License-Identifier: Apache-2.0
//
// Every strategy over its search space: each parameter at its smallest and largest value with the others at their
// defaults, and some random configurations. Legal configurations compile, agree with a loop in f64 on odd sizes and
// give the same bits with one, two and three workers; illegal ones are rejected.
#include "Harness.h"
#include "compiler/schedule/SearchSpace.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <sstream>

namespace kiln::testing {
namespace {

std::string str(int64_t n) { return std::to_string(n); }

/// Returns an f32 type with these dimensions over s0 and s1.
std::string type(const std::string &shape, const std::string &extents, const char *symbols = "s0") {
  return "tensor<" + shape + "xf32, affine_map<()[" + symbols + "] -> (" + extents + ")>>";
}

double gelu(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }

/// A kernel, and its results by plain loops.
struct Subject {
  const char *strategy;
  std::string (*text)(const std::string &target);
  std::vector<std::vector<int64_t>> sizes;                                 // values of the symbols
  std::function<std::vector<Tensor>(const std::vector<int64_t> &)> inputs; // for these values
  std::function<std::vector<Tensor>(const std::vector<Tensor> &, int64_t s0, const std::string &target)> results;
  std::vector<std::string> streams = {}; // streams that "prefetch" prefetches
};

//===- Kernels -----------------------------------------------------------===//

constexpr int64_t kExtent = 770, columns = 53;

/// Returns gelu(x w^T + b) + r with up to `rows` rows.
std::string linearUpTo(int64_t rows, const std::string &target) {
  std::string layout = "#kiln.tiled<0, " + str(findTarget(target)->weightTile(columns, kExtent)) + ">";
  std::string x = type("?x770", "s0, 770"), y = type("?x53", "s0, 53"), w = "tensor<53x770xf32, " + layout + ">";
  return "func.func private @linear(%s0: index, %x: " + x + ", %w: " + w + ", %b: tensor<53xf32>, %r: " + y + ") -> " +
         y + " attributes {kiln.kernel, kiln.bounds = array<i64: 1, " + str(rows) + ">} {\n" +
         "  %0 = kiln.linear %x, %w, %b weight_order = out_in : (" + x + ", " + w + ", tensor<53xf32>) -> " + y +
         "\n  %1 = kiln.gelu %0 : " + y + "\n  %2 = kiln.add %1, %r : (" + y + ", " + y + ") -> " + y +
         "\n  return %2 : " + y + "\n}\n";
}

std::string linear(const std::string &target) { return linearUpTo(300, target); }
std::string skinnyLinear(const std::string &target) { return linearUpTo(13, target); }

std::vector<Tensor> linearInputs(const std::vector<int64_t> &s) {
  return {randomTensor({s[0], kExtent}), randomTensor({columns, kExtent}, 0.1), randomTensor({columns}),
          randomTensor({s[0], columns})};
}

std::vector<Tensor> linearResults(const std::vector<Tensor> &in, int64_t rows, const std::string &) {
  Tensor y = Tensor::zeros({rows, columns});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double sum = in[2].at({j});
      for (int64_t k = 0; k < kExtent; ++k)
        sum += in[0].at({i, k}) * in[1].at({j, k});
      y.at({i, j}) = gelu(sum) + in[3].at({i, j});
    }
  return {y};
}

constexpr int64_t heads = 3, width = 40;

/// Returns causal attention of three heads, with a length for each sequence's keys and values; the last query sees the
/// last key.
std::string attentionOf(const std::string &queries) {
  std::string kv = type("2x?x120", "2, s0, 120"), kvh = type("2x?x3x40", "2, s0, 3, 40");
  bool isFixed = queries != "?";
  std::string q = isFixed ? "tensor<2x" + queries + "x120xf32>" : kv,
              h = isFixed ? "tensor<2x" + queries + "x3x40xf32>" : kvh;
  std::string text = "func.func private @attention(%s0: index, %q: " + h + ", %k: " + kvh + ", %v: " + kvh +
                     ", %n: tensor<2xi32>) -> " + h + " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 300>} {\n";
  text += "  %qw = kiln.reshape %q : " + h + " -> " + q + "\n";
  for (std::string name : {"k", "v"})
    text += "  %" + name + "w = kiln.reshape %" + name + " : " + kvh + " -> " + kv + "\n";
  return text + "  %0 = kiln.attention %qw, %kw, %vw lengths %n heads = 3 scale = 0.25 causal : (" + q + ", " + kv +
         ", " + kv + ", tensor<2xi32>) -> " + q + "\n  %1 = kiln.reshape %0 : " + q + " -> " + h +
         "\n  return %1 : " + h + "\n}\n";
}

std::string attention(const std::string &) { return attentionOf("?"); }
std::string attentionOfOneQuery(const std::string &) { return attentionOf("1"); }

std::vector<Tensor> attentionInputsOf(int64_t queries, int64_t keys) {
  return {randomTensor({2, queries, heads, width}), randomTensor({2, keys, heads, width}),
          randomTensor({2, keys, heads, width}), randomIntegers({2}, 1, int(keys) + 1)};
}

std::vector<Tensor> attentionInputs(const std::vector<int64_t> &s) { return attentionInputsOf(s[0], s[0]); }
std::vector<Tensor> oneQueryInputs(const std::vector<int64_t> &s) { return attentionInputsOf(1, s[0]); }

std::vector<Tensor> attentionResults(const std::vector<Tensor> &in, int64_t keys, const std::string &) {
  Tensor y = in[0];
  for (int64_t b = 0, queries = in[0].shape[1]; b < 2; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < queries; ++i) {
        std::vector<double> score(std::min(i + 1 + keys - queries, int64_t(in[3].at({b}))));
        double largest = -INFINITY, sum = 0;
        for (size_t j = 0; j < score.size(); ++j) {
          for (int64_t d = 0; d < width; ++d)
            score[j] += in[0].at({b, i, h, d}) * in[1].at({b, int64_t(j), h, d}) / 4;
          largest = std::max(largest, score[j]);
        }
        for (double &x : score)
          sum += x = std::exp(x - largest);
        for (int64_t d = 0; d < width; ++d) {
          double total = 0;
          for (size_t j = 0; j < score.size(); ++j)
            total += score[j] * in[2].at({b, int64_t(j), h, d});
          y.at({b, i, h, d}) = total / sum;
        }
      }
  return {y};
}

/// Returns x + y and its layer norm.
std::string residualNorm(const std::string &) {
  std::string x = type("?x200", "s0, 200"), w = "tensor<200xf32>";
  return "func.func private @norm(%s0: index, %x: " + x + ", %y: " + x + ", %w: " + w + ", %b: " + w + ") -> (" + x +
         ", " + x + ") attributes {kiln.kernel, kiln.bounds = array<i64: 1, 9000>} {\n  %0 = kiln.add %x, %y : (" + x +
         ", " + x + ") -> " + x + "\n  %1 = kiln.layer_norm %0, %w, %b epsilon = 1.0e-5 : (" + x + ", " + w + ", " + w +
         ") -> " + x + "\n  return %0, %1 : " + x + ", " + x + "\n}\n";
}

std::vector<Tensor> residualNormInputs(const std::vector<int64_t> &s) {
  return {randomTensor({s[0], 200}), randomTensor({s[0], 200}), randomTensor({200}), randomTensor({200})};
}

std::vector<Tensor> residualNormResults(const std::vector<Tensor> &in, int64_t rows, const std::string &) {
  Tensor s = in[0], norm = in[0];
  for (int64_t i = 0; i < rows; ++i) {
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < 200; ++j)
      mean += (s.at({i, j}) = float(in[0].at({i, j}) + in[1].at({i, j}))) / 200;
    for (int64_t j = 0; j < 200; ++j)
      variance += std::pow(s.at({i, j}) - mean, 2) / 200;
    for (int64_t j = 0; j < 200; ++j)
      norm.at({i, j}) = (s.at({i, j}) - mean) / std::sqrt(variance + 1e-5) * in[2].at({j}) + in[3].at({j});
  }
  return {s, norm};
}

/// Returns a softmax along the middle axis, vectorised over the last axis.
std::string columnSoftmax(const std::string &) {
  std::string x = type("5x?x37", "5, s0, 37");
  return "func.func private @softmax(%s0: index, %x: " + x + ") -> " + x +
         " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 500>} {\n  %0 = kiln.softmax %x axis = 1 : " + x +
         "\n  return %0 : " + x + "\n}\n";
}

std::vector<Tensor> columnSoftmaxInputs(const std::vector<int64_t> &s) { return {randomTensor({5, s[0], 37}, 4)}; }

std::vector<Tensor> columnSoftmaxResults(const std::vector<Tensor> &in, int64_t rows, const std::string &) {
  Tensor y = in[0];
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 37; ++j) {
      double largest = -INFINITY, sum = 0;
      for (int64_t r = 0; r < rows; ++r)
        largest = std::max(largest, y.at({i, r, j}));
      for (int64_t r = 0; r < rows; ++r)
        sum += y.at({i, r, j}) = std::exp(y.at({i, r, j}) - largest);
      for (int64_t r = 0; r < rows; ++r)
        y.at({i, r, j}) /= sum;
    }
  return {y};
}

/// Returns running sums of sigmoids, plus the tensor itself: along the middle axis, or backwards along the last one.
std::string runningSum(const std::string &axis) {
  std::string x = type("5x?x37", "5, s0, 37");
  return "func.func private @running(%s0: index, %x: " + x + ") -> " + x +
         " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 500>} {\n  %0 = kiln.sigmoid %x : " + x +
         "\n  %1 = kiln.cumsum %0 axis = " + axis + " : " + x + "\n  %2 = kiln.add %1, %x : (" + x + ", " + x +
         ") -> " + x + "\n  return %2 : " + x + "\n}\n";
}
std::string runningSumOfRows(const std::string &) { return runningSum("1"); }
std::string runningSumBackwards(const std::string &) { return runningSum("2 reverse"); }

std::vector<Tensor> runningSumInputs(const std::vector<int64_t> &s) { return {randomTensor({5, s[0], 37}, 4)}; }

std::vector<Tensor> runningSumResults(const std::vector<Tensor> &in, int64_t rows, bool isOfRows) {
  Tensor y = in[0];
  auto sigmoid = [&](int64_t i, int64_t r, int64_t j) { return 1 / (1 + std::exp(-double(in[0].at({i, r, j})))); };
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < 37; ++j) {
        double sum = 0;
        for (int64_t other = isOfRows ? 0 : j; other < (isOfRows ? r + 1 : 37); ++other)
          sum += isOfRows ? sigmoid(i, other, j) : sigmoid(i, r, other);
        y.at({i, r, j}) = in[0].at({i, r, j}) + sum;
      }
  return {y};
}

/// Returns rows of a table plus a row that is broadcast.
std::string lookup(const std::string &) {
  std::string y = type("?x75", "s0, 75");
  return "func.func private @lookup(%s0: index, %i: tensor<?xi32, affine_map<()[s0] -> (s0)>>, %t: tensor<40x75xf32>, "
         "%b: tensor<75xf32>) -> " +
         y + " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 100000>} {\n" +
         "  %0 = kiln.embedding %i, %t : (tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<40x75xf32>) -> " + y +
         "\n  %1 = kiln.add %0, %b : (" + y + ", tensor<75xf32>) -> " + y + "\n  return %1 : " + y + "\n}\n";
}

std::vector<Tensor> lookupInputs(const std::vector<int64_t> &s) {
  return {randomIntegers({s[0]}, 0, 40), randomTensor({40, 75}), randomTensor({75})};
}

std::vector<Tensor> lookupResults(const std::vector<Tensor> &in, int64_t rows, const std::string &) {
  Tensor y = Tensor::zeros({rows, 75});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < 75; ++j)
      y.at({i, j}) = in[1].at({int64_t(in[0].at({i})), j}) + in[2].at({j});
  return {y};
}

/// Returns a multiplication over one long axis.
std::string line(const std::string &) {
  std::string x = type("?", "s0");
  return "func.func private @line(%s0: index, %x: " + x + ", %y: " + x + ") -> " + x +
         " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 5000000>} {\n  %0 = kiln.mul %x, %y : (" + x + ", " +
         x + ") -> " + x + "\n  return %0 : " + x + "\n}\n";
}

std::vector<Tensor> lineInputs(const std::vector<int64_t> &s) { return {randomTensor({s[0]}), randomTensor({s[0]})}; }

std::vector<Tensor> lineResults(const std::vector<Tensor> &in, int64_t, const std::string &) {
  Tensor y = in[0];
  for (size_t i = 0; i < y.values.size(); ++i)
    y.values[i] *= in[1].values[i];
  return {y};
}

const Subject subjects[] = {
    {"contraction", linear, {{1}, {19}, {261}}, linearInputs, linearResults},
    {"skinny_gemm", skinnyLinear, {{1}, {5}, {13}}, linearInputs, linearResults},
    {"attention", attention, {{1}, {67}, {261}}, attentionInputs, attentionResults},
    {"one_query", attentionOfOneQuery, {{1}, {67}, {261}}, oneQueryInputs, attentionResults},
    {"row_reduction",
     residualNorm,
     {{1}, {23}, {1111}},
     residualNormInputs,
     residualNormResults,
     {"in1", "in2", "out0.0", "out0.1"}},
    {"row_reduction", columnSoftmax, {{1}, {450}}, columnSoftmaxInputs, columnSoftmaxResults},
    {"running_sum",
     runningSumOfRows,
     {{1}, {2}, {450}},
     runningSumInputs,
     [](auto &in, int64_t rows, auto &) { return runningSumResults(in, rows, true); }},
    {"running_sum",
     runningSumBackwards,
     {{1}, {450}},
     runningSumInputs,
     [](auto &in, int64_t rows, auto &) { return runningSumResults(in, rows, false); }},
    {"pointwise", lookup, {{1}, {13}, {1501}}, lookupInputs, lookupResults, {"in2", "out0"}},
    {"pointwise", line, {{1}, {15}, {100003}}, lineInputs, lineResults, {"in1", "in2", "out0"}},
};

//===- Checks ------------------------------------------------------------===//

void expectSameBits(const std::vector<Tensor> &actual, const std::vector<Tensor> &expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    for (size_t j = 0; j < expected[i].values.size(); ++j)
      ASSERT_EQ(actual[i].values[j], expected[i].values[j]) << "element " << j << " of result " << i;
}

struct Case {
  std::vector<int64_t> symbols;
  std::vector<Tensor> inputs, expected;
};

void check(Kernel &kernel, const Case &c) {
  SCOPED_TRACE("size " + str(c.symbols[0]));
  std::vector<Tensor> first = kernel.run(c.symbols, c.inputs);
  ASSERT_EQ(first.size(), c.expected.size());
  for (size_t i = 0; i < first.size(); ++i)
    expectClose(first[i], c.expected[i], 1e-5, false, 1);
  for (int workers : {2, 3}) {
    SCOPED_TRACE(str(workers) + " workers");
    expectSameBits(kernel.run(c.symbols, c.inputs, /*aliased=*/-1, workers), first);
  }
}

class Strategies : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(Strategies, ConfigsOfTheSpace) {
  auto [target, number] = GetParam();
  const Subject &subject = subjects[number];
  std::string text = subject.text(target);
  Schedulable schedulable = describe(text, target);
  EXPECT_EQ(schedulable.strategy, subject.strategy);
  std::vector<Case> cases;
  for (const std::vector<int64_t> &symbols : subject.sizes) {
    std::vector<Tensor> inputs = subject.inputs(symbols);
    cases.push_back({symbols, inputs, subject.results(inputs, symbols[0], target)});
  }
  for (const ScheduleConfig &config : configsToTry(schedulable.space, /*more=*/3, target)) {
    SCOPED_TRACE(toString(config));
    Kernel kernel(text, target, &config);
    EXPECT_EQ(kernel.object().schedule, config);
    for (const Case &c : cases)
      check(kernel, c);
  }
  for (const TuningParameter &parameter : schedulable.space)
    for (int64_t value : {parameter.values.front(), parameter.values.back(), parameter.values.back() + 1}) {
      ScheduleConfig config{{parameter.key, value}};
      std::string error;
      if (!resolve(schedulable.space, &config, error)) {
        EXPECT_NE(compileError(text, &config, target).find(error), std::string::npos) << "is not refused: " << error;
      }
    }
}

TEST_P(Strategies, StreamsAreAskedForOnRequest) {
  auto [target, number] = GetParam();
  const Subject &subject = subjects[number];
  std::string text = subject.text(target);
  for (int64_t bytes : {0, 1024, 4096}) {
    if (subject.streams.empty())
      continue;
    SCOPED_TRACE(bytes);
    ScheduleConfig config{{"prefetch", bytes}};
    EXPECT_EQ(assemblyOf(text, target, config).find("prefetcht0") != std::string::npos, bytes > 0);
    std::string statement = statementOf(text, target, config);
    for (const std::string &stream : subject.streams) {
      bool isAskedFor = false;
      std::istringstream lines(statement);
      for (std::string line; std::getline(lines, line);)
        isAskedFor |= line.find("prefetch") != std::string::npos && line.find("kernel_" + stream) != std::string::npos;
      EXPECT_EQ(isAskedFor, bytes > 0) << stream;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Strategies,
                         ::testing::Combine(::testing::ValuesIn(runnableTargets()),
                                            ::testing::Range(0, int(std::size(subjects)))),
                         [](const auto &info) {
                           return "v" + std::get<0>(info.param).substr(8) + "_" +
                                  subjects[std::get<1>(info.param)].strategy + "_" + str(std::get<1>(info.param));
                         });

} // namespace
} // namespace kiln::testing
