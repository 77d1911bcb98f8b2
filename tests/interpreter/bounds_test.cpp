// SPDX-License-Identifier: Apache-2.0
// The error bounds hold for many f32 evaluation orders, for single ops and for chains, and are not much too large.
#include "compiler/interpreter/Compare.h"
#include "compiler/interpreter/Sampled.h"
#include "ops.h"
#include "single.h"

#include <functional>
#include <utility>

namespace kiln::interpreter {
namespace {

using single::Floats;
using single::Way;

Tensor draw(Way &way, TensorShape shape, double size = 1) {
  Tensor x = Tensor::zeros(ElementType::f32, std::move(shape));
  for (double &value : x.values)
    value = roundTo(ElementType::f32, size * way.unit());
  return x;
}
Floats floats(const Tensor &x) { return {x.values.begin(), x.values.end()}; }

/// How an op's bound compares with the error of f32: the largest ratio over all evaluation orders.
class Ratio {
public:
  void see(const Tensor &exact, const Floats &single) {
    const Comparison comparison = compare(exact, single);
    EXPECT_TRUE(comparison.isRight) << describe(comparison);
    EXPECT_EQ(comparison.undetermined, 0u);
    worst = std::max(worst, comparison.worst);
  }
  /// For a well-conditioned op the bound is at most 100 times the largest observed error.
  ~Ratio() { EXPECT_GE(worst, 0.01); }
  double worst = 0;
};

TEST(Bounds, OfContractions) {
  for (std::int64_t n : {3, 64, 300, 1000}) {
    SCOPED_TRACE(n);
    Ratio ratio;
    for (unsigned seed = 0; seed < 20; ++seed) {
      Way way(seed);
      Tensor x = draw(way, {5, n}), weight = draw(way, {7, n});
      if (seed % 4 == 0) // all of one sign, so that roundings do not cancel
        for (double &value : x.values)
          value = 0.1f;
      if (seed % 8 == 0)
        for (double &value : weight.values)
          value = 0.7f;
      const Floats a = floats(x), b = floats(weight);
      Floats y;
      for (std::int64_t i = 0; i < 5; ++i)
        for (std::int64_t o = 0; o < 7; ++o)
          y.push_back(way.dot(&a[i * n], 1, &b[o * n], 1, static_cast<std::size_t>(n)));
      ratio.see(evaluate(Op::linear, {x, weight}, {5, 7}), y);
    }
  }
}

TEST(Bounds, OfSumsAndMeans) {
  Ratio sums, means;
  for (unsigned seed = 0; seed < 50; ++seed) {
    Way way(seed);
    const Tensor x = draw(way, {1, 33}, 100);
    const float total = way.sum(floats(x));
    sums.see(evaluate(Op::sum, {x}, {1}, along(1)), {total});
    means.see(evaluate(Op::mean, {x}, {1}, along(1)), {way.pick(2) ? total / 33 : total * (1 / 33.0f)});
  }
}

// Sums in any grouping, with large cancellation.
TEST(Bounds, OfSumsInAnyGrouping) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Way way(seed);
    const Tensor a = draw(way, {1}, 1e4), b = draw(way, {1}, 1e-3), c = draw(way, {1}, 1e-3);
    const Tensor d = evaluate(Op::add, {a, b}, {1}), e = evaluate(Op::sub, {d, a}, {1});
    const Tensor y = evaluate(Op::add, {e, c}, {1});
    const auto x = static_cast<float>(a.values[0]), p = static_cast<float>(b.values[0]),
               q = static_cast<float>(c.values[0]);
    for (float way : {((x + p) - x) + q, p + q, (x + (p + q)) - x, (x + p) + (q - x)})
      EXPECT_TRUE(compare(y, Floats{way}).isRight) << seed;
  }
}

TEST(Bounds, OfRows) {
  Ratio softmaxes, layerNorms, rmsNorms;
  Attributes attributes = along(0);
  attributes.epsilon = 1e-5;
  for (unsigned seed = 0; seed < 50; ++seed) {
    Way way(seed);
    const Tensor x = draw(way, {21}, seed % 2 ? 3 : 30), weight = draw(way, {21}), bias = draw(way, {21});
    Floats row = floats(x);
    way.softmax(row);
    softmaxes.see(evaluate(Op::softmax, {x}, {21}, attributes), row);
    row = floats(x);
    way.layerNorm(row, floats(weight), floats(bias), 1e-5f);
    layerNorms.see(evaluate(Op::layer_norm, {x, weight, bias}, {21}, attributes), row);
    row = floats(x);
    way.rmsNorm(row, floats(weight), 1e-5f);
    rmsNorms.see(evaluate(Op::rms_norm, {x, weight}, {21}, attributes), row);
  }
}

