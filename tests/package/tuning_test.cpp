// SPDX-License-Identifier: Apache-2.0
// Tuning files as a build uses them: which schedules it takes, what it says about them, and when it refuses.
#include "command.h"

#include <regex>
#include <vector>

using namespace kiln::testing;

namespace {

const std::string pairProgram = PAIR_GENERATOR;
const std::string machine = "x86-64-v2/c2/l1:32K/l2:1M/l3:32M";

/// What the manifest says of a kernel.
struct ManifestKernel {
  std::map<std::string, std::string> members;
  /// A line of a tuning file, measured at the largest extents.
  std::string line(const std::string &point, const std::string &result) const {
    std::string extents = std::regex_replace(members.at("bounds"), std::regex("[0-9]+\\.\\."), "");
    return members.at("strategy") + " " + members.at("structure") + " " + members.at("shape") + " " +
           members.at("bounds") + " at=" + extents + " " + machine + " threads=1 | " + point + " | " + result + "\n";
  }
};

std::vector<ManifestKernel> kernels(const std::string &options = "") {
  Result result = run(pairProgram + " inspect --target x86-64-v2 --manifest " + options);
  EXPECT_EQ(result.status, 0) << result.text;
  std::vector<ManifestKernel> found;
  const std::regex object("\\{[^{}]*\"strategy\"[^{}]*\\}"), member("\"([a-z_]+)\": \"?([^\",\n]*)\"?");
  for (std::sregex_iterator at(result.text.begin(), result.text.end(), object), end; at != end; ++at) {
    const std::string text = at->str();
    ManifestKernel &kernel = found.emplace_back();
    for (std::sregex_iterator m(text.begin(), text.end(), member); m != end; ++m)
      kernel.members[(*m)[1]] = (*m)[2];
  }
  return found;
}

class Tuning : public ::testing::Test {
protected:
  void SetUp() override {
    all = kernels();
    ASSERT_EQ(all.size(), 3u);
    for (const ManifestKernel &kernel : all)
      ASSERT_EQ(kernel.members.at("provenance"), "default");
  }

  /// A file with these lines.
  std::string write(const std::string &lines) {
    const fs::path path = folder.path / ("file" + std::to_string(files++) + ".tuning");
    std::ofstream(path) << "kiln tuning 1\n" << lines;
    return path;
  }

  /// Each kernel measured at its default, but `slower` of the first, and 6x10's m=4 faster.
  std::string lines(const std::string &fastest = "9.000us n=5") {
    std::string text;
    for (const ManifestKernel &kernel : all)
      text += kernel.line(kernel.members.at("schedule"), "10.00us n=5 default");
    return text + all[0].line(changed(), fastest);
  }
  std::string changed() const {
    return std::regex_replace(all[0].members.at("schedule"), std::regex(" m=[0-9]+"), " m=4");
  }

  Result compile(const std::string &options) {
    return run(pairProgram + " compile --target x86-64-v2 -o " + (folder.path / "out").string() + " " + options);
  }
  std::string digest() {
    const std::string header = readFile(folder.path / "out/pair.h");
    std::smatch match;
    return std::regex_search(header, match, std::regex("#define PAIR_TUNING_DIGEST \"([0-9a-z]+)\"")) ? match[1].str()
                                                                                                      : "no digest";
  }

