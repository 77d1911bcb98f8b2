// SPDX-License-Identifier: Apache-2.0
//
// Kernels of f16 and bf16, from the DSL's ops down to PTX: the strategies that f32 gets, compared with loops in f64 and
// with the interpreter's error bounds, which allow for one rounding of each op's result, with sums in f32.
#include "DeviceKernel.h"
#include "HalfFloatKernel.h"
#include <cmath>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// Returns the inputs rounded to the type.
std::vector<Tensor> inputsOf(const HalfFloat &type, const std::string &text, int64_t count, int limit = 100) {
  std::vector<Tensor> inputs = randomInputs(text, {count}, 0, limit);
  for (Tensor &input : inputs)
    for (double &value : input.values)
      value = std::trunc(value) == value ? value : type.round(value);
  return inputs;
}

void expectNear(double got, double value, double allowed) { ASSERT_NEAR(got, value, allowed + 1e-6); }

TEST(CudaHalfFloats, LinearWithBiasAndRelu) {
  for (const HalfFloat &type : halfFloats)
    for (int64_t m : {3, 70}) { // as a skinny GEMM, and in tiles
      const int inputs = 333, outputs = 45;
      const std::string x = rows(inputs), y = rows(outputs), w = "tensor<45x333xF>", b = "tensor<45xF>";
      const std::string text = kernelOf(type, "%x: " + x + ", %w: " + w + ", %b: " + b, y,
                                        "%0 = kiln.linear %x, %w, %b weight_order = out_in : (" + x + ", " + w + ", " +
                                            b + ") -> " + y + "\n%1 = kiln.relu %0 : " + y + "\nreturn %1",
                                        m < 8 ? 8 : 200);
      SCOPED_TRACE(text);
      DeviceKernel kernel(text);
      EXPECT_EQ(kernel.plan().strategy, m < 8 ? "skinny_gemm" : "contraction");
      const std::vector<Tensor> in = inputsOf(type, text, m);
      const Tensor got = kernel.run({m}, in)[0];
      for (int64_t i = 0; i < m * outputs; ++i) {
        double sum = in[2].values[i % outputs];
        for (int k = 0; k < inputs; ++k)
          sum += in[0].values[i / outputs * inputs + k] * in[1].values[i % outputs * inputs + k];
        expectNear(got.values[i], std::max(sum, 0.0), type.unit * std::abs(sum) + 1e-4);
      }
      kernel.check({m}, in);
    }
}

TEST(CudaHalfFloats, Softmax) {
  for (const HalfFloat &type : halfFloats)
    for (int width : {1, 33, 257, 1500}) {
      const std::string x = rows(width);
      const std::string text = kernelOf(type, "%x: " + x, x, "%0 = kiln.softmax %x axis = 1 : " + x + "\nreturn %0");
      SCOPED_TRACE(text);
      DeviceKernel kernel(text);
      EXPECT_EQ(kernel.plan().strategy, "rows");
      EXPECT_EQ(kernel.plan().scratchBytes, 0);
      const std::vector<Tensor> in = inputsOf(type, text, 5);
      const Tensor got = kernel.run({5}, in)[0];
      for (int row = 0; row < 5; ++row) {
        const double *line = in[0].values.data() + row * width;
        double sum = 0;
        for (int i = 0; i < width; ++i)
          sum += std::exp(line[i]);
        for (int i = 0; i < width; ++i)
          expectNear(got.values[row * width + i], std::exp(line[i]) / sum, type.unit * std::exp(line[i]) / sum);
      }
      kernel.check({5}, in);
    }
}

// 1024 plus 4000 times 1/4: in the type itself no addition would change the sum.
TEST(CudaHalfFloats, SumsAreThoseOfF32) {
  for (const HalfFloat &type : halfFloats) {
    const std::string x = rows(4001), y = "tensor<?xF, affine_map<()[s0] -> (s0)>>";
    const std::string text =
        kernelOf(type, "%x: " + x, y, "%0 = kiln.sum %x axis = 1 : (" + x + ") -> " + y + "\nreturn %0");
    DeviceKernel kernel(text);
    std::vector<Tensor> in = inputsOf(type, text, 2);
    std::fill(in[0].values.begin(), in[0].values.end(), 0.25);
    in[0].values[0] = 1024;
    const Tensor got = kernel.run({2}, in)[0];
    EXPECT_EQ(got.values[0], type.round(2024));
    EXPECT_EQ(got.values[1], type.round(1000.25));
  }
}

TEST(CudaHalfFloats, RowsOfATableAsTheyAre) {
  for (const HalfFloat &type : halfFloats) {
    const std::string i = "tensor<?xi32, affine_map<()[s0] -> (s0)>>", t = "tensor<31x50xF>", y = rows(50);
    const std::string text = kernelOf(type, "%i: " + i + ", %t: " + t, y,
                                      "%0 = kiln.embedding %i, %t : (" + i + ", " + t + ") -> " + y + "\nreturn %0");
    DeviceKernel kernel(text);
    std::vector<Tensor> in = inputsOf(type, text, 60, 31);
    in[1].values[7] = 0x1p-24; // a subnormal number of f16
    in[1].values[8] = -INFINITY;
    const Tensor got = kernel.run({60}, in)[0];
    for (int64_t at = 0; at < 60 * 50; ++at)
      ASSERT_EQ(got.values[at], in[1].values[int64_t(in[0].values[at / 50]) * 50 + at % 50]);
  }
}

TEST(CudaHalfFloats, NormsAndWhatIsBeforeThem) {
  for (const HalfFloat &type : halfFloats) {
    const std::string x = rows(700), w = "tensor<700xF>";
    const std::string text = kernelOf(type, "%x: " + x + ", %y: " + x + ", %w: " + w + ", %b: " + w, x,
                                      "%0 = kiln.add %x, %y : (" + x + ", " + x + ") -> " + x +
                                          "\n%1 = kiln.layer_norm %0, %w, %b epsilon = 1.0e-5 : (" + x + ", " + w +
                                          ", " + w + ") -> " + x + "\nreturn %1");
    DeviceKernel kernel(text);
    EXPECT_EQ(kernel.plan().strategy, "rows");
    for (int64_t m : {1, 13})
      kernel.check({m}, inputsOf(type, text, m));
  }
}

} // namespace
} // namespace kiln::testing
