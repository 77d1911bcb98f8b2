// SPDX-License-Identifier: Apache-2.0
//
// Batch-invariant kernels: the result of a row has the same bits as in a call with only this row, for all variants of
// the kernel, configurations of its search space, numbers of workers and of rows.
#include "AttentionKernel.h"
#include "LinearKernel.h"
#include "StoredNumbers.h"
#include "compiler/schedule/SearchSpace.h"
#include <numeric>

namespace kiln::testing {
namespace {

/// Marks the kernel of a text as batch-invariant.
std::string batchInvariant(std::string text) { return text.insert(text.find("kiln.bounds"), "kiln.batch_invariant, "); }

/// Returns rows [first, first + count) of the leading dimension.
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

class BatchInvariant : public ::testing::TestWithParam<std::string> {
protected:
  const std::string &target() const { return GetParam(); }
};

//===- Contractions ------------------------------------------------------===//

/// Returns gelu(x w^T + b) + r with up to `rows` rows.
std::string layer(int64_t n, int64_t k, const std::string &layout, int64_t rows) {
  auto type = [](const std::string &columns) {
    return "tensor<?x" + columns + "xf32, affine_map<()[s0] -> (s0, " + columns + ")>>";
  };
  const std::string x = type(number(k)), y = type(number(n)), bias = "tensor<" + number(n) + "xf32>",
                    w = "tensor<" + number(n) + "x" + number(k) + "xf32" + (layout.empty() ? "" : ", " + layout) + ">";
  return "func.func private @layer(%s0: index, %x: " + x + ", %w: " + w + ", %b: " + bias + ", %r: " + y + ") -> " + y +
         " attributes {kiln.kernel, kiln.batch_invariant, kiln.bounds = array<i64: 1, " + number(rows) +
         ">} {\n  %0 = kiln.linear %x, %w, %b weight_order = out_in : (" + x + ", " + w + ", " + bias + ") -> " + y +
         "\n  %1 = kiln.gelu %0 : " + y + "\n  %2 = kiln.add %1, %r : (" + y + ", " + y + ") -> " + y +
         "\n  return %2 : " + y + "\n}\n";
}

/// Returns numbers that the storage format represents: for groups, integers times an f16 that is no power of two.
Tensor weightsFor(const std::string &storage, int64_t n, int64_t k) {
  if (storage.empty() || storage == "i8")
    return randomTensor({n, k}, 0.1);
  if (storage.starts_with("ui4") || storage.starts_with("i6") || storage.starts_with("i8"))
    return storedNumbers(storage, n, k);
  Tensor w = randomIntegers({n, k}, -8, 8);
  const bool isGrouped = storage.starts_with("i4");
  const int64_t group = isGrouped ? std::stoll(storage.substr(storage.find('=') + 1)) : k;
  for (int64_t row = 0; row < n; ++row)
    for (int64_t i = 0; i < k; ++i) {
      if (isGrouped && i % group < 2)
        w.at({row, i}) = i % group ? 7 : -8;
      w.at({row, i}) *= isGrouped ? double(1000 + (row * 31 + i / group * 7) % 1000) / 8192 : 0.125;
    }
  return w;
}

/// A layer's inputs for many rows, and the result of each row computed by itself.
struct Layer {
  Layer(int64_t n, int64_t k, const std::string &storage, const std::string &target, int64_t rows)
      : n(n), k(k), target(target), x(randomTensor({rows, k})), w(weightsFor(storage, n, k)), b(randomTensor({n})),
        r(randomTensor({rows, n})), alone(r) {
    if (const int64_t tile = findTarget(target)->weightTile(n, k))
      layout = "#kiln.tiled<0, " + number(tile) + (storage.empty() ? "" : ", storage = <" + storage + ">") + ">";
    Kernel one(text(1), target);
    for (int64_t row = 0; row < rows; ++row) {
      const Tensor y = run(one, row, 1, 1);
      std::copy(y.values.begin(), y.values.end(), alone.values.begin() + row * n);
    }
    if (storage != "i8")
      expectClose(alone, inF64(), 1e-5, false, 1);
  }