  Folder folder;
  int files = 0;
  std::vector<ManifestKernel> all;
};

TEST_F(Tuning, DecidesTheSchedules) {
  const std::string file = write(lines());
  std::vector<ManifestKernel> tuned = kernels("--tuning " + file);
  ASSERT_EQ(tuned.size(), all.size());
  for (size_t i = 0; i < tuned.size(); ++i) {
    EXPECT_EQ(tuned[i].members["provenance"], "exact");
    EXPECT_EQ(tuned[i].members["predicted_loss"], "0");
    EXPECT_EQ(tuned[i].members["structure"], all[i].members["structure"]);
    EXPECT_EQ(tuned[i].members["schedule"], i == 0 ? changed() : all[i].members["schedule"]);
  }
  Result inspect = run(pairProgram + " inspect --target x86-64-v2 --schedule --tuning " + file);
  EXPECT_NE(inspect.text.find(changed() + "  exact  "), std::string::npos) << inspect.text;
}

TEST_F(Tuning, RequiredOfEveryKernel) {
  Result complete = compile("--require-tuned --tuning " + write(lines()));
  EXPECT_EQ(complete.status, 0) << complete.text;

  const std::string some =
      write(all[0].line(changed(), "9.000us n=5") + all[2].line(all[2].members["schedule"], "crashed"));
  Result partial = compile("--require-tuned --threads 2 --tuning " + some);
  EXPECT_EQ(partial.status, 1);
  EXPECT_NE(partial.text.find("error: every kernel requires a measured schedule in the tuning file \"" + some +
                              "\", and 3 have none:\n"
                              "  x86-64-v2 kernel_0: contraction " +
                              all[0].members["structure"] + " 6x10 1..20, transferred from 6x10 1..20"),
            std::string::npos)
      << partial.text << "threads that were not measured";
  partial = compile("--require-tuned --tuning " + some);
  EXPECT_NE(partial.text.find("\", and 2 have none:\n  x86-64-v2 kernel_1: contraction"), std::string::npos)
      << partial.text;
  EXPECT_NE(partial.text.find("\n  x86-64-v2 kernel_2: row_reduction"), std::string::npos) << partial.text;
  EXPECT_NE(
      partial.text.find("\nmeasure them with:\n  " + pairProgram + " tune --tuning " + some + " --target x86-64-v2\n"),
      std::string::npos)
      << partial.text;
  EXPECT_EQ(compile("--tuning " + some).status, 0) << "without the requirement it is a library all the same";
}

// The digest tells apart what the code depends on, and nothing else.
TEST_F(Tuning, DigestFollowsTheRecordsUsed) {
  ASSERT_EQ(compile("").status, 0);
  EXPECT_EQ(digest(), "none");
  const std::string untuned = readFile(folder.path / "out/libpair.a");
  ASSERT_EQ(compile("--tuning " + write(lines())).status, 0);
  const std::string first = digest(), archive = readFile(folder.path / "out/libpair.a");
  EXPECT_TRUE(std::regex_match(first, std::regex("[0-9a-f]{16}"))) << first;
  EXPECT_NE(archive, untuned);
  ASSERT_EQ(
      compile("--tuning " + write(lines() + all[1].line("k_block=10 m=2 n=8 rows_block=0", "99.00us n=5"))).status, 0);
  EXPECT_EQ(digest(), first) << "a slower candidate more";
  EXPECT_EQ(readFile(folder.path / "out/libpair.a"), archive);
  ASSERT_EQ(compile("--tuning " + write(lines("8.000us n=5"))).status, 0);
  EXPECT_NE(digest(), first) << "another measurement of the one used";
  const std::string manifest = readFile(folder.path / "out/pair.manifest.json");
  EXPECT_NE(manifest.find("\"tuning_digest\": \"" + digest() + "\""), std::string::npos);
}

TEST_F(Tuning, BadFilesAreRefused) {
  const std::string bad = write("nonsense\n"), good = write(lines());
  const std::pair<std::string, std::string> cases[] = {
      {"--tuning /nonexistent/x.tuning",
       "error: cannot read the tuning file \"/nonexistent/x.tuning\": No such file or directory; \"" + pairProgram +
           " tune --tuning /nonexistent/x.tuning\" makes it"},
      {"--tuning /tmp", "error: cannot read the tuning file \"/tmp\": Is a directory"},
      {"--tuning " + bad, "error: " + bad + ":2: a measurement requires three parts"},
      {"--require-tuned",
       "error: measured schedules are required, but there is no tuning file; name one with --tuning"},
      {"--machine c2", "error: a machine requires a tuning file that names it, with --tuning"},
      {"--machine c3 --tuning " + good,
       "error: " + good + ": the tuning file has no machine \"c3\"; it has: " + machine},
      {"--threads -1", "--threads: Value -1 not in range"},
  };
  for (const auto &[options, words] : cases) {
    Result result = compile(options);
    EXPECT_NE(result.status, 0);
    EXPECT_LT(result.status, 128);
    EXPECT_NE(result.text.find(words), std::string::npos) << options << "\n" << result.text;
  }
}

} // namespace
