// SPDX-License-Identifier: Apache-2.0
//
// Contractions against a loop in f64: rows below, at and above the register tile, columns that are no multiple of a
// vector, tiled and dense weights, epilogues, several results, batches.
#include "LinearKernel.h"
#include "compiler/schedule/SearchSpace.h"
#include <array>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <sstream>

namespace kiln::testing {
namespace {

class Contraction : public ::testing::TestWithParam<std::string> {};

TEST_P(Contraction, RunTimeRows) {
  int64_t tile = findTarget(GetParam())->weightTile(96, 64);
  Kernel kernel(linearKernel(96, 64, "#kiln.tiled<0, " + number(tile) + ">"), GetParam());
  EXPECT_EQ(kernel.object().strategy, "contraction");
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64, 100, 128, 197, 256})
    checkLinear(kernel, m, 96, 64);
}

TEST_P(Contraction, ColumnsAndK) {
  int64_t tile = findTarget(GetParam())->weightTile(96, 64);
  for (int64_t n : {1, 47, 48, 49, 768})
    for (int64_t k : {1, 7, 64})
      for (std::string layout : {"", "tiled"}) {
        SCOPED_TRACE(layout);
        Kernel kernel(linearKernel(n, k, layout.empty() ? "" : "#kiln.tiled<0, " + number(tile) + ">"), GetParam());
        for (int64_t m : {1, 9})
          checkLinear(kernel, m, n, k);
      }
}

TEST_P(Contraction, LongK) {
  int64_t tile = findTarget(GetParam())->weightTile(96, 64);
  for (int64_t k : {768, 3072}) {
    Kernel kernel(linearKernel(49, k, "#kiln.tiled<0, " + number(tile) + ">"), GetParam());
    for (int64_t m : {1, 7, 8, 13})
      checkLinear(kernel, m, 49, k);
  }
}

TEST_P(Contraction, BlocksOfRows) {
  int64_t tile = findTarget(GetParam())->weightTile(96, 64);
  for (int64_t k : {40, 3072}) {
    Kernel kernel(linearKernel(50, k, "#kiln.tiled<0, " + number(tile) + ">", 700), GetParam());
    EXPECT_GT(kernel.object().schedule.at("rows_block"), 0);
    for (int64_t m : {1, 129, 251, 252, 253, 255, 256, 257, 513, 700})
      checkLinear(kernel, m, 50, k);
  }
}

TEST_P(Contraction, BatchesOfActivations) {
  // y[a, b] = x[a, b] z[b]^T over a batch axis that z lacks, with dynamic rows, columns and K.
  KernelText text({{1, 70}, {1, 70}});
  Value x = text.argument(text.type({"2", "3", "s0", "s1"})), z = text.argument(text.type({"3", "s0", "s1"}));
  Value y = text.reduce("ppppr", {x, z}, text.type({"2", "3", "s0", "s0"}), {"a, b, c, e", "b, d, e", "a, b, c, d"},
                        "0.0 : f32", multiplyAdd);
  Kernel kernel(text.finish({y}), GetParam());
  EXPECT_EQ(kernel.object().strategy, "contraction");
  for (auto [m, k] : {std::pair<int64_t, int64_t>(1, 1), {5, 70}, {17, 3}, {70, 33}}) {
    Tensor a = randomTensor({2, 3, m, k}), b = randomTensor({3, m, k}), expected = Tensor::zeros({2, 3, m, m});
    for (int64_t o = 0; o < 6; ++o)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < m; ++j)
          for (int64_t r = 0; r < k; ++r)
            expected.at({o / 3, o % 3, i, j}) += a.at({o / 3, o % 3, i, r}) * b.at({o % 3, j, r});
    expectClose(kernel.run({m, k}, {a, b})[0], expected, 1e-5, false, 1);
  }
}

