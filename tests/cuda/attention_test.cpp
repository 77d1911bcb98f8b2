// SPDX-License-Identifier: Apache-2.0
//
// Tiled attention, compared with a loop in f64: lengths around the tile sizes, heads of all widths, masks of all kinds,
// grouped-query attention, few queries with split KV, addresses that are no multiples of 16, NaN and infinities, the
// ends of the search space. No scores are stored.
#include "AttentionKernel.h"
#include "DeviceKernel.h"
#include "ExpectNan.h"
#include "KernelText.h"
#include "Prepare.h"
#include "compiler/schedule/SearchSpace.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/cuda/Compile.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

std::string str(int64_t n) { return std::to_string(n); }

const std::string &textOf(const DeviceKernel &kernel) { return kernel.plan().images.back().text; }

/// Expects the attention strategy, its launches, and memory only for the partial results of split KV.
void expectAttention(const DeviceKernel &kernel) {
  const cuda::LaunchPlan &plan = kernel.plan();
  EXPECT_EQ(plan.strategy, "attention");
  const int64_t kvSplits = plan.schedule.at("split_kv");
  EXPECT_EQ(plan.launches.size(), kvSplits > 1 ? 2U : 1U);
  EXPECT_EQ(plan.scratchBytes > 0, kvSplits > 1);
  EXPECT_EQ(textOf(kernel).find(".local"), std::string::npos);
}

void check(DeviceKernel &kernel, const AttentionCase &s, int64_t queries, int64_t keys, int64_t mostKeys = INT32_MAX,
           int64_t firstNan = INT32_MAX) {
  SCOPED_TRACE("queries " + str(queries) + " keys " + str(keys));
  const std::vector<Tensor> inputs = attentionInputs(s, queries, keys, mostKeys, firstNan);
  std::vector<int64_t> symbols{queries};
  if (s.isCross)
    symbols.push_back(keys);
  expectClose(kernel.run(symbols, inputs)[0], expectedAttention(s, queries, keys, inputs));
}

TEST(CudaAttention, Lengths) {
  AttentionCase s;
  s.isCausal = true;
  s.heads = s.keyHeads = 1;
  DeviceKernel kernel(attentionKernel(s));
  expectAttention(kernel);
  EXPECT_EQ(kernel.plan().scratchBytes > 0, kernel.plan().schedule.at("split_kv") > 1);
  for (int64_t t : {1, 2, 15, 16, 31, 33, 63, 65, 130})
    check(kernel, s, t, t);
}

TEST(CudaAttention, HeadSizes) {
  for (int headDim : {1, 5, 24, 33, 64, 80, 127, 128, 256}) {
    SCOPED_TRACE("depth " + str(headDim));
    AttentionCase s;
    s.headDim = headDim;
    s.heads = s.keyHeads = 1;
    DeviceKernel kernel(attentionKernel(s));
    expectAttention(kernel);
    for (int64_t t : {3, 66})
      check(kernel, s, t, t);
  }
}

TEST(CudaAttention, MasksAndLengths) {
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE("kind " + str(kind));
    AttentionCase s;
    s.headDim = 32;
    s.isCausal = kind & 1;
    s.hasMask = kind & 2;
    s.hasLengths = kind & 4;
    DeviceKernel kernel(attentionKernel(s));
    expectAttention(kernel);
    for (int64_t t : {1, 67})
      check(kernel, s, t, t);
  }
}

TEST(CudaAttention, OtherKeys) {
  for (bool isPlanar : {false, true}) {
    AttentionCase s;
    s.isCross = s.isOffset = s.isCausal = s.hasLengths = s.hasMask = true;
    s.heads = 4;
    s.headDim = 16;
    s.isPlanar = isPlanar;
    DeviceKernel kernel(attentionKernel(s));
    expectAttention(kernel);
    for (auto [queries, keys] : {std::pair(1, 1), {1, 130}, {7, 64}, {24, 65}, {70, 129}})
      check(kernel, s, queries, keys);
  }
}

// Grouped-query attention: the rows of a block belong to several query heads.
TEST(CudaAttention, GroupsOfHeads) {
  for (int keyHeads : {1, 2, 3}) {
    AttentionCase s;
    s.heads = 6;
    s.keyHeads = keyHeads;
    s.headDim = 20;
    s.isCross = s.isCausal = s.isOffset = true;
    s.hasLengths = keyHeads == 3;
    DeviceKernel kernel(attentionKernel(s));
    expectAttention(kernel);
    for (auto [queries, keys] : {std::pair(1, 19), {5, 40}, {23, 70}})
      check(kernel, s, queries, keys);
  }
}

