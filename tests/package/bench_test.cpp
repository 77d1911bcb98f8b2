// SPDX-License-Identifier: Apache-2.0
// `bench` measures entries and their kernels on this machine.
#include "command.h"

#include <nlohmann/json.hpp>
#include <regex>

namespace kiln::testing {
namespace {

const std::string program = std::string(PAIR_GENERATOR) + " bench ";

TEST(Bench, TimesEntriesAndKernels) {
  Folder folder;
  const fs::path json = folder.path / "times.json", trace = folder.path / "trace.json";
  const Result result = run(program + "--seconds 0.05 --threads 2 --extent rows=7 --json " + json.string() +
                            " --trace " + trace.string());
  ASSERT_EQ(result.status, 0) << result.text;
  EXPECT_NE(result.text.find("encode (rows=7): "), std::string::npos) << result.text;
  const nlohmann::json times = nlohmann::json::parse(readFile(json));
  EXPECT_EQ(times["model"], "pair");
  EXPECT_EQ(times["threads"], 2);
  ASSERT_EQ(times["entries"].size(), 2u);
  const nlohmann::json &encode = times["entries"][0], &cycle = times["entries"][1];
  EXPECT_EQ(encode["name"], "encode");
  EXPECT_GT(encode["seconds"], 0);
  EXPECT_EQ(cycle["name"], "cycle");
  ASSERT_EQ(times["kernels"].size(), 4u);
  const nlohmann::json &first = times["kernels"][0];
  EXPECT_EQ(first["entry"], "encode");
  EXPECT_EQ(first["name"], "linear_tanh_0_up");
  // x[7, 6], weight[10, 6], bias[10], code[7, 10]
  EXPECT_EQ(first["flops"], 2 * 7 * 6 * 10);
  EXPECT_GE(first["bytes"], 4 * (7 * 6 + 10 * 6 + 10 + 7 * 10));
  EXPECT_EQ(first["calls"], 1);
  EXPECT_FALSE(nlohmann::json::parse(readFile(trace))["traceEvents"].empty());
}

#ifdef TONE_GENERATOR
// The function that only a program has does nothing here.
TEST(Bench, TimesWhatIsAroundAFunctionOfTheProgram) {
  Folder folder;
  const fs::path json = folder.path / "times.json";
  const Result result = run(TONE_GENERATOR " bench --seconds 0.05 --json " + json.string());
  ASSERT_EQ(result.status, 0) << result.text;
  const nlohmann::json times = nlohmann::json::parse(readFile(json));
  bool hasFunction = false;
  for (const nlohmann::json &kernel : times["kernels"])
    hasFunction |= kernel["name"].get<std::string>().find("custom_biquad") != std::string::npos;
  EXPECT_TRUE(hasFunction) << times.dump();
}
#endif

// The sum of the kernels' times does not exceed that of the call, although calls are timed without tracing and kernels
// with it; and a small model uses one thread.
TEST(Bench, TimesOfSmallModelsAreOfOneThreadAndAddUp) {
  Folder folder;
  const fs::path json = folder.path / "times.json";
  const Result result = run(program + "--seconds 0.2 --json " + json.string());
  ASSERT_EQ(result.status, 0) << result.text;
  EXPECT_NE(result.text.find(", 1 thread, as calls are short (--threads for more)\n"), std::string::npos)
      << result.text;
  // Three significant digits of microseconds.
  EXPECT_TRUE(std::regex_search(result.text, std::regex("encode \\(rows=20\\): ([1-9]\\.[0-9]{2}|[1-9][0-9]\\.[0-9]|"
                                                        "[1-9][0-9]{2}|0\\.[0-9]{3}) us, ")))
      << result.text;
  EXPECT_TRUE(std::regex_search(result.text, std::regex("medians, without the overhead of tracing: [0-9]+ kernels, "
                                                        "[0-9.e-]+ ns each \\(a traced call: ")))
      << result.text;
  const nlohmann::json times = nlohmann::json::parse(readFile(json));
  EXPECT_EQ(times["threads"], 1);
  for (const nlohmann::json &entry : times["entries"]) {
    double sum = 0;
    for (const nlohmann::json &kernel : times["kernels"])
      if (kernel["entry"] == entry["name"]) {
        EXPECT_GT(kernel["seconds"], 0) << kernel;
        sum += kernel["seconds"].get<double>();
      }
    EXPECT_LE(sum, entry["seconds"].get<double>() * (1 + 1e-9)) << entry; // rounding of the sum
    EXPECT_GT(sum, 0.1 * entry["seconds"].get<double>()) << entry << ": kernels are most of a call";
  }
}

// `inspect` shows the measured calls at their extents, not at the largest ones.
TEST(Bench, InspectTakesItsExtents) {
  Folder folder;
  const std::string json = (folder.path / "times.json").string();
  ASSERT_EQ(run(program + "--seconds 0.05 --extent rows=7 --target " KILN_V2 " --json " + json).status, 0);
  const Result inspected =
      run(std::string(PAIR_GENERATOR) + " inspect --target " KILN_V2 " --flops 1e11 --bandwidth 1e10 --times " + json);
  ASSERT_EQ(inspected.status, 0) << inspected.text;
  // With 20 rows it would be 7.60 kFLOP.
  EXPECT_TRUE(std::regex_search(inspected.text, std::regex("  a call at rows=7: 2.66 kFLOP, [^\n]* measured\n")))
      << inspected.text;
}

TEST(Bench, RefusesWhatTheModelDoesNotHave) {
  const std::pair<std::string, std::string> cases[] = {
      {"--extent rows=21", "encode: rows is out of range; expected one in [1, 20], got 21"},
      {"--extent columns=2", "the model has no dimension \"columns\"; nearest: rows"},
      {"--extent rows", "--extent: wrong form; expected NAME=VALUE, got \"rows\""},
      {"--extent rows=1 rows=2", "--extent: several values of rows; expected one, got 2"},
      {"--entry encode --entry cycel", "the model has no entry \"cycel\" that can be timed; nearest: cycle, encode"},
      {"--entry decode", "the model has no entry \"decode\" that can be timed; nearest: encode, cycle"},
      {"--target wasm32", "this machine does not run wasm32"},
      {"--seconds 0.01 --json /nowhere/times.json", "cannot write \"/nowhere/times.json\""},
      {"--seconds 0.01 --trace /nowhere/trace.json", "cannot write \"/nowhere/trace.json\""},
  };
  for (const auto &[options, words] : cases) {
    const Result result = run(program + options);
    EXPECT_NE(result.status, 0) << options;
    EXPECT_NE(result.text.find(words), std::string::npos) << options << ": " << result.text;
  }
}

} // namespace
} // namespace kiln::testing