  std::string text(int64_t most) const { return layer(n, k, layout, most); }
  Tensor inF64() const {
    Tensor y = r;
    for (int64_t i = 0; i < r.shape[0]; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = b.at({j});
        for (int64_t l = 0; l < k; ++l)
          sum += x.values[i * k + l] * w.values[j * k + l];
        y.at({i, j}) += sum / 2 * (1 + std::erf(sum / std::sqrt(2.0)));
      }
    return y;
  }
  Tensor run(Kernel &kernel, int64_t first, int64_t count, int workers) const {
    return kernel.run({count}, {rowsOf(x, first, count), w, b, rowsOf(r, first, count)}, -1, workers)[0];
  }
  /// Checks calls with these numbers of rows, at several first rows.
  void check(int64_t most, const std::vector<int64_t> &counts, const ScheduleConfig *config = nullptr) const {
    Kernel kernel(text(most), target, config);
    for (int64_t count : counts) {
      const int64_t first = std::min(count % 7, r.shape[0] - count);
      SCOPED_TRACE("rows " + number(first) + " to " + number(first + count) + " of " + kernel.object().strategy);
      for (int workers : {1, 2})
        expectSame(run(kernel, first, count, workers), rowsOf(alone, first, count));
    }
  }

  int64_t n, k;
  std::string target, layout;
  Tensor x, w, b, r, alone;
};

/// Returns 1, 2, ... up to `last`.
std::vector<int64_t> upTo(int64_t last) {
  std::vector<int64_t> counts(last);
  std::iota(counts.begin(), counts.end(), 1);
  return counts;
}

TEST_P(BatchInvariant, EachNumberOfRows) {
  const Layer layer(113, 64, "", target(), 301);
  layer.check(32, upTo(32));
  std::vector<int64_t> counts = upTo(40);
  counts.insert(counts.end(), {64, 127, 301});
  layer.check(301, counts);
}

TEST_P(BatchInvariant, KAndStorages) {
  struct Case {
    int64_t n, k;
    const char *storage;
  };
  size_t turn = 0;
  for (const Case &c : {Case{48, 3077, ""},
                        {2, 768, ""},
                        {113, 768, "f16"},
                        {49, 640, "i8"},
                        {53, 3072, "i4, group = 64"},
                        {50, 96, "i4, group = 32, zero = true"},
                        {96, 3072, ""},
                        {17, 769, "bf16"},
                        {113, 128, "i4, group = 128"},
                        {49, 512, "ui4, group = 32"},
                        {50, 512, "i6, group = 16"},
                        {51, 96, "i8, group = 32"}}) {
    if (!hasTurn(target(), turn++))
      continue;
    SCOPED_TRACE("columns " + number(c.n) + " K " + number(c.k) + " " + c.storage);
    const Layer layer(c.n, c.k, c.storage, target(), 41);
    layer.check(32, {2, 5, 31});
    layer.check(301, {1, 3, 8, 41});
  }
}

TEST_P(BatchInvariant, ConfigsOfTheSearchSpaces) {
  for (auto [most, storage] : {std::pair(13, ""), {301, ""}, {301, "i4, group = 32"}}) {
    const Layer layer(113, 160, storage, target(), 37);
    for (const ScheduleConfig &config : configsToTry(describe(layer.text(most), target()).space, 1, target())) {
      SCOPED_TRACE(toString(config));
      layer.check(most, {2, std::min(most, 37)}, &config);
    }
  }
}

//===- Attention ---------------------------------------------------------===//

/// Returns queries [first, first + count) of [batch, queries, ...].
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

/// Checks calls with some of a sequence's queries; those of causal attention see the keys up to their own position.
struct Sequence {
  Sequence(const AttentionCase &s, const std::string &target, int64_t length, int configs)
      : shape(s), target(target), length(length), inputs(attentionInputs(s, length, length)) {
    AttentionCase one = s;
    one.mostQueries = 1;
    Kernel kernel(batchInvariant(attentionKernel(one)), target);
    EXPECT_EQ(kernel.object().strategy, "one_query");
    for (int64_t i = 0; i < length; ++i)
      alone.push_back(run(kernel, i, 1, 1));
    for (const ScheduleConfig &config :
         configsToTry(describe(batchInvariant(attentionKernel(s)), target).space, configs, target))
      check(config);
  }