// 16-bit keys and values are loaded by threads, without cp.async: eight elements at a time where dimensions and
// addresses allow.
TEST(CudaAttention, NarrowFloats) {
  for (bool isPlanar : {false, true})
    for (auto [mostQueries, headDim] : {std::pair(1, 20), {isPlanar ? 1 : 40, 20}, {isPlanar ? 1 : 3, 64}}) {
      AttentionCase s;
      s.element = isPlanar ? "bf16" : "f16";
      s.isPlanar = isPlanar;
      s.mostQueries = mostQueries;
      s.isCross = s.hasLengths = true;
      s.headDim = headDim;
      DeviceKernel kernel(attentionKernel(s));
      expectAttention(kernel);
      EXPECT_EQ(textOf(kernel).find("ld.global.nc.v4") != std::string::npos, headDim % 8 == 0);
      for (int64_t offset : {0, 2}) {
        kernel.setOffset(offset);
        for (int64_t keys : {1, 70})
          check(kernel, s, mostQueries, keys);
      }
    }
}

TEST(CudaAttention, UnalignedAddresses) {
  AttentionCase s;
  s.headDim = 24;
  DeviceKernel kernel(attentionKernel(s));
  EXPECT_NE(textOf(kernel).find("cp.async.cg"), std::string::npos) << "four at a time, if the address allows it";
  kernel.setOffset(4);
  for (int64_t t : {1, 50})
    check(kernel, s, t, t);
}

//===- Few queries -------------------------------------------------------===//

TEST(CudaAttention, OneQuery) {
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE("kind " + str(kind));
    AttentionCase s;
    s.mostQueries = 1;
    s.bound = 300;
    s.heads = 6;
    s.keyHeads = kind % 3 ? 2 : 6;
    s.headDim = std::vector{64, 33, 80, 5, 1, 127, 32, 128}[size_t(kind)];
    s.isCross = s.isOffset = true;
    s.isCausal = kind & 1;
    s.hasMask = kind & 2;
    s.hasLengths = kind & 4;
    s.isPlanar = kind == 2 || kind == 5;
    DeviceKernel kernel(attentionKernel(s));
    expectAttention(kernel);
    EXPECT_LE(kernel.plan().schedule.at("queries"), 4);
    for (int64_t keys : {1, 16, 65, 291})
      check(kernel, s, 1, keys);
  }
}

TEST(CudaAttention, SplitKeys) {
  for (int mostQueries : {1, 3, 40})
    for (int kvSplits : {2, 8}) {
      SCOPED_TRACE(str(mostQueries) + " queries, " + str(kvSplits) + " splits");
      AttentionCase s;
      s.mostQueries = mostQueries;
      s.bound = 700;
      s.headDim = 32;
      s.heads = 2, s.keyHeads = 1;
      s.isCross = s.isOffset = s.isCausal = s.hasLengths = true;
      const ScheduleConfig config{{"split_kv", kvSplits}, {"keys", 16}};
      DeviceKernel kernel(attentionKernel(s), &config);
      expectAttention(kernel);
      const int64_t rows = attentionBatch * s.heads * mostQueries;
      EXPECT_LE(kernel.plan().scratchBytes, rows * kvSplits * (s.headDim + 2) * 4 + 3 * 128);
      for (int64_t keys : {40, 129, 700})
        check(kernel, s, mostQueries, keys);
    }
}

TEST(CudaAttention, DefaultOfALongContextSplits) {
  AttentionCase s;
  s.mostQueries = 1;
  s.bound = 4096;
  s.isCross = true;
  DeviceKernel kernel(attentionKernel(s));
  EXPECT_GT(kernel.plan().schedule.at("split_kv"), 1);
  expectAttention(kernel);
  check(kernel, s, 1, 333);
}

