// SPDX-License-Identifier: Apache-2.0
//
// Tensor-core GEMMs in f16, bf16 and tf32, compared with a loop in f64 over the rounded inputs. Products of two such
// numbers are exact in f32, so that the tolerance covers only the error of f32 sums: an ulp of the sum of all
// magnitudes for each K step. Sums in the inputs' type would be off by thousands of times that.
#include "MmaKernel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// Expects tensor cores, and no local memory.
void expectMma(const DeviceKernel &kernel, const std::string &type) {
  EXPECT_EQ(kernel.plan().strategy, "contraction");
  EXPECT_EQ(textOf(kernel).find(".local"), std::string::npos);
  EXPECT_EQ(textOf(kernel).find("fma.rn.f32"), std::string::npos);
  EXPECT_GT(countOf(textOf(kernel), (type == "tf32" ? "mma.sync.aligned.m16n8k8.row.col.f32." : //
                                         "mma.sync.aligned.m16n8k16.row.col.f32.") +
                                        type + "." + type + ".f32"),
            0U);
}

const std::string types[] = {"f16", "bf16", "tf32"};
const Form forms[] = {{false, false}, {false, true}, {true, false}, {true, true}};

//===- Sizes -------------------------------------------------------------===//

TEST(CudaMma, OddSizesAndAddresses) {
  // Copies of 16, 8 and 4 bytes, and loads; also at an address that allows no copies.
  for (const std::string &type : types)
    for (Form form : forms)
      for (auto [m, n, k] : {std::tuple(72, 40, 104), std::tuple(36, 68, 20), std::tuple(34, 30, 26),
                             std::tuple(33, 35, 37), std::tuple(17, 1, 1)}) {
        DeviceKernel kernel(productKernel(type, form, number(m), number(n), number(k)));
        expectMma(kernel, type);
        for (int64_t offset : {0, type == "tf32" ? 4 : 2}) {
          kernel.setOffset(offset);
          checkProduct(kernel, type, form, {1, 0, 1}, m, n, k);
        }
      }
}

TEST(CudaMma, ExtentsAtRunTime) {
  for (const std::string &type : types) {
    DeviceKernel rows(productKernel(type, {false, true}, "s0", "72", "48"));
    expectMma(rows, type);
    for (int64_t m : {1, 16, 63, 129, 200})
      checkProduct(rows, type, {false, true}, {m, 0, 1}, m, 72, 48);
    DeviceKernel all(productKernel(type, {false, false}, "s0", "s2", "s1"));
    for (auto [m, k, n] : {std::tuple(1, 1, 1), std::tuple(129, 33, 67), std::tuple(40, 200, 9)})
      checkProduct(all, type, {false, false}, {m, k, n}, m, n, k);
    const Tensor nothing = all.run({5, 0, 3}, {Tensor::zeros({5, 0}), Tensor::zeros({0, 3})})[0];
    for (double sum : nothing.values)
      EXPECT_EQ(sum, 0);
  }
}

TEST(CudaMma, EndsOfTheSearchSpace) {
  for (auto [type, form, m, n, k] :
       {std::tuple("f16", Form{false, true}, 132, 72, 72), std::tuple("bf16", Form{true, false}, 40, 132, 37),
        std::tuple("tf32", Form{false, false}, 72, 68, 40)}) {
    const std::string text = productKernel(type, form, number(m), number(n), number(k));
    for (const ScheduleConfig &config : endsOf(spaceOf(text))) {
      SCOPED_TRACE(toString(config));
      DeviceKernel kernel(text, &config);
      EXPECT_EQ(kernel.plan().schedule, config);
      expectMma(kernel, type);
      checkProduct(kernel, type, form, {1, 0, 1}, m, n, k);
    }
  }
}

TEST(CudaMma, RefusesWhatDoesNotFit) {
  const std::string text = productKernel("f16", {false, true}, "200", "200", "200");
  ScheduleConfig outside{{"mma_bm", 32}, {"mma_wm", 64}}, shared{{"mma_bytes", 128}, {"mma_bm", 128}, {"mma_bn", 128}};
  EXPECT_NE(refusal(text, &outside).find("contraction schedule: invalid combination; expected 64 to 512 threads"),
            std::string::npos);
  shared.insert({{"mma_wm", 64}, {"mma_wn", 64}});
  EXPECT_NE(refusal(text, &shared).find("contraction schedule: invalid combination; expected 99 KiB of shared memory"),
            std::string::npos)
      << refusal(text, &shared);
}

//===- Producers and epilogues -------------------------------------------===//

