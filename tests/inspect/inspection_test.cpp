// SPDX-License-Identifier: Apache-2.0
// Reading a manifest, predicting times, reading measured ones.
#include "compiler/inspect/Inspection.h"
#include "compiler/inspect/Page.h"
#include "compiler/inspect/Words.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace kiln {
namespace {

/// Two kernels, one of them in a stack of three layers; an arena buffer after 64 bytes of states.
const char *const manifest = R"({
  "name": "tiny", "parameters": 12,
  "entries": [{"name": "forward", "extents": [{"name": "rows", "min": 1, "max": 8}],
    "inputs": [{"name": "x", "type": "f32", "shape": ["rows", 4]}],
    "outputs": [{"name": "y", "type": "f32", "shape": ["rows", 4]}],
    "arena_bytes": {"fixed": 4096, "per_worker": 128}, "state_bytes": 64}],
  "weights": [{"name": "h.{}.w", "type": "f32", "shape": [4, 1], "copies": 3}],
  "targets": [{"target": "x86-64-v3", "packed_bytes": 192,
    "entries": [{"name": "forward", "plan_bytes": 320, "plan_lower_bound": 320,
      "steps": [
        {"kind": "kernel", "layer": "h.{}", "times": 3, "kernel": "linear_0", "operands": ["f32[rows, 4]"],
         "results": ["f32[rows, 4]"], "operations": 1000, "bytes_read": 60, "bytes_written": 40},
        {"kind": "kernel", "layer": "n", "times": 1, "kernel": "norm_1", "operands": [], "results": ["f32[rows, 4]"],
         "operations": 10, "bytes_read": 50, "bytes_written": 50},
        {"kind": "return", "layer": "forward", "times": 1}],
      "buffers": [{"offset": 0, "bytes": 256, "first": 0, "last": 1, "values": ["linear_0 ?x4xf32"]}]}],
    "kernels": [
      {"name": "linear_0", "symbol": "tiny_x86_64_v3_linear_0", "strategy": "contraction", "schedule": "m=4",
       "provenance": "exact", "gain": 1.25, "shape": "4", "bounds": "1..8", "layers": ["h.*"], "text_bytes": 700},
      {"name": "norm_1", "symbol": "tiny_x86_64_v3_norm_1", "strategy": "row_reduction", "schedule": "rows=1",
       "provenance": "default", "shape": "4", "bounds": "1..8", "layers": ["n"], "text_bytes": 300}],
    "weights": [{"name": "h.{}.w", "stored_type": "f16", "stored_bytes": 8}]}]})";

Inspection read(llvm::StringRef target = "") {
  llvm::Expected<Inspection> inspection = readManifest(manifest, "tiny.manifest.json", target);
  if (inspection)
    return *inspection;
  ADD_FAILURE() << llvm::toString(inspection.takeError());
  return {};
}

template <class T> std::string problem(llvm::Expected<T> result) {
  return result ? "" : llvm::toString(result.takeError());
}

TEST(Inspection, ReadsAManifest) {
  const Inspection tiny = read();
  ASSERT_EQ(tiny.entries.size(), 1u);
  const InspectedEntry &forward = tiny.entries[0];
  EXPECT_EQ(forward.inputs[0].type, "f32[rows, 4]");
  EXPECT_EQ(forward.planBytes, 256) << "after the states";
  EXPECT_EQ(forward.operations(), 3010);
  EXPECT_EQ(forward.bytes(), 400);
  EXPECT_EQ(tiny.weights[0].bytes, 24) << "of all copies";
  EXPECT_EQ(tiny.target, "x86-64-v3");
}

TEST(Inspection, RefusesWhatIsNoManifest) {
  EXPECT_NE(problem(readManifest("{}", "a.json")).find("\"a.json\" is no manifest of this version of Kiln: "),
            std::string::npos);
  EXPECT_NE(problem(readManifest("nothing", "a.json")).find("\"a.json\" is no manifest"), std::string::npos);
  EXPECT_EQ(problem(readManifest(manifest, "a.json", "cuda")), "\"a.json\" has no target \"cuda\"; it has: x86-64-v3");
}

