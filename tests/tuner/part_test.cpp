// SPDX-License-Identifier: Apache-2.0
// Several machines that tune a model together: the share of each, and that their merged files equal one machine's.
#include "compiler/tuner/Part.h"

#include "compiler/schedule/TuningFile.h"
#include "tests/package/command.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <regex>
#include <set>

namespace kiln {
namespace {

using testing::Folder;
using testing::run;

TEST(Part, IsANumberOfACount) {
  std::optional<Part> part = parsePart("2/8");
  ASSERT_TRUE(part);
  EXPECT_EQ(toString(*part), "2/8");
  EXPECT_FALSE(part->isWhole());
  EXPECT_TRUE(parsePart("1/1")->isWhole());
  for (const char *text : {"", "2", "/", "2/", "/8", "0/8", "9/8", "-1/8", "1/0", "0/0", "2/8/8", "2 / 8", "a/b",
                           "1.5/8", "1/99999999999999999999"})
    EXPECT_FALSE(parsePart(text)) << text;
}

// Kernels with 200 keys, each up to three times, in any order.
class Deal : public ::testing::Test {
protected:
  Deal() {
    for (int key = 0; key < 200; ++key)
      for (int copy = 0; copy <= key % 3; ++copy)
        kernels.push_back({"key" + std::to_string(key), std::exp2(double(random() % 1000) / 100)});
  }
  std::mt19937 random{7};
  std::vector<DealtKernel> kernels;
};

TEST_F(Deal, GivesEachPartAlikeMuch) {
  for (unsigned count : {1u, 2u, 3u, 8u, 64u}) {
    SCOPED_TRACE(count);
    std::vector<double> times(count);
    std::vector<std::set<std::string>> keys(count);
    const std::vector<unsigned> parts = dealKernels(kernels, count);
    ASSERT_EQ(parts.size(), kernels.size());
    double longest = 0, all = 0;
    for (size_t i = 0; i < kernels.size(); ++i) {
      ASSERT_GE(parts[i], 1u);
      ASSERT_LE(parts[i], count);
      times[parts[i] - 1] += kernels[i].time;
      keys[parts[i] - 1].insert(kernels[i].key);
      all += kernels[i].time;
      longest = std::max(longest, kernels[i].time);
    }
    size_t together = 0;
    for (const std::set<std::string> &of : keys) {
      together += of.size();
      EXPECT_GE(of.size(), 200 / count);
      EXPECT_LE(of.size(), (200 + count - 1) / count);
    }
    EXPECT_EQ(together, 200u) << "a key is in two parts";
    // Dealt forth and back, two parts differ by less than the longest key, which has up to three kernels.
    for (double time : times)
      EXPECT_NEAR(time, all / count, 3 * longest);
  }
}

TEST_F(Deal, DoesNotDependOnTheOrder) {
  std::map<std::string, unsigned> expected;
  const std::vector<unsigned> parts = dealKernels(kernels, 8);
  for (size_t i = 0; i < kernels.size(); ++i)
    expected[kernels[i].key] = parts[i];
  std::shuffle(kernels.begin(), kernels.end(), random);
  const std::vector<unsigned> shuffled = dealKernels(kernels, 8);
  for (size_t i = 0; i < kernels.size(); ++i)
    EXPECT_EQ(shuffled[i], expected[kernels[i].key]);
}

TEST(DealFew, MorePartsThanKernels) {
  EXPECT_EQ(dealKernels({{"a", 1}, {"b", 2}, {"a", 3}}, 5), (std::vector<unsigned>{1, 2, 1}));
  EXPECT_EQ(dealKernels({{"b", 2}, {"a", 2}}, 5), (std::vector<unsigned>{2, 1})) << "equal times: by their keys";
}

// The subcommand.

const std::string tune = PAIR_GENERATOR " tune --threads 1 --target " KILN_V2 " --budget 1s ";

/// Returns the kernels that were measured, by their names in the file.
std::set<std::string> measured(const std::string &file) {
  llvm::Expected<TuningDatabase> database = TuningDatabase::load(file);
  if (!database) {
    ADD_FAILURE() << llvm::toString(database.takeError());
    return {};
  }
  std::set<std::string> kernels;
  for (const auto &[of, result] : database->records())
    kernels.insert(of.strategy + " " + of.structure + " " + toString(of.shape) + " " + toString(of.bounds));
  return kernels;
}

TEST(TunePart, ThreeOfThemAreTheWhole) {
  Folder folder;
  const std::string in = "cd " + folder.path.string() + " && ", at = folder.path.string() + "/";
  std::string files;
  std::set<std::string> together;
  for (const std::string part : {"1", "2", "3"}) {
    const testing::Result result = run(in + tune + "--part " + part + "/3");
    EXPECT_EQ(result.status, 0) << result.text;
    EXPECT_TRUE(std::regex_search(result.text, std::regex("part " + part + "/3 has [1-9] of [0-9]+ kernels")))
        << result.text;
    const std::string file = at + "pair." + part + "of3.tuning";
    const std::set<std::string> kernels = measured(file);
    EXPECT_FALSE(kernels.empty()) << "there are more kernels than parts";
    for (const std::string &kernel : kernels)
      EXPECT_TRUE(together.insert(kernel).second) << kernel << " is measured twice";
    files += file + " ";
  }
  const testing::Result merged = run(KILN_PROGRAM " tune merge " + files + "-o " + at + "merged.tuning");
  EXPECT_EQ(merged.status, 0) << merged.text;
  EXPECT_EQ(measured(at + "merged.tuning"), together);
  const testing::Result whole = run(in + tune);
  EXPECT_EQ(whole.status, 0) << whole.text;
  EXPECT_EQ(measured(at + "pair.tuning"), together) << "one run measures each kernel's default, at the least";
  const testing::Result built =
      run(PAIR_GENERATOR " compile --target " KILN_V2 " --require-tuned --tuning " + at + "merged.tuning -o " + at);
  EXPECT_EQ(built.status, 0) << built.text;
}

TEST(TunePart, MayHaveNoKernel) {
  Folder folder;
  const std::string file = folder.path / "none.tuning";
  const testing::Result result = run(tune + "--part 99/99 --tuning " + file);
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_NE(result.text.find("part 99/99 has 0 of "), std::string::npos) << result.text;
  EXPECT_TRUE(measured(file).empty());
  EXPECT_EQ(run(KILN_PROGRAM " tune merge " + file + " -o " + file).status, 0);
}

TEST(TunePart, RefusesWhatIsNone) {
  for (const char *text : {"0/3", "4/3", "3", "x/3", "''"}) {
    const testing::Result result = run(tune + "--part " + text);
    EXPECT_GT(result.status, 0);
    EXPECT_LT(result.status, 128) << "it crashed";
    const std::string got = std::string(text) == "''" ? "" : text;
    EXPECT_NE(
        result.text.find("--part: wrong form; expected I/N, the I-th of N parts, from 1/N to N/N, got \"" + got + "\""),
        std::string::npos)
        << result.text;
  }
  EXPECT_NE(
      run(PAIR_GENERATOR " tune --part 1/2 verify").text.find("--part: wrong position; expected after \"verify\""),
      std::string::npos);
}

} // namespace
} // namespace kiln