TEST(CudaAttention, VariantsOfAKernel) {
  auto variants = [&](int mostQueries, bool isCross, int keyHeads) {
    AttentionCase s;
    s.mostQueries = mostQueries;
    s.isCross = isCross;
    s.heads = 8, s.keyHeads = keyHeads;
    mlir::MLIRContext context;
    auto module = prepare(context, attentionKernel(s));
    std::vector<int64_t> bounds;
    for (ShapeVariant variant :
         cuda::createKernelCompiler("", "")->shapeVariants(*module->getOps<mlir::func::FuncOp>().begin())) {
      EXPECT_EQ(variant.symbol, 0U);
      bounds.push_back(variant.bound);
    }
    return bounds;
  };
  using Bounds = std::vector<int64_t>;
  EXPECT_EQ(variants(300, true, 8), (Bounds{1, 16}));
  EXPECT_EQ(variants(300, true, 2), (Bounds{1, 4}));
  EXPECT_EQ(variants(16, true, 8), Bounds{1});
  EXPECT_EQ(variants(1, true, 8), Bounds());
  EXPECT_EQ(variants(300, false, 8), Bounds{128}) << "few queries have few keys, too";
  EXPECT_EQ(variants(128, false, 8), Bounds());
}

//===- Masks and lengths -------------------------------------------------===//

// Keys beyond the diagonal's tile, and beyond the tile of a sequence's length, are not read: they may be NaN.
TEST(CudaAttention, SkipsWhatDoesNotCount) {
  const ScheduleConfig config{{"keys", 16}};
  for (int mostQueries : {1, 40}) {
    AttentionCase s;
    s.mostQueries = mostQueries;
    s.bound = 300;
    s.headDim = 16;
    s.isCross = s.isCausal = true;
    {
      DeviceKernel kernel(attentionKernel(s), &config);
      check(kernel, s, mostQueries, 300, INT32_MAX, 48);
    }
    s.isCausal = false;
    s.hasLengths = true;
    DeviceKernel kernel(attentionKernel(s), &config);
    check(kernel, s, mostQueries, 300, 96, 96);
  }
}

// Keys in tiles before the windows of all rows are not read, also by several blocks that share the keys of a row.
TEST(CudaAttention, SkipsTilesBeforeTheWindow) {
  for (int mostQueries : {1, 40}) {
    AttentionCase s;
    s.mostQueries = mostQueries;
    s.bound = 600;
    s.headDim = 16;
    s.isCross = s.isCausal = s.isOffset = true;
    s.window = 100;
    const ScheduleConfig config{{"keys", 16}, {"split_kv", mostQueries == 1 ? 4 : 1}};
    DeviceKernel kernel(attentionKernel(s), &config);
    expectAttention(kernel);
    for (int64_t keys : {mostQueries, 99, 512})
      check(kernel, s, mostQueries, keys);
    std::vector<Tensor> inputs = attentionInputs(s, mostQueries, 512);
    for (size_t i : {1, 2})
      for (int64_t batch = 0; batch < attentionBatch; ++batch)
        for (int64_t key = 0; key < 352; ++key) // the first window begins with key 512 - 40 - 99
          for (int64_t d = 0; d < s.keyHeads * s.headDim; ++d)
            inputs[i].at({batch, key, d}) = NAN;
    expectClose(kernel.run({mostQueries, 512}, inputs)[0], expectedAttention(s, mostQueries, 512, inputs));
  }
}

// Where no key counts, the result is 0.
TEST(CudaAttention, NothingCounts) {
  for (int mostQueries : {1, 70}) {
    AttentionCase s;
    s.hasLengths = s.isCross = true;
    s.mostQueries = mostQueries;
    s.headDim = 16;
    const ScheduleConfig config{{"keys", 16}, {"split_kv", mostQueries == 1 ? 4 : 1}};
    DeviceKernel kernel(attentionKernel(s), &config);
    std::vector<Tensor> inputs = attentionInputs(s, mostQueries, 130);
    inputs.back() = Tensor::zeros({attentionBatch});
    inputs.back().values[1] = 37;
    expectClose(kernel.run({mostQueries, 130}, inputs)[0], expectedAttention(s, mostQueries, 130, inputs));
  }
}

/// Returns the output of the first query of the first batch, with `change` applied to the inputs.
template <class Change> std::vector<double> firstRow(bool isSplit, const Change &change) {
  AttentionCase s;
  s.hasMask = s.isCross = true;
  s.mostQueries = isSplit ? 1 : 40;
  s.headDim = 8;
  const ScheduleConfig config{{"keys", 16}, {"split_kv", isSplit ? 2 : 1}};
  DeviceKernel kernel(attentionKernel(s), &config);
  std::vector<Tensor> inputs = attentionInputs(s, isSplit ? 1 : 33, 70);
  change(inputs);
  std::vector<double> all = kernel.run({isSplit ? 1 : 33, 70}, inputs)[0].values;
  all.resize(8);
  return all;
}

