// SPDX-License-Identifier: Apache-2.0
//
// Which schedule a kernel gets from which measurements.
#include "compiler/schedule/Choose.h"

#include <cmath>
#include <gtest/gtest.h>

namespace kiln {
namespace {

const std::string desk = "x86-64-v4/c8/l1:32K/l2:1M/l3:32M", laptop = "x86-64-v4/c4/l1:48K/l2:2M/l3:12M",
                  old = "x86-64-v3/c8/l1:32K/l2:1M/l3:32M";
const std::string structure = "3fa9c1d2e0b14477";

/// Returns a line for a contraction.
std::string line(const std::string &shape, const std::string &config, const std::string &result,
                 const std::string &extents = "128", const std::string &machine = desk, int threads = 1) {
  return "contraction " + structure + " " + shape + " 1..1024 at=" + extents + " " + machine +
         " threads=" + std::to_string(threads) + " | " + config + " | " + result + "\n";
}

ScheduleChooser chooser(const std::string &lines, const ChooseOptions &options = {}) {
  std::vector<std::string> problems;
  TuningDatabase database = TuningDatabase::parse("kiln tuning 1\n" + lines, "file", problems);
  EXPECT_TRUE(problems.empty()) << problems[0];
  llvm::Expected<ScheduleChooser> result = ScheduleChooser::create(database, options);
  if (result)
    return *result;
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

std::string problem(const std::string &lines, const std::string &machine) {
  std::vector<std::string> problems;
  TuningDatabase database = TuningDatabase::parse("kiln tuning 1\n" + lines, "file", problems);
  llvm::Expected<ScheduleChooser> result = ScheduleChooser::create(database, {machine, 0});
  return result ? "" : llvm::toString(result.takeError());
}

KernelKey key(std::vector<int64_t> shape, int64_t bound = 1024) {
  return {structure, std::move(shape), {{1, bound}}, ""};
}

/// The defaults are m = 8 and n = 48.
const Schedulable schedulable{"contraction", {{"m", {1, 2, 4, 6, 8, 10, 12}, 8}, {"n", {16, 32, 48}, 48}}};

ScheduleChoice choose(const std::string &lines, const KernelKey &of, const ChooseOptions &options = {},
                      llvm::StringRef isa = "x86-64-v4", const Schedulable &how = schedulable) {
  return chooser(lines, options).choose(of, how, isa);
}

TEST(Choose, DefaultWithoutMeasurements) {
  ScheduleChoice choice = choose("", key({768, 768}));
  EXPECT_EQ(choice.provenance, Provenance::Default);
  EXPECT_EQ(toString(choice.config), "m=8 n=48");
  EXPECT_FALSE(choice.loss);
  EXPECT_TRUE(choice.records.empty());
}

// The geometric mean of 100 / 50 and 90 / 80 at two sizes; a third one has no default.
TEST(Choose, TellsWhatTuningGained) {
  const std::string lines =
      line("768x768", "m=8 n=48", "100.0us n=9 default") + line("768x768", "m=4 n=48", "50.0us n=9") +
      line("768x768", "m=8 n=48", "90.0us n=9 default", "64") + line("768x768", "m=4 n=48", "80.0us n=9", "64") +
      line("768x768", "m=4 n=48", "10.0us n=9", "8");
  const ScheduleChoice choice = choose(lines, key({768, 768}));
  EXPECT_EQ(toString(choice.config), "m=4 n=48");
  ASSERT_TRUE(choice.gain);
  EXPECT_NEAR(*choice.gain, std::sqrt(2 * 1.125), 1e-6);
  EXPECT_FALSE(choose(line("768x768", "m=4 n=48", "50.0us n=9"), key({768, 768})).gain) << "no default to compare with";
  EXPECT_FALSE(choose(lines, key({768, 512})).gain) << "of another shape";
}

// Measurements of a GPU count for any number of threads, those of a CPU only for their own.
TEST(Choose, ThreadsAreTheCpus) {
  const std::string gpu = "cuda/NVIDIA-H100/9.0/m:79G";
  const std::string lines = line("768x768", "m=4 n=48", "5us n=9", "128", gpu) +
                            line("768x768", "m=8 n=48", "7us n=9 default", "128", gpu) +
                            line("768x768", "m=4 n=48", "5us n=9") + line("768x768", "m=8 n=48", "7us n=9 default");
  for (int64_t threads : {0, 1, 8}) {
    const ScheduleChoice choice = choose(lines, key({768, 768}), {"", threads}, "cuda");
    EXPECT_EQ(choice.provenance, Provenance::Exact);
    EXPECT_EQ(toString(choice.config), "m=4 n=48");
    for (const std::string &record : choice.records)
      EXPECT_NE(record.find(gpu + " threads=1 "), std::string::npos) << record;
  }
  EXPECT_EQ(choose(lines, key({768, 768}), {"", 8}).provenance, Provenance::Transferred);
  // From another shape: the distance is only that of the shape.
  EXPECT_EQ(choose(lines, key({768, 512}), {"", 8}, "cuda").donor, choose(lines, key({768, 512}), {}, "cuda").donor);
}

TEST(Choose, TheFastestOfThisKernel) {
  const std::string lines = line("768x768", "m=8 n=48", "100.0us n=9 default") +
                            line("768x768", "m=6 n=32", "90.0us n=9") + line("768x768", "m=4 n=16", "95.0us n=9");
  ScheduleChoice choice = choose(lines, key({768, 768}));
  EXPECT_EQ(choice.provenance, Provenance::Exact);
  EXPECT_EQ(toString(choice.config), "m=6 n=32");
  EXPECT_DOUBLE_EQ(*choice.loss, 0);
  ASSERT_EQ(choice.records.size(), 1u);
  EXPECT_EQ(choice.records[0] + "\n", line("768x768", "m=6 n=32", "90.00us n=9"));
}

TEST(Choose, TheLeastMeanLossOverExtents) {
  // Each of the first two is best at one size; the third loses 2 % at both.
  std::string lines;
  for (auto [extents, a, b, c] : {std::tuple("16", "100.0us n=9", "130.0us n=9", "102.0us n=9"),
                                  {"512", "1300us n=9", "1000us n=9", "1020us n=9"}})
    lines += line("768x768", "m=2 n=48", a, extents) + line("768x768", "m=8 n=48", b, extents) +
             line("768x768", "m=6 n=48", c, extents);
  ScheduleChoice choice = choose(lines, key({768, 768}));
  EXPECT_EQ(toString(choice.config), "m=6 n=48");
  EXPECT_NEAR(*choice.loss, 0.02, 1e-6);
  EXPECT_EQ(choice.records.size(), 2u);
}

// A configuration that was measured only with one thread is neither preferred for that nor much penalised.
TEST(Choose, MissingMeasurementsArePredicted) {
  const std::string lines =
      line("768x768", "m=8 n=48", "100.0us n=9") + line("768x768", "m=8 n=48", "51.0us n=9", "128", desk, 2) +
      line("768x768", "m=6 n=48", "99.0us n=9") + line("768x768", "m=6 n=48", "50.0us n=9", "128", desk, 2);
  EXPECT_EQ(toString(choose(lines + line("768x768", "m=4 n=48", "98.9us n=9"), key({768, 768})).config), "m=6 n=48");
  EXPECT_EQ(toString(choose(lines + line("768x768", "m=4 n=48", "90.0us n=9"), key({768, 768})).config), "m=4 n=48");
}

TEST(Choose, ThreadsAskedFor) {
  const std::string lines = line("768x768", "m=8 n=48", "100.0us n=9") + line("768x768", "m=6 n=48", "90.0us n=9") +
                            line("768x768", "m=8 n=48", "45.0us n=9", "128", desk, 2) +
                            line("768x768", "m=6 n=48", "60.0us n=9", "128", desk, 2);
  EXPECT_EQ(toString(choose(lines, key({768, 768}), {"", 1}).config), "m=6 n=48");
  EXPECT_EQ(toString(choose(lines, key({768, 768}), {"", 2}).config), "m=8 n=48");
  EXPECT_EQ(toString(choose(lines, key({768, 768})).config), "m=8 n=48") << "the least mean loss";
  ScheduleChoice more = choose(lines, key({768, 768}), {"", 3});
  EXPECT_EQ(more.provenance, Provenance::Transferred) << "three threads were not measured";
  EXPECT_EQ(more.donor, "2 threads") << "the shape is its own";
  EXPECT_EQ(toString(more.config), "m=8 n=48") << "two are nearer than one";
}

TEST(Choose, FailuresAreNeverChosen) {
  for (const char *outcome : {"failed", "crashed", "timeout", "wrong"}) {
    const std::string lines = line("768x768", "m=8 n=48", "100.0us n=9") + line("768x768", "m=6 n=48", "10.0us n=9") +
                              line("768x768", "m=6 n=48", outcome, "512");
    EXPECT_EQ(toString(choose(lines, key({768, 768})).config), "m=8 n=48") << outcome;
    EXPECT_EQ(choose(line("768x768", "m=6 n=48", outcome), key({768, 768})).provenance, Provenance::Default) << outcome;
    // Nor transferred from another shape.
    const std::string transfer = line("768x1024", "m=6 n=48", "10.0us n=9") +
                                 line("768x1024", "m=4 n=48", "11.0us n=9") + line("768x768", "m=6 n=48", outcome);
    EXPECT_EQ(toString(choose(transfer, key({768, 768})).config), "m=4 n=48") << outcome;
  }
}

TEST(Choose, ConfigsOutsideOfTodaysSpaceDoNotCount) {
  const std::string lines = line("768x768", "m=9 n=48", "50.0us n=9") +
                            line("768x768", "gone=1 m=6 n=48", "60.0us n=9") +
                            line("768x768", "m=6 n=32", "90.0us n=9");
  EXPECT_EQ(toString(choose(lines, key({768, 768})).config), "m=6 n=32");
  ScheduleChoice choice = choose(line("768x768", "m=9 n=48", "50.0us n=9"), key({768, 768}));
  EXPECT_EQ(choice.provenance, Provenance::Transferred) << "to the nearest legal point";
  EXPECT_EQ(toString(choice.config), "m=10 n=48");
  // A parameter that was added later.
  Schedulable newer = schedulable;
  newer.space.push_back({"p", {0, 1}, 1});
  choice = choose(line("768x768", "m=6 n=48", "50.0us n=9"), key({768, 768}), {}, "x86-64-v4", newer);
  EXPECT_EQ(choice.provenance, Provenance::Exact);
  EXPECT_EQ(toString(choice.config), "m=6 n=48 p=1");
}

TEST(Choose, TheNearestShapeOfTheStructure) {
  const std::string lines = line("768x3072", "m=6 n=32", "90.0us n=9") + line("768x768", "m=4 n=16", "20.0us n=9");
  ScheduleChoice choice = choose(lines, key({1024, 4096}));
  EXPECT_EQ(choice.provenance, Provenance::Transferred);
  EXPECT_EQ(toString(choice.config), "m=6 n=32");
  EXPECT_EQ(choice.donor, "768x3072 1..1024");
  EXPECT_FALSE(choice.loss) << "only a measurement of the kernel itself determines it";
  EXPECT_EQ(choice.records.size(), 1u);
  EXPECT_EQ(toString(choose(lines, key({512, 512})).config), "m=4 n=16");
  EXPECT_EQ(choose(lines, key({768, 768}, 4)).provenance, Provenance::Default) << "other bounds are far away";
  EXPECT_EQ(choose(lines, key({768, 768}, 512)).provenance, Provenance::Transferred);
  EXPECT_EQ(choose(lines, key({1, 1})).provenance, Provenance::Default) << "nothing is near";
  KernelKey other = key({768, 768});
  other.structure = "0000000000000000";
  EXPECT_EQ(choose(lines, other).provenance, Provenance::Default);
  Schedulable pointwise = schedulable;
  pointwise.strategy = "pointwise";
  EXPECT_EQ(choose(lines, key({768, 768}), {}, "x86-64-v4", pointwise).provenance, Provenance::Default);
}

// The default depends on the shape. So where it was best, the other kernel takes its own default, and not that one.
TEST(Choose, TheDefaultWhereItWasBestNearby) {
  const std::string near = line("768x2304", "m=6 n=48", "400.0us n=9 default") +
                           line("768x2304", "m=4 n=48", "404.0us n=9"),
                    far =
                        line("768x768", "m=4 n=48", "100.0us n=9") + line("768x768", "m=8 n=48", "140.0us n=9 default");
  ScheduleChoice choice = choose(near + far, key({768, 3072}));
  EXPECT_EQ(choice.provenance, Provenance::Default);
  EXPECT_EQ(toString(choice.config), "m=8 n=48");
  EXPECT_FALSE(choice.loss);
  EXPECT_TRUE(choice.donor.empty());
  EXPECT_TRUE(choice.records.empty());
  choice = choose(near + far, key({768, 1024}));
  EXPECT_EQ(choice.provenance, Provenance::Transferred) << "the other shape is nearer";
  EXPECT_EQ(toString(choice.config), "m=4 n=48");
  // The machine with the most measurements decides, even if another one has a near shape with a better configuration.
  const std::string other = line("768x3072", "m=2 n=48", "50.0us n=9", "128", laptop);
  EXPECT_EQ(choose(near + far + other, key({768, 3000})).provenance, Provenance::Default);
  // If that default failed for the kernel itself, the next best configuration of the nearest shape counts.
  choice = choose(near + far + line("768x3072", "m=6 n=48", "crashed"), key({768, 3072}));
  EXPECT_EQ(choice.provenance, Provenance::Transferred);
  EXPECT_EQ(toString(choice.config), "m=4 n=48");
}

TEST(Choose, MachinesOfTheInstructionSet) {
  const std::string lines = line("768x768", "m=6 n=48", "100.0us n=9") + line("768x768", "m=8 n=48", "110.0us n=9") +
                            line("768x768", "m=4 n=48", "50.0us n=9", "128", laptop) +
                            line("768x3072", "m=2 n=48", "50.0us n=9", "128", laptop) +
                            line("768x768", "m=1 n=48", "10.0us n=9", "128", old);
  EXPECT_EQ(toString(choose(lines + line("768x768", "m=1 n=16", "500.0us n=9"), key({768, 768})).config), "m=6 n=48")
      << "the one measured most";
  EXPECT_EQ(toString(choose(lines, key({768, 3072})).config), "m=2 n=48") << "exact before near, whatever the machine";
  EXPECT_EQ(toString(choose(lines, key({768, 768}), {"l2:2M", 0}).config), "m=4 n=48");
  EXPECT_EQ(toString(choose(lines, key({768, 768}), {laptop, 0}).config), "m=4 n=48");
  EXPECT_EQ(toString(choose(lines, key({768, 768}), {"c8", 0}, "x86-64-v3").config), "m=1 n=48");
  EXPECT_EQ(choose(lines, key({768, 768}), {"c4", 0}, "x86-64-v3").provenance, Provenance::Default);
  EXPECT_EQ(choose(lines, key({768, 768}), {}, "x86-64-v2").provenance, Provenance::Default);
  EXPECT_EQ(problem(lines, "c3"),
            "the tuning file has no machine \"c3\"; it has: " + old + ", " + laptop + ", " + desk);
  EXPECT_EQ(problem("", "c3"), "the tuning file has no machine \"c3\"; it has: none");
  EXPECT_EQ(problem(lines, "l3"), "machine \"l3\": its name is ambiguous; expected one of: " + laptop + ", " + desk);
}

TEST(Choose, DoesNotDependOnTheSequenceOfLines) {
  std::string forward, backward;
  for (int m : {1, 2, 4, 6, 8, 10, 12}) {
    std::string measured = line("768x768", "m=" + std::to_string(m) + " n=48", "100.0us n=9");
    forward += measured;
    backward = measured + backward;
  }
  ScheduleChoice a = choose(forward, key({768, 768})), b = choose(backward, key({768, 768}));
  EXPECT_EQ(a.config, b.config);
  EXPECT_EQ(a.records, b.records);
}

TEST(Snap, ToTheNearestLegalValue) {
  const SearchSpace space{{"k", {64, 128, 256, 768}, 256}, {"rows", {0, 128, 512}, 0}, {"side", {-1, 0, 1}, 0}};
  EXPECT_EQ(toString(snap(space, {{"k", 3072}, {"rows", 256}})), "k=768 rows=128 side=0");
  EXPECT_EQ(toString(snap(space, {{"k", 1}, {"rows", 1}, {"side", 1}, {"gone", 7}})), "k=64 rows=0 side=1");
  EXPECT_EQ(toString(snap(space, {})), "k=256 rows=0 side=0");
}

// Both parameters of the record are legal only together: moving them one by one would lose the configuration.
TEST(Choose, LegalConfigsAreTakenAsTheyAre) {
  Schedulable ruled = schedulable;
  ruled.space.rules.push_back({"m * n of 128, 384 or 16", [](const ScheduleConfig &config) {
                                 int64_t product = config.at("m") * config.at("n");
                                 return product == 128 || product == 384 || product == 16;
                               }});
  const std::string lines = line("768x768", "m=1 n=16", "50.0us n=9") + line("768x768", "m=1 n=32", "40.0us n=9") +
                            line("768x768", "m=8 n=48", "60.0us n=9");
  EXPECT_EQ(toString(choose(lines, key({768, 768}), {}, "x86-64-v4", ruled).config), "m=1 n=16");
  EXPECT_EQ(
      toString(choose(line("768x768", "m=1 n=16", "50.0us n=9"), key({768, 1024}), {}, "x86-64-v4", ruled).config),
      "m=1 n=16");
  EXPECT_EQ(
      toString(choose(line("768x768", "m=4 n=48", "50.0us n=9"), key({768, 1024}), {}, "x86-64-v4", ruled).config),
      "m=8 n=48")
      << "the nearest legal one";
}

TEST(TuningDigest, ChangesIfAndOnlyIfALineDoes) {
  EXPECT_EQ(tuningDigest({}), "none");
  EXPECT_EQ(tuningDigest({"a", "b"}), tuningDigest({"b", "a", "b"}));
  EXPECT_NE(tuningDigest({"a", "b"}), tuningDigest({"a"}));
  EXPECT_NE(tuningDigest({"a", "b"}), tuningDigest({"a", "c"}));
  EXPECT_EQ(tuningDigest({"a"}).size(), 16u);
}

TEST(TuningDigest, FollowsTheRecordsThatAreUsed) {
  const std::string lines = line("768x768", "m=8 n=48", "100.0us n=9") + line("768x768", "m=6 n=48", "90.0us n=9");
  auto digest = [](const std::string &text) { return tuningDigest(choose(text, key({768, 768})).records); };
  EXPECT_EQ(digest(lines), digest(lines + line("768x768", "m=4 n=48", "95.0us n=9"))) << "a slower one was added";
  EXPECT_EQ(digest(lines), digest(lines + line("64x64", "m=4 n=48", "1.0us n=9"))) << "another kernel was added";
  EXPECT_NE(digest(lines), digest(lines + line("768x768", "m=4 n=48", "85.0us n=9")));
  EXPECT_NE(digest(lines),
            digest(line("768x768", "m=8 n=48", "100.0us n=9") + line("768x768", "m=6 n=48", "89.0us n=9")));
}

} // namespace
} // namespace kiln
