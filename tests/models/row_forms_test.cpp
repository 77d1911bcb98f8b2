// SPDX-License-Identifier: Apache-2.0
//
// Shape-specialised kernel variants for fewer rows on a GPU of compute capability 9.0: calls select several variants,
// and each row is right in all of them.
#include "client.h"
#include "half_floats.h"
#include "row_forms.h"
#include "session.h"
#include "specs/row_forms.h"
#include "support.h"
#include "tests/interpreter/traced.h"
#include <set>
#include <string_view>

namespace kiln::testing {
namespace {

constexpr std::int64_t in = specs::RowForms::in, out = specs::RowForms::out;
constexpr std::int64_t different = 5; // the number of different rows, which are repeated

/// Returns the launched kernels, or nothing with a driver other than that of the tests.
std::vector<kiln_fake_cuda_call_t> launches() {
  using Next = decltype(kiln_fake_cuda_call);
  auto *next = reinterpret_cast<Next *>(dlsym(fake::library(), "kiln_fake_cuda_call"));
  std::vector<kiln_fake_cuda_call_t> all;
  kiln_fake_cuda_call_t call;
  for (std::size_t i = 0; next && next(i, &call) == 0; ++i)
    if (*call.kernel)
      all.push_back(call);
  return all;
}

/// Returns threads per block, blocks per cluster and shared memory bytes of each launched GEMM variant.
std::set<std::vector<unsigned>> formsLaunched() {
  std::set<std::vector<unsigned>> forms;
  for (const kiln_fake_cuda_call_t &call : launches())
    if (std::string_view(call.kernel).starts_with("step"))
      forms.insert({call.block[0], call.cluster[0], call.shared_bytes});
  return forms;
}

TEST(RowForms, EachRowIsRightInAll) {
  Session<row_forms_t> session(KILN_TEST_LIBRARY(row_forms, ROW_FORMS_WEIGHTS));
  const interpreter::Tensor x = interpreter::uniform("rows", {different, in}, 2);
  interpreter::Traced<interpreter::SampledInterpreter> oracle(trace<specs::RowForms>());
  const interpreter::Tensor expected = oracle.run(
      "forward", {{"rows", different}}, {interpreter::Tensor::of(ElementType::bf16, {different, in}, x.values)})[0];
  for (std::int64_t rows : {1, 8, 40, 520}) {
    SCOPED_TRACE(std::to_string(rows) + " rows");
    std::vector<std::uint16_t> bits;
    for (std::int64_t i = 0; i < rows * in; ++i)
      bits.push_back(to_bf16(static_cast<float>(x.values[i % (different * in)])));
    const Input input(bits);
    Output<std::uint16_t> y(rows * out);
    session.run(row_forms_forward, rows, input, y);
    for (std::int64_t i = 0; i < rows * out; ++i) {
      const std::int64_t at = i % (different * out);
      ASSERT_NEAR(from_bf16(y.values()[i]), expected.values[at], expected.errors[at]) << i;
    }
  }
  const std::set<std::vector<unsigned>> forms = formsLaunched();
  if (forms.empty())
    return;
  EXPECT_EQ(forms.size(), 3U) << "one or eight rows, up to 512, and more";
  EXPECT_TRUE(std::any_of(forms.begin(), forms.end(), [](const auto &form) { return form[1] > 1; }))
      << "blocks share the depth where rows are few";
}

// One sequence of few tokens uses a specialised variant; two sequences, and more tokens, use the general kernel.
TEST(RowForms, AttentionOfOneSequence) {
  Session<row_forms_t> session(KILN_TEST_LIBRARY(row_forms, ROW_FORMS_WEIGHTS));
  interpreter::Traced<interpreter::SampledInterpreter> oracle(trace<specs::RowForms>());
  for (auto [batch, tokens] : {std::pair<std::int64_t, std::int64_t>{1, 9}, {2, 9}, {1, 130}}) {
    SCOPED_TRACE(std::to_string(batch) + " of " + std::to_string(tokens));
    const interpreter::Tensor x = interpreter::uniform("x", {batch, tokens, specs::RowForms::width}, 1);
    const interpreter::Tensor expected = oracle.run("attend", {{"batch", batch}, {"tokens", tokens}}, {x})[0];
    const Input input(std::vector<float>(x.values.begin(), x.values.end()));
    Output<float> y(static_cast<std::int64_t>(x.values.size()));
    session.run(row_forms_attend, batch, tokens, input, y);
    for (std::size_t i = 0; i < x.values.size(); ++i)
      ASSERT_NEAR(y.values()[i], expected.values[i], expected.errors[i]) << i;
  }
}

// Keys and values of all heads are next to the queries in one tensor, for which the driver makes tensor maps (TMA).
TEST(RowForms, AttentionOfOneProjection) {
  constexpr std::int64_t width = 128, tokens = 70;
  Session<row_forms_t> session(KILN_TEST_LIBRARY(row_forms, ROW_FORMS_WEIGHTS));
  interpreter::Traced<interpreter::SampledInterpreter> oracle(trace<specs::RowForms>());
  interpreter::Tensor x = interpreter::uniform("x", {tokens, width}, 1);
  std::vector<std::uint16_t> bits;
  for (double &value : x.values) {
    bits.push_back(to_bf16(static_cast<float>(value)));
    value = from_bf16(bits.back());
  }
  const interpreter::Tensor expected = oracle.run(
      "encode", {{"tokens", tokens}}, {interpreter::Tensor::of(ElementType::bf16, {tokens, width}, x.values)})[0];
  Output<std::uint16_t> y(tokens * width);
  session.run(row_forms_encode, tokens, Input(bits), y);
  double largest = 0;
  for (double value : expected.values)
    largest = std::max(largest, std::abs(value));
  for (std::int64_t i = 0; i < tokens * width; ++i)
    ASSERT_NEAR(from_bf16(y.values()[i]), expected.values[i], 2e-2 * largest) << i;
  const std::vector<kiln_fake_cuda_call_t> all = launches();
  EXPECT_TRUE(all.empty() || std::any_of(all.begin(), all.end(),
                                         [](const kiln_fake_cuda_call_t &call) {
                                           return std::string_view(call.kernel).starts_with("attention") &&
                                                  call.block[0] == 384;
                                         }))
      << "two groups of warps that multiply, and one that copies";
}

} // namespace
} // namespace kiln::testing
