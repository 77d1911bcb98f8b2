// SPDX-License-Identifier: Apache-2.0
//
// A group's rows have the columns of its outputs in the linear of all groups, which reads the same stored weights.
#include "ops.h"

#include KILN_OPS_HEADER(ops_grouped_formats)

#define ENTRY(entry) KILN_OPS_ENTRY(ops_grouped_formats, entry)

namespace kiln::testing {
namespace {

constexpr std::int64_t outputs = 20;

auto library() { return KILN_OPS_LIBRARY(ops_grouped_formats, OPS_GROUPED_FORMATS); }
auto &session() {
  static Session<KILN_OPS_HANDLE(ops_grouped_formats)> only(library());
  return only;
}

template <class Entry> void expectColumnsOfGroups(Entry entry) {
  for (std::int64_t rows : {1, 2, 7, 32, 37})
    for (const std::vector<std::int64_t> &ends :
         {std::vector<std::int64_t>{rows / 3, rows / 2, rows}, {0, rows, rows}, {0, 0, rows}, {rows, rows, rows}}) {
      SCOPED_TRACE("rows " + std::to_string(rows) + ", seed " + std::to_string(seed()));
      Array x = random({rows, 64}), given = generate({3}, [&](const Index &at) { return double(ends[at[0]]); });
      Output<float> grouped(rows * outputs), all(rows * 3 * outputs);
      session().run(entry, rows, Given(x), GivenIntegers(given), grouped, all);
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t group = row < ends[0] ? 0 : row < ends[1] ? 1 : 2;
        for (std::int64_t o = 0; o < outputs; ++o) {
          const double expected = all.values()[(row * 3 + group) * outputs + o];
          // A product of 64 terms of up to 2 * 2: sums in another order differ by a few roundings of the largest.
          ASSERT_NEAR(grouped.values()[row * outputs + o], expected, 1e-4) << "row " << row << ", output " << o;
        }
      }
    }
}

TEST(GroupedFormats, F16) { expectColumnsOfGroups(ENTRY(f16)); }
TEST(GroupedFormats, Bf16) { expectColumnsOfGroups(ENTRY(bf16)); }
TEST(GroupedFormats, Int8) { expectColumnsOfGroups(ENTRY(int8)); }
TEST(GroupedFormats, Int4) { expectColumnsOfGroups(ENTRY(int4)); }
TEST(GroupedFormats, Int4WithZeroPoints) { expectColumnsOfGroups(ENTRY(int4_zero)); }
TEST(GroupedFormats, Fp8) { expectColumnsOfGroups(ENTRY(fp8)); }
TEST(GroupedFormats, Mxfp4) { expectColumnsOfGroups(ENTRY(mxfp4)); }

} // namespace
} // namespace kiln::testing