/// Returns the manifest with the first `from` replaced.
std::string changed(llvm::StringRef from, llvm::StringRef to) {
  std::string text = manifest;
  return text.replace(text.find(from), from.size(), to);
}

TEST(Inspection, RefusesNumbersThatAreNone) {
  for (auto [from, to, words] :
       {std::tuple(R"("packed_bytes": 192)", R"("packed_bytes": -1)", "2^53 at manifest"),
        {R"("operations": 1000)", R"("operations": 1e999)", "1e30 at manifest"},
        {R"("plan_bytes": 320)", R"("plan_bytes": 8)", "entry forward: plan is too small; expected at least"},
        {R"("stored_bytes": 8)", R"("stored_bytes": 9007199254740992)",
         "weight h.{}.w: too large; expected at most 2^53 bytes, got 3 copies of"}})
    EXPECT_NE(problem(readManifest(changed(from, to), "a.json")).find(words), std::string::npos)
        << problem(readManifest(changed(from, to), "a.json"));
}

// The first is bound by operations (1000 at 1e3 per second), the second by memory (100 at 1e2).
TEST(Inspection, PredictsTheLongerOfOperationsAndMemory) {
  Inspection tiny = read();
  predictTimes(tiny, {1e3, 1e2, "given"});
  EXPECT_DOUBLE_EQ(*tiny.entries[0].steps[0].seconds, 3.0);
  EXPECT_DOUBLE_EQ(*tiny.entries[0].steps[1].seconds, 1.0);
  EXPECT_DOUBLE_EQ(tiny.entries[0].steps[0].share, 0.75);
  EXPECT_FALSE(tiny.entries[0].isMeasured);
}

TEST(Inspection, TakesMeasuredTimes) {
  Inspection tiny = read();
  predictTimes(tiny, {1e3, 1e2, "given"});
  EXPECT_FALSE(takeTimes(tiny, R"({"kernels": [{"entry": "forward", "name": "linear_0", "seconds": 0.1},
                                               {"entry": "forward", "name": "norm_1", "seconds": 0.4}]})",
                         "times.json"));
  EXPECT_DOUBLE_EQ(tiny.entries[0].seconds(), 0.5);
  EXPECT_DOUBLE_EQ(tiny.entries[0].steps[1].share, 0.8);
  EXPECT_TRUE(tiny.entries[0].isMeasured);
  EXPECT_NE(printWords(tiny).find("measured"), std::string::npos);
}

TEST(Inspection, RefusesTimesThatDoNotFit) {
  auto refuse = [](const char *times) {
    Inspection tiny = read();
    return llvm::toString(takeTimes(tiny, times, "t.json"));
  };
  EXPECT_EQ(refuse(R"({"kernels": [{"entry": "back", "name": "linear_0", "seconds": 1}]})"),
            "\"t.json\": the library has no entry \"back\"; nearest: forward");
  EXPECT_EQ(refuse(R"({"kernels": [{"entry": "forward", "name": "linear_7", "seconds": 1}]})"),
            "\"t.json\": entry \"forward\" calls no kernel \"linear_7\"; nearest: linear_0, norm_1");
  EXPECT_EQ(
      refuse(R"({"kernels": [{"entry": "forward", "name": "linear_0", "seconds": 1}]})"),
      "\"t.json\": kernel without a time; expected one for each kernel of entry \"forward\", got none for \"norm_1\"");
  EXPECT_NE(refuse("[]").find("\"t.json\" is no table of times: "), std::string::npos);
}