TEST_P(Contraction, GateAndTransposedResult) {
  // Two GEMMs of one input that are combined in the epilogue; and one whose result is stored transposed.
  int64_t tile = findTarget(GetParam())->weightTile(96, 64), n = 53, k = 29;
  std::string layout = "#kiln.tiled<1, " + number(tile) + ">";
  for (bool isTransposed : {false, true}) {
    KernelText text({{1, 50}});
    std::string wide = text.type({"s0", number(n)});
    Value x = text.argument(text.type({"s0", number(k)}));
    Value u = text.argument(KernelText::tiled(k, n, layout)), v = text.argument(KernelText::tiled(k, n, layout));
    Value left = text.reduce("ppr", {x, u}, wide, {"a, c", "c, b", "a, b"}, "0.0 : f32", multiplyAdd);
    Value right = text.reduce("ppr", {x, v}, wide, {"a, c", "c, b", "a, b"}, "0.0 : f32", multiplyAdd);
    Value y = text.one("pp", {left, right}, isTransposed ? text.type({number(n), "s0"}) : wide,
                       {isTransposed ? "b, a" : "a, b", isTransposed ? "b, a" : "a, b", "a, b"},
                       "%m = arith.mulf %x0, %x1 : f32\nlinalg.yield %m : f32");
    Kernel kernel(text.finish({y}), GetParam());
    for (int64_t m : {1, 8, 13, 50}) {
      Tensor a = randomTensor({m, k}), b = randomTensor({k, n}), c = randomTensor({k, n});
      Tensor expected = Tensor::zeros(isTransposed ? std::vector<int64_t>{n, m} : std::vector<int64_t>{m, n});
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double p = 0, q = 0;
          for (int64_t r = 0; r < k; ++r)
            p += a.at({i, r}) * b.at({r, j}), q += a.at({i, r}) * c.at({r, j});
          (isTransposed ? expected.at({j, i}) : expected.at({i, j})) = p * q;
        }
      expectClose(kernel.run({m}, {a, b, c})[0], expected, 1e-5, false, 1);
    }
  }
}

TEST_P(Contraction, ConfigsOfTheSearchSpace) {
  int64_t tile = findTarget(GetParam())->weightTile(96, 64);
  for (bool isTiled : {true, false}) {
    std::string text = linearKernel(113, 192, isTiled ? "#kiln.tiled<0, " + number(tile) + ">" : "", 300);
    SearchSpace space = describe(text, GetParam()).space;
    for (const ScheduleConfig &config : configsToTry(space, isTiled ? 12 : 3, GetParam())) {
      SCOPED_TRACE(toString(config));
      Kernel kernel(text, GetParam(), &config);
      for (int64_t m : {1, 19, 300})
        checkLinear(kernel, m, 113, 192);
    }
  }
}

TEST_P(Contraction, AsksForWeightsAheadOfTime) {
  int64_t tile = findTarget(GetParam())->weightTile(96, 64);
  std::string text = linearKernel(96, 192, "#kiln.tiled<0, " + number(tile) + ">", 300);
  // Opcodes of PREFETCHNTA, PREFETCHT0 and PREFETCHT1, up to the bits of the address.
  auto requests = [&](const ScheduleConfig &config) {
    Kernel kernel(text, GetParam(), &config);
    const std::string &object = kernel.object().object;
    std::array<int, 8> counts{};
    for (size_t at = 0; (at = object.find("\x0f\x18", at)) != std::string::npos; ++at)
      ++counts[object[at + 2] >> 3 & 7];
    EXPECT_EQ(counts[0], 0);
    return std::pair(counts[1], counts[2]);
  };
  EXPECT_EQ(requests({{"ahead", 0}, {"prefetch", 0}}), std::pair(0, 0));
  const auto [lines, none] = requests({{"ahead", 8}, {"prefetch", 0}});
  EXPECT_GT(lines, 0);
  EXPECT_EQ(none, 0);
  const auto [same, panels] = requests({{"ahead", 8}, {"prefetch", 1}});
  EXPECT_EQ(same, lines);
  EXPECT_GT(panels, 0);
  EXPECT_NE(assemblyOf(text, GetParam(), {{"ahead", 8}}).find("prefetcht0"), std::string::npos);
}

/// Returns the innermost loops of the assembly that have at least this number of vector multiply-adds, and no division.
std::vector<std::string> multiplyingLoops(const std::string &assembly, int least) {
  std::vector<std::string> loops;
  std::istringstream lines(assembly);
  std::string line, label, body;
  int products = 0;
  while (std::getline(lines, line)) {
    const bool isLabel = line.rfind(".L", 0) == 0, isJump = line.rfind("\tj", 0) == 0;
    if (isJump && !label.empty() && line.find("\t" + label) != std::string::npos && products >= least &&
        body.find("divps") == std::string::npos)
      loops.push_back(body);
    if (isLabel || isJump) {
      label = isLabel ? line.substr(0, line.find(':')) : "";
      body.clear();
      products = 0;
      continue;
    }
    body += line + "\n";
    products += line.find("vfmadd") != std::string::npos || line.find("mulps") != std::string::npos;
  }
  return loops;
}