TEST(CudaAttention, NumbersThatAreNone) {
  for (bool isSplit : {false, true}) {
    SCOPED_TRACE(isSplit);
    expectNan(firstRow(isSplit, [](auto &inputs) { inputs[0].at({0, 0, 3}) = NAN; }));
    expectNan(firstRow(isSplit, [](auto &inputs) { inputs[1].at({0, 51, 3}) = NAN; }));
    expectNan(firstRow(isSplit, [](auto &inputs) { inputs[3].at({0, 60}) = NAN; }));
    expectNan(firstRow(isSplit, [](auto &inputs) { inputs[3].at({0, 60}) = INFINITY; }));
    // A row all of whose keys are masked out is 0.
    expectZeros(firstRow(isSplit, [](auto &inputs) {
      for (int64_t j = 0; j < 70; ++j)
        inputs[3].at({0, j}) = -INFINITY;
    }));
    // NaN or infinity in a value affects only its channel.
    std::vector<double> row = firstRow(isSplit, [](auto &inputs) { inputs[2].at({0, 33, 5}) = NAN; });
    for (size_t d = 0; d < row.size(); ++d)
      EXPECT_EQ(std::isnan(row[d]), d == 5);
    // The only key that counts is not in the first tile.
    double value = 0;
    row = firstRow(isSplit, [&](auto &inputs) {
      for (int64_t j = 0; j < 70; ++j)
        inputs[3].at({0, j}) = j == 69 ? 0 : -INFINITY;
      value = inputs[2].at({0, 69, 2});
    });
    EXPECT_FLOAT_EQ(float(row[2]), float(value));
  }
}

// The maximum of each tile is larger, or smaller, than that of the last tile.
TEST(CudaAttention, ScoresThatGrowAndShrink) {
  for (double step : {3.0, -3.0}) {
    AttentionCase s;
    s.hasMask = true;
    s.headDim = 8;
    const ScheduleConfig config{{"keys", 16}};
    DeviceKernel kernel(attentionKernel(s), &config);
    std::vector<Tensor> inputs = attentionInputs(s, 100, 100);
    for (int64_t i = 0; i < 100; ++i)
      for (int64_t j = 0; j < 100; ++j)
        inputs[3].at({i, j}) = step * double(j);
    // The spacing of f32 at scores of 300 is 3e-5.
    expectClose(kernel.run({100}, inputs)[0], expectedAttention(s, 100, 100, inputs), 1e-4);
  }
}

//===- Kernels of kiln ops -----------------------------------------------===//

/// Returns kiln.attention with up to 90 queries and keys, with the heads as a separate axis in memory. `types` are the
/// operands' types.
std::string opKernel(const std::string &arguments, const std::string &types, const std::string &options,
                     const std::string &result, const std::string &stored) {
  return "func.func private @f(%s0: index, %s1: index, " + arguments + ") -> (" + stored +
         ") attributes {kiln.kernel, kiln.bounds = array<i64: 1, 90, 1, 90>} {\n  %0 = kiln.attention %q, %k, %v " +
         options + " : (" + types + ") -> " + result + "\n  %1 = kiln.reshape %0 : " + result + " -> " + stored +
         "\n  return %1 : " + stored + "\n}\n";
}

struct OpCase {
  std::string name, options;
  int heads, queryWidth, keyWidth, valueWidth;
  std::string mask, lengths; // types
};