// The dimensions at which a table was measured are printed, and the time of a call, which is longer than its kernels.
TEST(Inspection, TakesExtentsOfTimes) {
  const char *times = R"({"entries": [{"name": "forward", "extents": "rows=3", "seconds": 0.7}],
                          "kernels": [{"entry": "forward", "name": "linear_0", "seconds": 0.1},
                                      {"entry": "forward", "name": "norm_1", "seconds": 0.4}]})";
  llvm::Expected<std::map<std::string, int64_t>> extents = extentsOfTimes(times, "t.json");
  ASSERT_TRUE(bool(extents)) << llvm::toString(extents.takeError());
  EXPECT_EQ(*extents, (std::map<std::string, int64_t>{{"rows", 3}}));
  Inspection tiny = read();
  ASSERT_FALSE(takeTimes(tiny, times, "t.json"));
  EXPECT_NE(printWords(tiny).find(
                "  a call at the largest extents: 3.01 kFLOP, 400 B read and written, 700 ms measured at rows=3\n"),
            std::string::npos)
      << printWords(tiny);
  EXPECT_DOUBLE_EQ(tiny.entries[0].steps[1].share, 0.8) << "of the time in kernels";
  tiny.entries[0].listedAt = "rows=3"; // as for a spec, whose steps are listed at these dimensions
  EXPECT_NE(printWords(tiny).find("  a call at rows=3: 3.01 kFLOP, 400 B read and written, 700 ms measured\n"),
            std::string::npos)
      << printWords(tiny);
  const std::pair<const char *, const char *> wrong[] = {
      {R"({"entries": [{"name": "a", "extents": "rows"}], "kernels": []})",
       "\"t.json\": dimensions of entry \"a\": wrong form; expected NAME=VALUE, got \"rows\""},
      {R"({"entries": [{"name": "a", "extents": "rows=2"}, {"name": "b", "extents": "rows=4"}], "kernels": []})",
       "\"t.json\": dimension \"rows\" of entry \"b\": several sizes; expected 2 as of others, got 4"},
  };
  for (const auto &[text, words] : wrong)
    EXPECT_EQ(llvm::toString(extentsOfTimes(text, "t.json").takeError()), words);
}

TEST(Inspection, SaysItInWords) {
  Inspection tiny = read();
  predictTimes(tiny, {1e3, 1e2, "given"});
  const std::string text = printWords(tiny);
  for (const char *words :
       {"tiny: 12 parameters, 192 B of packed weights; for x86-64-v3\n",
        "predictions for x86-64-v3: 1 kFLOP/s, 100 B/s copied, given\n", "forward(x f32[rows, 4]) -> y f32[rows, 4]\n",
        "  rows: 1 to 8\n", "memory plan 256 B, lower bound 256 B, buffers 1; states 64 B\n",
        "  a call at the largest extents: 3.01 kFLOP, 400 B read and written, 4 s predicted\n", "75.0 %  3 s  linear_0",
        "100.0 %  24 B  h.{}.w f32[4, 1] x 3 as f16\n", "2, 1000 B of code, symbols tiny_x86_64_v3_NAME\n",
        "    schedules: 1 of 2 measured\n", "m=4; exact, 1.25 times as fast as the default\n"})
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
  llvm::Expected<Inspection> slower = readManifest(changed(R"("gain": 1.25)", R"("gain": 1, "loss": 0.021)"), "a.json");
  ASSERT_TRUE(bool(slower)) << llvm::toString(slower.takeError());
  EXPECT_NE(printWords(*slower).find("m=4; exact, loss 2.1 %\n"), std::string::npos) << printWords(*slower);
}

// Without rates and measurements no times are printed.
TEST(Inspection, PredictsNothingForAMachineThatIsNotThere) {
  const std::string text = printWords(read());
  EXPECT_NE(text.find("no predictions"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '%'), 1) << "the share of the weight alone\n" << text;
}

// The contents of a script element must not end it.
TEST(Page, HoldsNamesThatLookLikeTags) {
  Inspection tiny = read();
  tiny.weights[0].name = "</script><b>";
  tiny.name = "<i>/* script */";
  const std::string page = printPage(tiny);
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cb>"), std::string::npos);
  EXPECT_NE(page.find("<title>&lt;i&gt;/* script */"), std::string::npos);
  EXPECT_NE(page.find("\"name\":\"\\u003ci>/* script */\""), std::string::npos);
  for (const char *mark : {"/* style */", "/* model */", "<!-- title -->"})
    EXPECT_EQ(page.find(mark), std::string::npos) << mark;
}

} // namespace
} // namespace kiln