/// Returns the inner loops of rows x w^T with K = 768 in two parts and a long epilogue, with the default configuration.
/// Rows are "s0", up to 300, or a number.
std::vector<std::string> loopsOfLongEpilogue(const std::string &rows, const std::string &target) {
  int64_t tile = findTarget(target)->weightTile(768, 768);
  KernelText text(rows == "s0" ? std::vector<std::pair<int, int>>{{1, 300}} : std::vector<std::pair<int, int>>{});
  std::string wide = text.type({rows, "768"});
  Value x = text.argument(wide);
  Value w = text.argument(KernelText::tiled(768, 768, "#kiln.tiled<0, " + number(tile) + ">"));
  Value product = text.reduce("ppr", {x, w}, wide, {"a, c", "b, c", "a, b"}, "0.0 : f32", multiplyAdd);
  Value y = text.one("pp", {product}, wide, {"a, b", "a, b"},
                     "%e = math.erf %x0 : f32\n%m = arith.mulf %x0, %e : f32\nlinalg.yield %m : f32");
  std::string kernel = text.finish({y});
  ScheduleConfig defaultConfig = defaultConfigOf(describe(kernel, target).space);
  EXPECT_EQ(defaultConfig.at("partial_sums"), 2);
  return multiplyingLoops(assemblyOf(kernel, target, defaultConfig), 8);
}

TEST_P(Contraction, SumsOfALongKStayInRegisters) {
  // LLVM tends to spill the accumulators of the second part to the stack.
  for (const char *rows : {"s0", "197", "128"}) {
    SCOPED_TRACE(rows);
    std::vector<std::string> loops = loopsOfLongEpilogue(rows, GetParam());
    EXPECT_FALSE(loops.empty());
    for (const std::string &loop : loops)
      EXPECT_EQ(std::regex_search(loop, std::regex("mm[0-9]+, [-0-9]*\\(%rsp\\)")), false) << loop;
  }
}

TEST_P(Contraction, RowsOfFullTilesAreReadAtFixedDistances) {
  // Only the last tile has a pointer for each row.
  int atFixedDistances = 0;
  for (const std::string &loop : loopsOfLongEpilogue("s0", GetParam())) {
    std::set<std::string> pointers;
    const std::regex scalar("(?:broadcastss|movss)\t[-0-9]*\\((%[a-z0-9]+)");
    for (std::sregex_iterator i(loop.begin(), loop.end(), scalar), end; i != end; ++i)
      pointers.insert((*i)[1]);
    EXPECT_FALSE(pointers.empty()) << loop;
    atFixedDistances += pointers.size() <= 2;
  }
  EXPECT_GT(atFixedDistances, 0);
}

TEST_P(Contraction, RequestsLieAmongTheProducts) {
  // Prefetches of full row tiles are interleaved with the multiply-adds; the last tile, whose rows have separate
  // pointers, prefetches first.
  int64_t tile = findTarget(GetParam())->weightTile(96, 64);
  std::string text = linearKernel(96, 192, "#kiln.tiled<0, " + number(tile) + ">", 300);
  std::vector<std::string> loops = multiplyingLoops(assemblyOf(text, GetParam(), {{"ahead", 8}, {"rows_block", 0}}), 8);
  ASSERT_FALSE(loops.empty());
  int withRequests = 0, spread = 0;
  for (const std::string &loop : loops) {
    if (loop.find("prefetch") == std::string::npos)
      continue;
    ++withRequests;
    spread += !std::regex_search(loop, std::regex("prefetch[^\n]*\n\tprefetch"));
  }
  EXPECT_GT(withRequests, 1);
  EXPECT_GT(spread, 0);
}

TEST_P(Contraction, ConfigsThatBreakARule) {
  int64_t tile = findTarget(GetParam())->weightTile(96, 64);
  std::string text = linearKernel(96, 192, "#kiln.tiled<0, " + number(tile) + ">", 300);
  auto expectError = [&](const ScheduleConfig &config, const std::string &words) {
    std::string error = compileError(text, &config, GetParam());
    EXPECT_NE(error.find(words), std::string::npos) << error;
  };
  expectError({{"m", 12}}, "contraction schedule: invalid combination; expected m * n / ");
  expectError({{"order", 1}}, "; expected rows outside of columns (order=1) with whole depths, tasks of rows");
  expectError({{"split", 2}, {"rows_block", 0}}, "; expected tasks of rows (split=1, 2) with blocks of rows");
  expectError({{"split", 1}, {"rows_block", 64}, {"task", 2}}, "; expected several column tiles a task (task) with");
  expectError({{"k_block", 7}}, "\"k_block\": unknown value; expected one of");
}

INSTANTIATE_TEST_SUITE_P(Targets, Contraction, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