TEST(CudaAttention, KilnOps) {
  KernelText t({{1, 90}, {1, 90}});
  const std::vector<OpCase> cases{
      {"values of another width", "heads = 2 scale = 0.3", 2, 24, 24, 14, "", ""},
      {"a mask by head", "mask %m heads = 2 scale = 0.3", 2, 24, 24, 24, t.type({"2", "2", "s0", "s1"}), ""},
      {"a mask of keys", "mask %m heads = 3 scale = 0.3", 3, 24, 24, 24, t.type({"1", "3", "1", "s1"}), ""},
      {"groups and lengths", "lengths %l heads = 6 key_value_heads = 2 scale = 0.3", 6, 48, 16, 10, "",
       t.type({"2"}, "i32")},
      {"one head of keys", "heads = 4 key_value_heads = 1 scale = 0.3", 4, 32, 8, 8, "", ""},
  };
  for (const OpCase &c : cases) {
    SCOPED_TRACE(c.name);
    auto rows = [&](const std::string &count, int width) { return t.type({"2", count, str(width)}); };
    const std::string q = rows("s0", c.queryWidth), k = rows("s1", c.keyWidth), v = rows("s1", c.valueWidth);
    const std::string result = rows("s0", c.valueWidth * c.queryWidth / c.keyWidth);
    std::string arguments = "%q: " + q + ", %k: " + k + ", %v: " + v, types = q + ", " + k + ", " + v;
    for (auto [name, type] : {std::pair(", %m: ", c.mask), std::pair(", %l: ", c.lengths)})
      if (!type.empty())
        arguments += name + type, types += ", " + type;
    const std::string stored =
        t.type({"2", "s0", str(c.heads), str(c.valueWidth * c.queryWidth / c.keyWidth / c.heads)});
    const std::string text = opKernel(arguments, types, c.options, result, stored);
    DeviceKernel kernel(text);
    expectAttention(kernel);
    for (auto [queries, keys] : {std::pair(1, 1), {1, 90}, {50, 33}, {90, 1}})
      kernel.check({queries, keys}, randomInputs(text, {queries, keys}, 1, keys + 1));
  }
}

//===- Unsupported kernels -----------------------------------------------===//

TEST(CudaAttention, LeavesOthersAlone) {
  AttentionCase s;
  s.headDim = 16;
  auto strategyOf = [](const std::string &text) { return DeviceKernel(text).plan().strategy; };
  EXPECT_EQ(strategyOf(attentionKernel(s)), "attention");
  s.headDim = 300;
  EXPECT_EQ(strategyOf(attentionKernel(s)), "contraction") << "too wide";
}

//===- Search space ------------------------------------------------------===//

TEST(CudaAttention, EndsOfTheSearchSpace) {
  AttentionCase s;
  s.bound = 90;
  s.headDim = 40;
  s.isCausal = s.hasLengths = true;
  const std::string text = attentionKernel(s);
  mlir::MLIRContext context;
  auto module = prepare(context, text);
  const SearchSpace space =
      cuda::createKernelCompiler("", "")->describe(*module->getOps<mlir::func::FuncOp>().begin()).space;
  std::vector<ScheduleConfig> configs{{{"queries", 4}, {"queries_per_thread", 1}, {"keys", 16}, {"key_warps", 8}},
                                      {{"queries", 32}, {"queries_per_thread", 8}, {"keys", 64}, {"key_warps", 1}},
                                      {{"queries", 8}, {"queries_per_thread", 2}, {"key_warps", 2}, {"split_kv", 32}},
                                      {{"queries", 128}, {"queries_per_thread", 2}, {"keys", 16}}};
  for (const TuningParameter &parameter : space)
    for (int64_t value : parameter.values) {
      ScheduleConfig config = defaultConfigOf(space);
      config[parameter.key] = value;
      if (obeysRules(space, config))
        configs.push_back(config);
    }
  for (const ScheduleConfig &config : configs) {
    SCOPED_TRACE(toString(config));
    DeviceKernel kernel(text, &config);
    expectAttention(kernel);
    for (int64_t t : {1, 67})
      check(kernel, s, t, t);
  }
}

TEST(CudaAttention, RefusesWhatDoesNotFit) {
  const std::string text = attentionKernel(AttentionCase());
  auto expectRule = [&](const ScheduleConfig &config, const std::string &rule) {
    EXPECT_EQ(refusal(text, &config).find("attention schedule: invalid combination; expected " + rule), 0U)
        << refusal(text, &config);
  };
  expectRule({{"queries", 4}, {"queries_per_thread", 8}}, "32 to 512 threads");
  expectRule({{"queries", 64}, {"queries_per_thread", 4}, {"key_warps", 2}}, "key_warps = 1");
  expectRule({{"queries", 128}, {"queries_per_thread", 8}, {"keys", 64}}, "99 KiB of shared memory");
}

} // namespace
} // namespace kiln::testing
