// SPDX-License-Identifier: Apache-2.0
//
// Tuning files whose structure hashes are of kernels with polynomials in place of math functions.
#include "compiler/tuner/OldKeys.h"

#include "compiler/tuner/LoweredModel.h"
#include "kiln/dsl.h"
#include <gtest/gtest.h>
#include <regex>

namespace kiln {
namespace {

const std::string a = "aaaaaaaaaaaaaaaa", b = "bbbbbbbbbbbbbbbb", c = "cccccccccccccccc", d = "dddddddddddddddd";

std::string line(const std::string &structure, const std::string &result) {
  return "pointwise " + structure + " 6x10 1..20 at=20 x86-64-v2/c2/l1:32K/l2:1M/l3:32M threads=1 | task=1 | " +
         result + "\n";
}

TuningDatabase parse(const std::string &lines) {
  std::vector<std::string> problems;
  TuningDatabase database = TuningDatabase::parse("kiln tuning 1\n" + lines, "file", problems);
  EXPECT_TRUE(problems.empty()) << problems[0];
  return database;
}

std::string textOf(const std::string &lines) { return parse(lines).text(); }

TEST(OldKeys, LinesOfKernelsAreRenamed) {
  RenamedKeys keys = renameStructures(parse(line(a, "10.00us n=5") + line(c, "20.00us n=5") + line(d, "crashed")),
                                      {{a, {b}}, {c, {c}}});
  EXPECT_EQ(keys.database.text(), textOf(line(b, "10.00us n=5") + line(c, "20.00us n=5") + line(d, "crashed")));
  EXPECT_EQ(keys.renamed.size(), 1u);
  EXPECT_EQ((keys.renamed[{a, b}]), 1u);
  EXPECT_EQ(keys.current, 1u);
  EXPECT_EQ(keys.unknown, 1u);
}

TEST(OldKeys, RenamingTwiceChangesNothing) {
  const NewStructures structures{{a, {b}}};
  const TuningDatabase once = renameStructures(parse(line(a, "10.00us n=5")), structures).database;
  RenamedKeys keys = renameStructures(once, structures);
  EXPECT_EQ(keys.database.text(), once.text());
  EXPECT_TRUE(keys.renamed.empty());
  EXPECT_EQ(keys.current, 1u);
}

TEST(OldKeys, ALineGoesToEachKernelThatHadItsKey) {
  RenamedKeys keys = renameStructures(parse(line(a, "10.00us n=5")), {{a, {b, c}}});
  EXPECT_EQ(keys.database.text(), textOf(line(b, "10.00us n=5") + line(c, "10.00us n=5")));
  EXPECT_EQ(keys.renamed.size(), 2u);
}

TEST(OldKeys, OfLinesThatMeetTheBetterFoundedOneStays) {
  const std::string lines = line(a, "10.00us n=5") + line(b, "12.00us n=63") + line(c, "14.00us n=7");
  EXPECT_EQ(renameStructures(parse(lines), {{a, {c}}, {b, {c}}}).database.text(), textOf(line(c, "12.00us n=63")));
}

constexpr Dim rows{"rows", 1, 20};
struct Net : Model {
  Linear<6, 10> up{"up"};
  Linear<10, 6> down{"down"};
  constexpr auto forward(Tensor<f32, rows, 6> x) const { return down(tanh(up(x))); }
};

// A file of today's results under the old keys is still used completely.
TEST(OldKeys, AreThoseOfTheKernelsAsTheyAreCompiled) {
  const Graph graph = trace<Net>();
  auto model = lowerModel(graph, "net", "x86-64-v2", {});
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  std::string old, today;
  size_t changed = 0, kernels = 0;
  for (mlir::func::FuncOp kernel : (*model)->kernels()) {
    const std::string before = hashText(structureText(kernel), 16), now = keyOf(kernel).structure;
    const std::string result = std::to_string(10 + kernels++) + ".00us n=5";
    changed += before != now;
    old += std::regex_replace(line(before, result), std::regex("6x10"), toString(keyOf(kernel).shape));
    today += std::regex_replace(line(now, result), std::regex("6x10"), toString(keyOf(kernel).shape));
  }
  EXPECT_GT(changed, 0u) << "that with tanh";
  EXPECT_LT(changed, kernels) << "that without";
  llvm::Expected<RenamedKeys> keys = renameOldKeys(graph, "net", {}, parse(old));
  ASSERT_TRUE(bool(keys)) << llvm::toString(keys.takeError());
  EXPECT_EQ(keys->database.text(), textOf(today));
  EXPECT_EQ(keys->unknown, 0u);
}

} // namespace
} // namespace kiln
