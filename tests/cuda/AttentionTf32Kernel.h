// SPDX-License-Identifier: Apache-2.0
//
// Attention of f32 whose kernels may round GEMM operands to tf32, compared with a loop in f64 over the rounded inputs.
// Only the softmax weights are then rounded once more.
#pragma once

#include "AttentionKernel.h"
#include "ProductKernel.h"
#include "llvm/ADT/APFloat.h"
#include <gtest/gtest.h>

namespace kiln::testing {

inline constexpr double roundoff = 0x1p-11; // relative rounding error of tf32
inline constexpr double ofSums = 1e-4;      // error of f32 sums and exponentials, relative to the weighted magnitudes

inline AttentionCase tf32Case() {
  AttentionCase s;
  s.heads = s.keyHeads = 1;
  s.attributes = "kiln.tf32";
  return s;
}

inline double rounded(double value) {
  llvm::APFloat number(value);
  bool isInexact;
  number.convert(llvm::APFloat::FloatTF32(), llvm::APFloat::rmNearestTiesToAway, &isInexact);
  return number.convertToDouble();
}

/// Returns the queries, keys and values rounded to tf32.
inline std::vector<Tensor> rounded(std::vector<Tensor> inputs) {
  for (size_t i : {0, 1, 2})
    for (double &value : inputs[i].values)
      value = std::isfinite(value) ? rounded(value) : value;
  return inputs;
}

/// Computes attention over the magnitudes of the values.
inline Tensor magnitudes(const AttentionCase &s, int64_t queries, int64_t keys, std::vector<Tensor> inputs) {
  for (double &value : inputs[2].values)
    value = std::abs(value);
  return expectedAttention(s, queries, keys, inputs);
}

/// Expects the attention strategy, tensor cores for both GEMMs and no memory for scores.
inline void expectTf32(const DeviceKernel &kernel) {
  const cuda::LaunchPlan &plan = kernel.plan();
  EXPECT_EQ(plan.strategy, "attention");
  const int64_t kvSplits = plan.schedule.at("split_kv");
  EXPECT_EQ(plan.launches.size(), kvSplits > 1 ? 2U : 1U);
  EXPECT_EQ(plan.scratchBytes > 0, kvSplits > 1);
  EXPECT_FALSE(plan.tmaImage) << "there is no wgmma of it";
  const std::string &ptx = textOf(kernel);
  EXPECT_EQ(ptx.find(".local"), std::string::npos);
  EXPECT_GE(countOf(ptx, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"), 4U);
  EXPECT_EQ(countOf(ptx, "mma.sync"), countOf(ptx, "m16n8k8.row.col.f32.tf32.tf32.f32"));
  EXPECT_GT(countOf(ptx, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), 0U);
}

inline void compare(const Tensor &got, const Tensor &wanted, const Tensor &magnitude, double relative) {
  ASSERT_EQ(got.values.size(), wanted.values.size());
  for (size_t i = 0; i < got.values.size(); ++i)
    ASSERT_LE(std::abs(got.values[i] - wanted.values[i]), relative * magnitude.values[i] + 1e-7)
        << "element " << i << ": got " << got.values[i] << ", expected " << wanted.values[i];
}

inline void check(DeviceKernel &kernel, const AttentionCase &s, int64_t queries, int64_t keys,
                  const std::vector<Tensor> &inputs) {
  SCOPED_TRACE("queries " + number(queries) + " keys " + number(keys));
  std::vector<int64_t> symbols{queries};
  if (s.isCross)
    symbols.push_back(keys);
  const std::vector<Tensor> multiplied = rounded(inputs);
  compare(kernel.run(symbols, inputs)[0], expectedAttention(s, queries, keys, multiplied),
          magnitudes(s, queries, keys, multiplied), roundoff + ofSums);
}

inline void check(DeviceKernel &kernel, const AttentionCase &s, int64_t queries, int64_t keys) {
  check(kernel, s, queries, keys, attentionInputs(s, queries, keys));
}

} // namespace kiln::testing
