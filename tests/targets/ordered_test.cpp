// SPDX-License-Identifier: Apache-2.0
//
// Ordered kernels: a row comes out to the bit as it does alone, whichever form of the kernel, point of its search space
// and number of workers computes it, among however many rows.
#include "AttentionKernel.h"
#include "LinearKernel.h"
#include "compiler/schedule/SearchSpace.h"

namespace kiln::testing {
namespace {

/// The kernel of a text as an ordered one.
std::string ordered(std::string text) { return text.insert(text.find("kiln.bounds"), "kiln.ordered, "); }

/// Rows [first, first + count) of the leading extent.
Tensor rowsOf(const Tensor &all, int64_t first, int64_t count) {
  Tensor some = all;
  const int64_t row = int64_t(all.values.size()) / all.shape[0];
  some.shape[0] = count;
  some.values.assign(all.values.begin() + first * row, all.values.begin() + (first + count) * row);
  return some;
}

void expectSame(const Tensor &actual, const Tensor &expected) {
  ASSERT_EQ(actual.shape, expected.shape);
  for (size_t i = 0; i < expected.values.size(); ++i)
    ASSERT_EQ(actual.values[i], expected.values[i]) << "element " << i << " of " << expected.values.size();
}

class Ordered : public ::testing::TestWithParam<std::string> {
protected:
  const std::string &target() const { return GetParam(); }
};

//===- Contractions ------------------------------------------------------===//

/// gelu(x w^T + b) + r of up to so many rows.
std::string layer(int64_t n, int64_t k, const std::string &layout, int64_t rows) {
  auto type = [](const std::string &columns) {
    return "tensor<?x" + columns + "xf32, affine_map<()[s0] -> (s0, " + columns + ")>>";
  };
  const std::string x = type(number(k)), y = type(number(n)), bias = "tensor<" + number(n) + "xf32>",
                    w = "tensor<" + number(n) + "x" + number(k) + "xf32" + (layout.empty() ? "" : ", " + layout) + ">";
  return "func.func private @layer(%s0: index, %x: " + x + ", %w: " + w + ", %b: " + bias + ", %r: " + y + ") -> " + y +
         " attributes {kiln.kernel, kiln.ordered, kiln.bounds = array<i64: 1, " + number(rows) +
         ">} {\n  %0 = kiln.linear %x, %w, %b weight_order = out_in : (" + x + ", " + w + ", " + bias + ") -> " + y +
         "\n  %1 = kiln.gelu %0 : " + y + "\n  %2 = kiln.add %1, %r : (" + y + ", " + y + ") -> " + y +
         "\n  return %2 : " + y + "\n}\n";
}

/// A layer's inputs for many rows, and its results of each row alone.
struct Layer {
  Layer(int64_t n, int64_t k, const std::string &storage, const std::string &target, int64_t rows)
      : n(n), k(k), target(target) {
    const int64_t tile = findTarget(target)->weightTile(n, k);
    layout = tile == 0 ? ""
                       : "#kiln.tiled<0, " + number(tile) + (storage.empty() ? "" : ", storage = <" + storage + ">") +
                             ">";
    x = randomTensor({rows, k}), r = randomTensor({rows, n}), b = randomTensor({n});
    w = storage.empty() ? randomTensor({n, k}, 0.1) : randomIntegers({n, k}, -8, 8);
    // Whole numbers, with the largest magnitude in each group: every storage has them.
    for (int64_t i = 0; !storage.empty() && i < n * k; i += 8)
      w.values[i] = storage == "i8" ? (i % k == 0 ? 127 : w.values[i]) : -8;
    Kernel one = kernel(1);
    alone = r;
    for (int64_t row = 0; row < rows; ++row) {
      const Tensor y = run(one, row, 1, 1);
      std::copy(y.values.begin(), y.values.end(), alone.values.begin() + row * n);
    }
  }