  void check(const ScheduleConfig &config) {
    SCOPED_TRACE(toString(config));
    Kernel kernel(batchInvariant(attentionKernel(shape)), target, &config);
    EXPECT_EQ(kernel.object().strategy, "one_query");
    for (auto [first, count] : {std::pair<int64_t, int64_t>{0, length}, {0, 1}, {3, 40}, {length - 7, 7}})
      for (int workers : {1, 2}) {
        SCOPED_TRACE("queries " + number(first) + " to " + number(first + count));
        const Tensor some = run(kernel, first, count, workers);
        if (count == length)
          expectClose(some, expectedAttention(shape, length, length, inputs));
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

TEST_P(BatchInvariant, QueriesOfASequence) {
  AttentionCase s;
  s.isCross = s.isCausal = s.isOffset = true;
  Sequence(s, target(), 130, 1);
  s.keyHeads = 1, s.headDim = 40;
  if (hasTurn(target(), 0))
    Sequence(s, target(), 97, 0);
  s.isCausal = false, s.hasLengths = true;
  if (hasTurn(target(), 1))
    Sequence(s, target(), 97, 0);
}

//===- Rows --------------------------------------------------------------===//

/// Returns a norm or a softmax of the rows of x, with this type and these bounds.
std::string rowKernel(bool isNorm, const std::string &x, const std::string &width, const std::string &symbols,
                      const std::string &bounds) {
  const std::string w = "tensor<" + width + "xf32>";
  return "func.func private @rows(" + symbols + "%x: " + x + (isNorm ? ", %w: " + w : "") + ") -> " + x +
         " attributes {kiln.kernel, kiln.batch_invariant, kiln.bounds = array<i64" + bounds + ">} {\n  %0 = " +
         (isNorm ? "kiln.layer_norm %x, %w, %w epsilon = 1.0e-5 : (" + x + ", " + w + ", " + w + ") -> " + x
                 : "kiln.softmax %x axis = 1 : " + x) +
         "\n  return %0 : " + x + "\n}\n";
}

TEST_P(BatchInvariant, NormsAndSoftmaxes) {
  size_t turn = 0;
  for (bool isNorm : {true, false})
    for (int64_t width : {3, 17, 56, 100, 768, 1023}) {
      if (!hasTurn(target(), turn++))
        continue;
      SCOPED_TRACE((isNorm ? "norms of " : "softmaxes of ") + number(width));
      const std::string columns = number(width);
      // A single row has no loop over rows, and another strategy.
      Kernel one(rowKernel(isNorm, "tensor<1x" + columns + "xf32>", columns, "", ""), target());
      Kernel many(rowKernel(isNorm, "tensor<?x" + columns + "xf32, affine_map<()[s0] -> (s0, " + columns + ")>>",
                            columns, "%s0: index, ", ": 1, 300"),
                  target());
      std::vector<Tensor> inputs{randomTensor({300, width}), randomTensor({width})};
      inputs.resize(isNorm ? 2 : 1);
      const Tensor all = many.run({300}, inputs)[0];
      for (int64_t first : {0, 5, 250})
        for (int64_t count : {1, 2, 33, 50}) {
          std::vector<Tensor> some = inputs;
          some[0] = rowsOf(inputs[0], first, count);
          expectSame(many.run({count}, some, -1, 2)[0], rowsOf(all, first, count));
          if (count == 1)
            expectSame(one.run({}, some)[0], rowsOf(all, first, 1));
        }
    }
}

// A row may be as long as a context of 200 in one entry, and of 9 in another.
TEST_P(BatchInvariant, RowsOfOtherBounds) {
  auto kernel = [&](int64_t bound) {
    return Kernel(rowKernel(false, "tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>", "",
                            "%s0: index, %s1: index, ", ": 1, 40, 1, " + number(bound)),
                  target());
  };
  Kernel wide = kernel(200), narrow = kernel(9);
  for (int64_t width : {1, 4, 9}) {
    const Tensor x = randomTensor({7, width});
    expectSame(narrow.run({7, width}, {x})[0], wide.run({7, width}, {x})[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, BatchInvariant, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
