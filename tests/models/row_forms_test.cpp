// SPDX-License-Identifier: Apache-2.0
//
// Forms of a kernel for fewer rows on a GPU of capability 9.0: calls take several, and each row is right in all.
#include "client.h"
#include "row_forms.h"
#include "session.h"
#include "short_floats.h"
#include "specs/row_forms.h"
#include "support.h"
#include "tests/interpreter/traced.h"
#include <set>

namespace kiln::testing {
namespace {

constexpr std::int64_t in = specs::RowForms::in, out = specs::RowForms::out;
constexpr std::int64_t different = 5; // rows, over and over

/// Threads, blocks of a cluster and bytes of shared memory, of each form that was launched; none if the driver is not
/// that of the tests.
std::set<std::vector<unsigned>> formsLaunched() {
  using Next = decltype(kiln_fake_cuda_call);
  auto *next = reinterpret_cast<Next *>(dlsym(fake::library(), "kiln_fake_cuda_call"));
  std::set<std::vector<unsigned>> forms;
  kiln_fake_cuda_call_t call;
  for (std::size_t i = 0; next && next(i, &call) == 0; ++i)
    if (*call.kernel)
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

} // namespace
} // namespace kiln::testing