TEST(Bounds, OfFunctions) {
  Way way(1);
  auto expect = [&](Op op, auto function, double size, double shift = 0) {
    SCOPED_TRACE(static_cast<int>(op));
    Ratio ratio;
    Tensor x = draw(way, {2000}, size);
    for (double &value : x.values)
      value = roundTo(ElementType::f32, value + shift);
    Floats y;
    for (double value : x.values)
      y.push_back(function(static_cast<float>(value)));
    ratio.see(evaluate(op, {x}, {2000}), y);
  };
  // Within 2 ulp, including the rounding to f32.
  auto precise = [&](double value) { return static_cast<float>(value * (1 + 0x1p-23 * way.unit())); };
  expect(Op::exp, [&](float x) { return precise(std::exp(double{x})); }, 80);
  expect(Op::log, [&](float x) { return precise(std::log(double{x})); }, 100, 101);
  expect(Op::expm1, [&](float x) { return precise(std::expm1(double{x})); }, 80);
  expect(Op::expm1, [&](float x) { return precise(std::expm1(double{x})); }, 1e-3);
  expect(Op::log1p, [&](float x) { return precise(std::log1p(double{x})); }, 100, 100);
  expect(Op::erf, [&](float x) { return way.function(std::erf(double{x})); }, 4);
  expect(Op::sin, [&](float x) { return static_cast<float>(std::sin(double{x}) + 1.5e-7 * way.unit()); }, 1000);
  expect(Op::sqrt, [&](float x) { return std::sqrt(x); }, 100, 101);
  expect(Op::tanh, [&](float x) { return way.function(std::tanh(double{x})); }, 5);
  expect(Op::sigmoid, [&](float x) { return way.sigmoid(x); }, 30);
  expect(Op::gelu, [&](float x) { return way.gelu(x); }, 6);
  expect(Op::gelu, [&](float x) { return x * 0.5f * (1 + way.function(std::erf(double{x} * std::sqrt(0.5)))); }, 6);
  expect(Op::silu, [&](float x) { return way.silu(x); }, 20);
  expect(
      Op::gelu_tanh, [&](float x) { return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x))); }, 6);
  expect(Op::gelu_tanh, [&](float x) { return x / (1 + way.exp(-1.59576912f * (x + 0.044715f * x * x * x))); }, 6);
}

TEST(Bounds, OfConvolutions) {
  constexpr std::int64_t height = 8, width = 10, channels = 19, outputs = 3;
  Ratio ratio;
  for (unsigned seed = 0; seed < 5; ++seed) {
    Way way(seed);
    Tensor x = draw(way, {height, width, channels});
    const Tensor weight = draw(way, {outputs, channels, 3, 3});
    for (std::int64_t i = 0; i < 60; ++i) // large values next to small ones
      x.values[way.pick(height * width * channels)] *= 1024;
    const Tensor y = evaluate(Op::conv2d, {x, weight}, {height - 2, width - 2, outputs});
    ratio.see(y, single::winograd(floats(x), height, width, channels, floats(weight), outputs));
    Floats direct;
    const Floats a = floats(x), b = floats(weight);
    for (std::int64_t i = 0; i < height - 2; ++i)
      for (std::int64_t j = 0; j < width - 2; ++j)
        for (std::int64_t o = 0; o < outputs; ++o) {
          float sum = 0;
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t k = 0; k < 9; ++k)
              sum += a[((i + k / 3) * width + j + k % 3) * channels + c] * b[(o * channels + c) * 9 + k];
          direct.push_back(sum);
        }
    ratio.see(y, direct);
  }
}

TEST(Bounds, OfAttention) {
  constexpr std::int64_t queries = 5, keys = 9, depth = 6;
  Ratio ratio;
  Attributes attributes;
  attributes.heads = attributes.key_value_heads = 1;
  attributes.scale = 0.4;
  for (unsigned seed = 0; seed < 20; ++seed) {
    Way way(seed);
    const Tensor q = draw(way, {queries, depth}, 3), k = draw(way, {keys, depth}, 3), v = draw(way, {keys, depth});
    const Floats a = floats(q), b = floats(k), c = floats(v);
    Floats y;
    for (std::int64_t i = 0; i < queries; ++i) {
      Floats row;
      for (std::int64_t j = 0; j < keys; ++j)
        row.push_back(0.4f * way.dot(&a[i * depth], 1, &b[j * depth], 1, depth));
      way.softmax(row);
      for (std::int64_t e = 0; e < depth; ++e)
        y.push_back(way.dot(row.data(), 1, &c[e], depth, keys));
    }
    ratio.see(evaluate(Op::attention, {q, k, v}, {queries, depth}, attributes), y);
  }
}

/// Random ops on a matrix in both arithmetics; those in f64 are kept, to evaluate them again.
class Chain {
public:
  static constexpr std::int64_t n = 6;
  explicit Chain(unsigned seed) : way(seed), first(draw(way, {n, n}, 2)), exact(first), single(floats(exact)) {}