TEST(CudaMma, Batches) {
  // Attention scores: heads are the middle dimension of both inputs.
  for (const std::string &type : types) {
    KernelText text({{1, 40}});
    const std::string input = text.type({"s0", "3", "24"}, inMemory(type));
    Value q = text.argument(input), k = text.argument(input);
    Value scores = text.reduce("pppr", {q, k}, text.type({"3", "s0", "s0"}), {"b, a, d", "c, a, d", "a, b, c"},
                               "0.0 : f32", bodyOf(type));
    DeviceKernel kernel(text.finish({scores}, attributesOf(type)));
    expectMma(kernel, type);
    for (int64_t m : {1, 33}) {
      const Tensor x = randomTensor({m, 3, 24}), w = randomTensor({m, 3, 24});
      const Tensor got = kernel.run({m}, {x, w})[0];
      for (int64_t head = 0; head < 3; ++head) {
        Tensor a = Tensor::zeros({m, 24}), b = a, part = Tensor::zeros({m, m});
        for (int64_t i = 0; i < m * 24; ++i) {
          a.values[i] = x.at({i / 24, head, i % 24});
          b.values[i] = w.at({i / 24, head, i % 24});
        }
        std::copy_n(got.values.begin() + head * m * m, m * m, part.values.begin());
        expectNear(part, productOf(a, b, {false, true}, type));
      }
    }
  }
}

/// Returns (x w^T + bias) * gate + residual, with inputs and a result of these types.
std::string gatedKernel(const std::string &type, const std::string &stored) {
  KernelText text({{1, 70}});
  std::string wide = text.type({"s0", "44"}), result = text.type({"s0", "44"}, stored);
  Value x = text.argument(text.type({"s0", "40"}, inMemory(type))),
        w = text.argument(text.type({"44", "40"}, inMemory(type)));
  Value bias = text.argument(text.type({"44"})), gate = text.argument(wide), residual = text.argument(result);
  Value product = text.reduce("ppr", {x, w}, wide, {"a, c", "b, c", "a, b"}, "0.0 : f32", bodyOf(type));
  const bool isNarrow = stored != "f32";
  Value y = text.one("pp", {product, bias, gate, residual}, result, {"a, b", "b", "a, b", "a, b", "a, b"},
                     "%s = arith.addf %x0, %x1 : f32\n%t = arith.mulf %s, %x2 : f32\n" +
                         (isNarrow ? "%r = arith.extf %x3 : " + stored + " to f32\n%u = arith.addf %t, %r : f32\n" +
                                         "%v = arith.truncf %u : f32 to " + stored + "\nlinalg.yield %v : " + stored
                                   : std::string("%u = arith.addf %t, %x3 : f32\nlinalg.yield %u : f32")));
  const std::string attributes = attributesOf(type);
  return text.finish({y}, "kiln.inplace = array<i64: 4>" + (attributes.empty() ? "" : ", " + attributes));
}

TEST(CudaMma, EpiloguesAndStoredTypes) {
  for (const std::string &type : types)
    for (std::string stored : {"f32", "f16", "bf16"}) {
      SCOPED_TRACE(type + " stored as " + stored);
      DeviceKernel kernel(gatedKernel(type, stored));
      EXPECT_EQ(kernel.plan().launches.size(), 1U) << "the epilogue is part of it";
      EXPECT_GT(countOf(textOf(kernel), "mma.sync"), 0U);
      const int64_t m = 67, n = 44, k = 40;
      const Tensor x = randomTensor({m, k}), w = randomTensor({n, k}), bias = randomTensor({n}),
                   gate = randomTensor({m, n}), residual = randomTensor({m, n});
      Expected expected = productOf(x, w, {false, true}, type);
      const double ulp = stored == "f32" ? 0x1p-23 : stored == "f16" ? 0x1p-11 : 0x1p-8;
      for (int64_t i = 0; i < m * n; ++i) {
        const double added = stored == "f32" ? residual.values[i] : rounded(residual.values[i], stored);
        double &sum = expected.sums.values[i], &allowed = expected.allowed.values[i];
        sum += bias.values[i % n];
        allowed = (allowed + 0x1p-22 * std::abs(sum)) * std::abs(gate.values[i]) + 0x1p-22 * std::abs(added);
        sum = sum * gate.values[i] + added;
        allowed += ulp * std::abs(sum) + 0x1p-25; // half of the smallest f16
      }
      const std::vector<Tensor> inputs{x, w, bias, gate, residual};
      expectNear(kernel.run({m}, inputs)[0], expected);
      expectNear(kernel.run({m}, inputs, std::pair(0U, 4U))[0], expected);
    }
}