  Kernel kernel(int64_t rows, const SchedulePoint *point = nullptr) const {
    return Kernel(layer(n, k, layout, rows), target, point);
  }
  Tensor run(Kernel &kernel, int64_t first, int64_t count, int workers) const {
    return kernel.run({count}, {rowsOf(x, first, count), w, b, rowsOf(r, first, count)}, -1, workers)[0];
  }
  void check(Kernel &kernel, int64_t first, int64_t count) const {
    SCOPED_TRACE("rows " + number(first) + " to " + number(first + count));
    for (int workers : {1, 2})
      expectSame(run(kernel, first, count, workers), rowsOf(alone, first, count));
  }

  int64_t n, k;
  std::string target, layout;
  Tensor x, w, b, r, alone;
};

TEST_P(Ordered, RowsOfALayer) {
  for (auto [n, k] : {std::pair(113, 64), {48, 768}, {2, 768}, {53, 3077}}) {
    SCOPED_TRACE("columns " + number(n) + " depth " + number(k));
    const Layer layer(n, k, "", target(), 301);
    for (int64_t most : {40, 32, 301}) {
      Kernel kernel = layer.kernel(most);
      SCOPED_TRACE(kernel.object().strategy);
      for (int64_t count = 1; count <= most; count += count < 40 ? 1 : 87)
        layer.check(kernel, count % 5, std::min(count, 301 - count % 5));
    }
  }
}

//===- Attention ---------------------------------------------------------===//

/// Queries [first, first + count) of [batch, queries, ...].
Tensor queriesOf(const Tensor &all, int64_t first, int64_t count) {
  Tensor some = all;
  some.shape[1] = count;
  some.values.clear();
  const int64_t row = int64_t(all.values.size()) / all.shape[0] / all.shape[1];
  for (int64_t b = 0; b < all.shape[0]; ++b) {
    auto begin = all.values.begin() + (b * all.shape[1] + first) * row;
    some.values.insert(some.values.end(), begin, begin + count * row);
  }
  return some;
}

/// Calls with some of the queries of a sequence: those of a causal one see the keys up to their own.
struct Sequence {
  Sequence(const AttentionCase &s, const std::string &target, int64_t length, int points)
      : shape(s), target(target), length(length), inputs(attentionInputs(s, length, length)) {
    AttentionCase one = s;
    one.mostQueries = 1;
    Kernel kernel(ordered(attentionKernel(one)), target);
    EXPECT_EQ(kernel.object().strategy, "one_query");
    for (int64_t i = 0; i < length; ++i)
      alone.push_back(run(kernel, i, 1, 1));
    for (const SchedulePoint &point : pointsToTry(describe(ordered(attentionKernel(s)), target).space, points, target))
      check(point);
  }

  void check(const SchedulePoint &point) {
    SCOPED_TRACE(toString(point));
    Kernel kernel(ordered(attentionKernel(shape)), target, &point);
    EXPECT_EQ(kernel.object().strategy, "one_query");
    for (auto [first, count] : {std::pair<int64_t, int64_t>{0, length}, {0, 1}, {3, 40}, {length - 17, 17}, {61, 3}})
      for (int workers : {1, 2}) {
        SCOPED_TRACE("queries " + number(first) + " to " + number(first + count));
        const Tensor some = run(kernel, first, count, workers);
        for (int64_t i = 0; i < count; ++i)
          expectSame(queriesOf(some, i, 1), alone[first + i]);
      }
  }

  Tensor run(Kernel &kernel, int64_t first, int64_t count, int workers) const {
    const int64_t keys = shape.isCausal ? first + count : length;
    std::vector<Tensor> some = inputs;
    some[0] = queriesOf(inputs[0], first, count);
    some[1] = queriesOf(inputs[1], 0, keys), some[2] = queriesOf(inputs[2], 0, keys);
    return kernel.run({count, keys}, some, -1, workers)[0];
  }

  AttentionCase shape;
  std::string target;
  int64_t length;
  std::vector<Tensor> inputs, alone;
};

TEST_P(Ordered, QueriesOfASequence) {
  AttentionCase s;
  s.isCross = s.isCausal = s.isOffset = true;
  Sequence(s, target(), 130, 2);
  s.keyHeads = 1, s.depth = 40;
  Sequence(s, target(), 97, 0);
  s.isCausal = false, s.hasLengths = true;
  Sequence(s, target(), 97, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, Ordered, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