  void step() {
    switch (way.pick(9)) {
    case 0:
      return multiply(draw(way, {n, n}));
    case 1:
      return pointwise(Op::gelu, [&](float x) { return way.gelu(x); });
    case 2:
      return pointwise(Op::tanh, [&](float x) { return way.function(std::tanh(double{x})); });
    case 3:
      return rows(Op::softmax, [&](Floats &row) { way.softmax(row); });
    case 4: {
      const Tensor weight = draw(way, {n}), bias = draw(way, {n});
      operands = {weight, bias};
      return rows(Op::layer_norm, [&](Floats &row) { way.layerNorm(row, floats(weight), floats(bias), 0.01f); });
    }
    case 5:
      return pointwise(Op::relu, [](float x) { return std::max(x, 0.0f); });
    case 6:
      return withOther(Op::add, [](float x, float y) { return x + y; });
    case 7:
      return withOther(Op::mul, [](float x, float y) { return x * y; });
    default:
      return divide();
    }
  }

  /// Evaluates the chain in f64, and calls `after` after each op.
  template <class After> Tensor again(After after) const {
    Tensor x = first;
    for (const auto &op : ops) {
      x = op(x);
      after(x);
    }
    return x;
  }

  Way way;
  Tensor first, exact;
  Floats single;
  std::vector<std::function<Tensor(const Tensor &)>> ops;

private:
  template <class Op> void apply(Op op) {
    ops.push_back(op);
    exact = op(exact);
  }
  void multiply(const Tensor &b) {
    const Floats right = floats(b), left = single;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        single[i * n + j] = way.dot(&left[i * n], 1, &right[j], n, n);
    apply([=](const Tensor &x) { return evaluate(Op::matmul, {x, b}, {n, n}); });
  }
  template <class Function> void pointwise(Op op, Function function) {
    for (float &x : single)
      x = function(x);
    apply([=](const Tensor &x) { return evaluate(op, {x}, {n, n}); });
  }
  template <class Function> void rows(Op op, Function function) {
    for (std::int64_t i = 0; i < n; ++i) {
      Floats row(&single[i * n], &single[i * n] + n);
      function(row);
      std::copy(row.begin(), row.end(), &single[i * n]);
    }
    Attributes attributes = along(1);
    attributes.epsilon = 0.01f;
    apply([=, all = std::exchange(operands, {})](const Tensor &x) mutable {
      all.insert(all.begin(), x);
      Tensor result = evaluate(op, all, {n, n}, attributes);
      all.erase(all.begin());
      return result;
    });
  }
  template <class Function> void withOther(Op op, Function function) {
    const Tensor other = draw(way, {n});
    for (std::int64_t i = 0; i < n * n; ++i)
      single[i] = function(single[i], static_cast<float>(other.values[i % n]));
    apply([=](const Tensor &x) { return evaluate(op, {x, other}, {n, n}); });
  }
  /// x / (1 + x x)
  void divide() {
    for (float &x : single)
      x = way.pick(2) ? x / std::fma(x, x, 1.0f) : x * (1 / (1 + x * x));
    apply([](const Tensor &x) {
      const Tensor square = evaluate(Op::add, {evaluate(Op::mul, {x, x}, {n, n}), f32({}, {1})}, {n, n});
      return evaluate(Op::div, {x, square}, {n, n});
    });
  }

  std::vector<Tensor> operands;
};

TEST(Bounds, OfChains) {
  double tight = 0;
  constexpr unsigned chains = 2000;
  for (unsigned seed = 0; seed < chains; ++seed) {
    Chain chain(seed);
    for (int i = 0; i < 6; ++i)
      chain.step();
    const Comparison comparison = compare(chain.exact, chain.single);
    ASSERT_TRUE(comparison.isRight) << "chain " << seed << ": " << describe(comparison);
    tight += comparison.tight / chains;
  }
  EXPECT_GE(tight, 0.9); // nearly all elements have a bound tight enough to detect errors
}

// Much longer chains: bounds from perturbed evaluations hold, too, and are tighter.
TEST(Bounds, OfLongChains) {
  double tight = 0, sampled = 0, worst = 0;
  constexpr unsigned chains = 1000;
  for (unsigned seed = 0; seed < chains; ++seed) {
    Chain chain(seed);
    for (int i = 0; i < 30; ++i)
      chain.step();
    tight += tightShare(chain.exact) / chains;
    std::vector<Tensor> moved;
    for (unsigned i = 0; i < 12; ++i)
      moved.push_back(chain.again(Mover(i)));
    takeErrors(chain.exact, moved);
    const Comparison comparison = compare(chain.exact, chain.single);
    ASSERT_TRUE(comparison.isRight) << "chain " << seed << ": " << describe(comparison);
    sampled += comparison.tight / chains;
    worst = std::max(worst, comparison.worst);
  }
  RecordProperty("tight", std::to_string(tight));
  EXPECT_GE(sampled, 0.9);
  EXPECT_GE(worst, 0.02);
}

} // namespace
} // namespace kiln::interpreter
