// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices by wgmma: inputs of each type and order, odd extents, several tiles a block, batches, epilogues;
// which products have this form and when it is taken; and what the inner loop consists of.
#include "DeviceKernel.h"
#include "ProductKernel.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// What a product is made of: the extents of x, w and y with loops a, b, c, .. as in KernelText, and its element.
struct Product {
  std::string loops;
  std::vector<std::string> x, w, y, maps;
  std::string element;
};

std::string bodyOf(const std::string &element) {
  if (element == "f32")
    return multiplyAdd;
  const std::string to = " : " + element + " to f32\n";
  return "%p = arith.extf %x0" + to + "%q = arith.extf %x1" + to +
         "%m = arith.mulf %p, %q : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32";
}

const std::string tf32 = "kiln.tf32";

std::string textOf(const Product &p, const std::vector<std::pair<int, int>> &symbols,
                   const std::string &attributes = tf32) {
  KernelText text(symbols);
  Value x = text.argument(text.type(p.x, p.element)), w = text.argument(text.type(p.w, p.element));
  return text.finish({text.reduce(p.loops, {x, w}, text.type(p.y), p.maps, "0.0 : f32", bodyOf(p.element))},
                     attributes);
}

/// x [m, k] or [k, m], w [n, k] or [k, n].
Product matrices(const std::string &element, Form form, const std::string &m, const std::string &n,
                 const std::string &k) {
  return {"ppr",
          form.transposeA ? std::vector{k, m} : std::vector{m, k},
          form.transposeB ? std::vector{n, k} : std::vector{k, n},
          {m, n},
          form.maps(),
          element};
}

/// Whole numbers: products are exact in each type, sums in f32.
std::vector<Tensor> wholeInputs(const std::string &text, const std::vector<int64_t> &symbols) {
  std::vector<Tensor> inputs = randomInputs(text, symbols);
  for (Tensor &input : inputs)
    input = randomIntegers(input.shape, -8, 9);
  return inputs;
}

constexpr Form weights{false, true}; // as of linear layers

/// Runs the kernel in its mapped form and compares with a sum in f64.
void checkMatrices(DeviceKernel &kernel, const std::string &text, Form form, int64_t m, int64_t n, int64_t k,
                   const std::vector<int64_t> &symbols, bool isMapped = true) {
  SCOPED_TRACE(number(m) + " x " + number(n) + " x " + number(k));
  const std::vector<Tensor> inputs = wholeInputs(text, symbols);
  const int before = kernel.mappedLaunches();
  const Tensor got = kernel.run(symbols, inputs)[0];
  EXPECT_EQ(kernel.mappedLaunches() - before, isMapped);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < k; ++c)
        sum += inputs[0].values[form.transposeA ? c * m + i : i * k + c] *
               inputs[1].values[form.transposeB ? j * k + c : c * n + j];
      ASSERT_EQ(got.values[i * n + j], sum) << i << " " << j;
    }
}

TEST(CudaHopper, TypesAndOrders) {
  for (std::string element : {"f16", "bf16", "f32"})
    for (Form form : {weights, Form{false, false}, Form{true, true}, Form{true, false}}) {
      if (element == "f32" && !(form.transposeB && !form.transposeA))
        continue;
      SCOPED_TRACE(element + " " + form.maps()[0] + " " + form.maps()[1]);
      const std::string text = textOf(matrices(element, form, "s0", "s2", "s1"), {{1, 4000}, {0, 4000}, {1, 4000}});
      DeviceKernel kernel(text);
      ASSERT_TRUE(kernel.plan().mappedImage);
      kernel.setMapped(3);
      for (auto [m, n, k] : {std::tuple(8, 8, 8), std::tuple(136, 264, 200), std::tuple(264, 72, 72)})
        checkMatrices(kernel, text, form, m, n, k, {m, k, n});
    }
}

} // namespace
} // namespace kiln::testing