TEST(CudaMma, InputsThatAreComputed) {
  // x + u in f32, rounded to the weight's type.
  for (std::string type : {"f16", "bf16"}) {
    KernelText text({{1, 70}});
    const std::string wide = text.type({"s0", "36"}), narrow = text.type({"s0", "36"}, type);
    Value x = text.argument(wide), u = text.argument(wide), w = text.argument(text.type({"44", "36"}, type));
    Value sum = text.one("pp", {x, u}, narrow, {"a, b", "a, b", "a, b"},
                         "%s = arith.addf %x0, %x1 : f32\n%t = arith.truncf %s : f32 to " + type +
                             "\nlinalg.yield %t : " + type);
    Value y =
        text.reduce("ppr", {sum, w}, text.type({"s0", "44"}), {"a, c", "b, c", "a, b"}, "0.0 : f32", bodyOf(type));
    DeviceKernel kernel(text.finish({y}));
    expectMma(kernel, type);
    const Tensor a = randomTensor({67, 36}), b = randomTensor({67, 36}), c = randomTensor({44, 36});
    Tensor added = a;
    for (size_t i = 0; i < added.values.size(); ++i)
      added.values[i] = double(float(a.values[i]) + float(b.values[i]));
    expectNear(kernel.run({67}, {a, b, c})[0], productOf(added, c, {false, true}, type));
  }
}

//===- Numbers -----------------------------------------------------------===//

TEST(CudaMma, NanAndInfinities) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const std::string &type : types) {
    const Form form{false, true};
    DeviceKernel kernel(productKernel(type, form, "40", "24", "48"));
    Tensor x = randomTensor({40, 48}), w = randomTensor({24, 48});
    x.at({3, 5}) = nan, x.at({7, 40}) = inf, x.at({9, 1}) = -inf, x.at({9, 2}) = inf, w.at({11, 47}) = -inf;
    const Expected expected = productOf(x, w, form, type);
    const Tensor got = kernel.run({1, 0, 1}, {x, w})[0];
    for (size_t i = 0; i < got.values.size(); ++i) {
      const double value = expected.sums.values[i];
      if (std::isfinite(value))
        ASSERT_LE(std::abs(got.values[i] - value), expected.allowed.values[i]);
      else
        ASSERT_TRUE(std::isnan(value) ? std::isnan(got.values[i]) : got.values[i] == value) << got.values[i];
    }
  }
}

TEST(CudaMma, Tf32IsAskedFor) {
  // 1 + 2^-12 is representable in f32, and rounds to 1 in tf32.
  auto squareOf = [](const std::string &ofKernel, const std::string &ofOp, const std::string &wants) {
    std::string text = productKernel("f32", {false, true}, "40", "40", "1");
    text.replace(text.find("kiln.kernel"), 11, "kiln.kernel" + ofKernel);
    const size_t at = text.find(" {\n  ^bb0");
    if (!ofOp.empty())
      text.insert(at, " attrs = {" + ofOp + "}");
    DeviceKernel kernel(text);
    EXPECT_EQ(countOf(textOf(kernel), "mma.sync") > 0, wants == "tf32");
    Tensor x = Tensor::zeros({40, 1});
    std::fill(x.values.begin(), x.values.end(), 1 + 0x1p-12);
    return kernel.run({1, 0, 1}, {x, x})[0].values[0];
  };
  const double exact = double(float((1 + 0x1p-12) * (1 + 0x1p-12)));
  EXPECT_EQ(squareOf("", "", "f32"), exact);
  EXPECT_EQ(squareOf(", kiln.tf32", "", "tf32"), 1);
  EXPECT_EQ(squareOf("", "kiln.tf32", "tf32"), 1);
  EXPECT_EQ(squareOf(", kiln.tf32", "kiln.strict", "f32"), exact);
}

TEST(CudaMma, TypesThatDiffer) {
  // f32 * f16 uses CUDA cores, unless f32 may be rounded to tf32, which represents all f16 numbers.
  for (bool isAsked : {false, true}) {
    KernelText text;
    Value x = text.argument(text.type({"40", "24"})), w = text.argument(text.type({"36", "24"}, "f16"));
    Value y = text.reduce("ppr", {x, w}, text.type({"40", "36"}), {"a, c", "b, c", "a, b"}, "0.0 : f32",
                          "%q = arith.extf %x1 : f16 to f32\n%m = arith.mulf %x0, %q : f32\n"
                          "%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32");
    DeviceKernel kernel(text.finish({y}, isAsked ? "kiln.tf32" : ""));
    EXPECT_EQ(countOf(textOf(kernel), "mma.sync") > 0, isAsked);
    const Tensor a = isAsked ? randomTensor({40, 24}) : randomIntegers({40, 24}, -900, 900);
    const Tensor b = randomIntegers({36, 24}, -900, 900);
    expectNear(kernel.run({}, {a, b})[0], productOf(a, b, {false, true}, "tf32"));
  }
}

TEST(CudaMma, SkinnyGemmsOfNarrowWeights) {
  // Weights are loaded 16 bytes at a time, and sums are in f32.
  for (std::string type : {"f16", "bf16"})
    for (int64_t rows : {1, 3, 8})
      for (auto [form, n, k] : {std::tuple(Form{false, true}, 37, 264), std::tuple(Form{false, true}, 5, 35),
                                std::tuple(Form{false, true}, 9, 70), std::tuple(Form{false, false}, 41, 30)}) {
        DeviceKernel kernel(productKernel(type, form, number(rows), number(n), number(k)));
        EXPECT_EQ(kernel.plan().strategy, "skinny_gemm");
        if (k == 264)
          EXPECT_GT(countOf(textOf(kernel), "ld.global.nc.v4"), 0U);
        for (int64_t offset : {0, 2}) {
          kernel.setOffset(offset);
          checkProduct(kernel, type, form, {1, 0, 1}, rows, n, k);
        }
      }
}

//===- Code --------------------------------------------------------------===//

TEST(CudaMma, InnerLoopIsTensorCores) {
  // A warp has 64 x 64 accumulators: two K steps of 4 x 8 MMAs with eight ldmatrix each. There is one barrier per
  // stage, and two around the transfer of the sums to the epilogue. Each input has four 16-byte copies, for three
  // prologue stages and the loop; addresses that are not aligned to 16 bytes take element-wise loads.
  for (std::string type : {"f16", "bf16", "tf32"}) {
    SCOPED_TRACE(type);
    KernelText text({{1, 2048}});
    Value x = text.argument(text.type({"s0", "512"}, inMemory(type))),
          w = text.argument(text.type({"2048", "512"}, inMemory(type)));
    Value y =
        text.reduce("ppr", {x, w}, text.type({"s0", "2048"}), {"a, c", "b, c", "a, b"}, "0.0 : f32", bodyOf(type));
    DeviceKernel kernel(text.finish({y}, attributesOf(type)));
    expectMma(kernel, type);
    EXPECT_EQ(toString(kernel.plan().schedule),
              "mma_bm=128 mma_bn=128 mma_bytes=64 mma_stages=4 mma_wm=64 mma_wn=64 split_k=1 stream_k=0 "
              "wgmma_bm=128 wgmma_bn=256 wgmma_cluster=1 wgmma_groups=2 wgmma_raster=8 wgmma_split=1 "
              "wgmma_stages=4");
    const std::string &ptx = textOf(kernel);
    EXPECT_EQ(countOf(ptx, "mma.sync"), 64U);
    EXPECT_EQ(countOf(ptx, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), 16U);
    EXPECT_EQ(countOf(ptx, "cvt.rna.tf32.f32"), type == "tf32" ? 64U : 0U);
    EXPECT_EQ(countOf(ptx, "cp.async.cg.shared.global"), 32U);
    EXPECT_EQ(countOf(ptx, "bar.sync") + countOf(ptx, "barrier.sync"), 3U);
    EXPECT_EQ(kernel.plan().functions[0].threads, 128U);
    EXPECT_EQ(kernel.plan().functions[0].sharedBytes, uint32_t(4 * 128 * 136));
  }
}

TEST(CudaMma, NoBankConflicts) {
  // Neither cp.async copies, nor ldmatrix, nor the epilogue's transfer through shared memory conflict: rows of 32 to
  // 256 bytes.
  for (const std::string &type : types)
    for (Form form : forms)
      for (int64_t bytes : {32, 64, 128}) {
        if (bytes != 64 && form.transposeA == form.transposeB)
          continue;
        const ScheduleConfig config{{"mma_bytes", bytes}, {"mma_stages", 2}, {"mma_bm", 128},
                                    {"mma_bn", 32},       {"mma_wm", 64},    {"mma_wn", 16}};
        DeviceKernel kernel(productKernel(type, form, "80", "32", "40"), &config);
        checkProduct(kernel, type, form, {1, 0, 1}, 80, 32, 40);
        EXPECT_EQ(kernel.bankConflicts(), 0U) << form.maps()[0] << " " << form.maps()[1] << " " << bytes;
      }
}

} // namespace
} // namespace kiln::testing
