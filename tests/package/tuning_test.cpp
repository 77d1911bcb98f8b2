// SPDX-License-Identifier: Apache-2.0
// Tuning files in a build: which schedules are used, what is reported, and when the build is refused.
#include "command.h"

#include <regex>
#include <set>
#include <sstream>
#include <vector>

using namespace kiln::testing;

namespace {

const std::string pairProgram = PAIR_GENERATOR;
const std::string machine = KILN_V2 "/c2/l1:32K/l2:1M/l3:32M";

/// A kernel of the manifest.
struct ManifestKernel {
  std::map<std::string, std::string> members;
  /// Returns a line of a tuning file, measured at the largest extents.
  std::string line(const std::string &point, const std::string &result) const {
    std::string extents = std::regex_replace(members.at("bounds"), std::regex("[0-9]+\\.\\."), "");
    return members.at("strategy") + " " + members.at("structure") + " " + members.at("shape") + " " +
           members.at("bounds") + " at=" + extents + " " + machine + " threads=1 | " + point + " | " + result + "\n";
  }
};

std::vector<ManifestKernel> kernels(const std::string &options = "") {
  Result result = run(pairProgram + " inspect --target " KILN_V2 " --manifest " + options);
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
    ASSERT_GE(all.size(), 3u); // in addition to shape-specialised variants for few rows
    for (const ManifestKernel &kernel : all)
      ASSERT_EQ(kernel.members.at("provenance"), "default");
  }

  /// Writes a file with these lines.
  std::string write(const std::string &lines) {
    const fs::path path = folder.path / ("file" + std::to_string(files++) + ".tuning");
    std::ofstream(path) << "kiln tuning 1\n" << lines;
    return path;
  }

  /// Returns the kernel of that number, for all rows.
  const ManifestKernel &kernel(int number) const {
    for (const ManifestKernel &kernel : all)
      if (std::regex_match(kernel.members.at("symbol"), std::regex("pair_" KILN_V2_SYMBOL "_[a-z_]+_" +
                                                                   std::to_string(number) + "_(up|down|cycle)")))
        return kernel;
    ADD_FAILURE() << "there is no kernel " << number;
    return all.front();
  }

  /// Returns measurements of each kernel at its default configuration, and of kernel 0 at another configuration that is
  /// faster.
  std::string lines(const std::string &fastest = "9.000us n=5") {
    std::string text;
    for (const ManifestKernel &kernel : all)
      text += kernel.line(kernel.members.at("schedule"), "10.00us n=5 default");
    return text + kernel(0).line(changed(), fastest);
  }
  /// Returns the default configuration of kernel 0 with another number of rows in its register tile.
  std::string changed(int rows = 3) const {
    const std::string point = kernel(0).members.at("schedule");
    const std::string other = std::regex_replace(point, std::regex("\\bm=[0-9]+"), "m=" + std::to_string(rows));
    EXPECT_NE(other, point);
    return other;
  }

  Result compile(const std::string &options) {
    return run(pairProgram + " compile --target " KILN_V2 " -o " + (folder.path / "out").string() + " " + options);
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
    EXPECT_EQ(tuned[i].members["loss"], "0");
    EXPECT_EQ(tuned[i].members["structure"], all[i].members["structure"]);
    const bool isChanged = tuned[i].members["symbol"] == kernel(0).members.at("symbol");
    EXPECT_EQ(tuned[i].members["schedule"], isChanged ? changed() : all[i].members["schedule"]);
  }
  Result inspect = run(pairProgram + " inspect --target " KILN_V2 " --schedule --tuning " + file);
  EXPECT_NE(inspect.text.find(changed() + "  exact  "), std::string::npos) << inspect.text;
}

TEST_F(Tuning, RequiredOfEveryKernel) {
  Result complete = compile("--require-tuned --tuning " + write(lines()));
  EXPECT_EQ(complete.status, 0) << complete.text;

  const std::string some =
      write(kernel(0).line(changed(), "9.000us n=5") + kernel(2).line(kernel(2).members.at("schedule"), "crashed"));
  Result partial = compile("--require-tuned --threads 2 --tuning " + some);
  EXPECT_EQ(partial.status, 1);
  EXPECT_NE(partial.text.find("error: tuning file \"" + some +
                              "\": kernels without a measured schedule; expected one for every kernel, got none for " +
                              std::to_string(all.size()) + ":\n  " KILN_V2 " linear_tanh_0_up: contraction " +
                              kernel(0).members.at("structure") + " 6x10 1..20, transferred from 1 thread\n"),
            std::string::npos)
      << partial.text << "threads that were not measured";
  partial = compile("--require-tuned --tuning " + some);
  EXPECT_NE(partial.text.find(", got none for " + std::to_string(all.size() - 1) + ":\n"), std::string::npos)
      << partial.text;
  EXPECT_NE(partial.text.find("\n  " KILN_V2 " linear_1_down: contraction"), std::string::npos) << partial.text;
  EXPECT_EQ(partial.text.find("\n  " KILN_V2 " linear_tanh_0_up: "), std::string::npos) << partial.text;
  EXPECT_NE(partial.text.find("\n  " KILN_V2 " softmax_2_cycle: row_reduction"), std::string::npos) << partial.text;
  EXPECT_NE(partial.text.find("\nmeasure them with:\n  " + pairProgram + " tune --tuning " + some +
                              " --target " KILN_V2 " --extent rows=20 --kernel '^(linear_1_down|softmax_2_cycle)$'\n"),
            std::string::npos)
      << partial.text;
  EXPECT_EQ(compile("--tuning " + some).status, 0) << "without the requirement it is a library all the same";
}

/// Returns the commands that an error suggests.
std::vector<std::string> advised(const std::string &error) {
  const std::string before = " with:\n";
  std::vector<std::string> commands;
  std::istringstream lines(error.substr(std::min(error.size(), error.find(before) + before.size())));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  "))
      commands.push_back(line.substr(2));
  return commands;
}

// The commands that the error suggests measure what is missing, and no more.
TEST_F(Tuning, AdviceIsEnough) {
  const std::string line = kernel(0).line(changed(), "9.000us n=5");
  const std::string file = write(std::regex_replace(line, std::regex("at=20 (.*) threads=1"), "at=7 $1 threads=2"));
  const std::string options = "--require-tuned --threads 1 --tuning " + file;
  const std::vector<std::string> commands = advised(compile(options).text);
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands[0], pairProgram + " tune --tuning " + file + " --target " KILN_V2 " --threads 1 --extent rows=7");
  for (const std::string &command : commands) {
    Result measured = run(command + " --budget 1s");
    EXPECT_EQ(measured.status, 0) << command << "\n" << measured.text;
  }
  Result complete = compile(options);
  EXPECT_EQ(complete.status, 0) << complete.text;
}

// Shape-specialised variants for few rows are measured at other extents than their kernels: each kernel is in one of
// the commands.
TEST_F(Tuning, AdviceCoversVariantsForSkinnyGemms) {
  const std::string bert = BERT_BASE_GENERATOR, file = write("");
  const std::string error =
      run(bert + " compile --target " KILN_V2 " --require-tuned --tuning " + file + " -o " + folder.path.string()).text;
  std::multiset<std::string> missing, named;
  const std::regex listed("\n  " KILN_V2 " ([A-Za-z0-9_]+): ");
  for (std::sregex_iterator at(error.begin(), error.end(), listed), end; at != end; ++at)
    missing.insert((*at)[1]);
  const std::vector<std::string> commands = advised(error);
  ASSERT_GE(commands.size(), 3u) << error;
  EXPECT_NE(commands[0].find(" --target " KILN_V2 " --extent batch=8 --extent tokens=512 --kernel "),
            std::string::npos);
  const std::regex name("[A-Za-z0-9_]+(?=[|)])"); // names in --kernel '^(one|another)$'
  for (const std::string &command : commands) {
    for (std::sregex_iterator at(command.begin(), command.end(), name), end; at != end; ++at)
      named.insert(at->str());
    // The tuner accepts the extents, among them a single row.
    const std::string extents =
        command.substr(command.find(" --extent"), command.find(" --kernel") - command.find(" --extent"));
    Result coverage = run(bert + " tune coverage --target " KILN_V2 " --at-least 0 --tuning " + file + extents);
    EXPECT_EQ(coverage.status, 0) << extents << coverage.text;
  }
  EXPECT_NE(commands.back().find(" --extent batch=1 --extent tokens=1 "), std::string::npos) << commands.back();
  EXPECT_GE(missing.size(), 10u) << error;
  EXPECT_EQ(named, missing);
}

// An advised command measures the kernels of the build that advises it.
TEST_F(Tuning, AdviceRepeatsTheOptionsOfKernels) {
  const std::string file = write(""), absent = (folder.path / "absent.tuning").string();
  for (const std::string option : {"", " --batch-invariant"}) {
    Result none = run(pairProgram + " tune coverage --target " KILN_V2 " --tuning " + absent + option);
    EXPECT_NE(none.text.find(" tune" + option + " --tuning " + absent + "\" makes it"), std::string::npos) << none.text;
    Result missing = compile("--require-tuned --tuning " + file + option);
    EXPECT_NE(missing.text.find(" tune" + option + " --tuning "), std::string::npos) << missing.text;
  }
}

// The digest depends on exactly the records that affect the code.
TEST_F(Tuning, DigestFollowsTheRecordsUsed) {
  ASSERT_EQ(compile("").status, 0);
  EXPECT_EQ(digest(), "none");
  const std::string untuned = readFile(folder.path / "out/libpair.a");
  ASSERT_EQ(compile("--tuning " + write(lines())).status, 0);
  const std::string first = digest(), archive = readFile(folder.path / "out/libpair.a");
  EXPECT_TRUE(std::regex_match(first, std::regex("[0-9a-f]{16}"))) << first;
  EXPECT_NE(archive, untuned);
  ASSERT_EQ(compile("--tuning " + write(lines() + kernel(0).line(changed(2), "99.00us n=5"))).status, 0);
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
      {"--tuning " + bad,
       "error: " + bad + ":2: measurement: wrong number of parts; expected kernel, schedule and result"},
      {"--require-tuned", "error: --require-tuned: no tuning file; name one with --tuning"},
      {"--machine c2", "error: --machine: no tuning file; expected one that names the machine, with --tuning"},
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

// The subcommands of `tune` that do not measure.

TEST_F(Tuning, CoverageIsATableAndAStatus) {
  const std::string some = kernel(0).line(changed(), "9.000us n=5");
  const std::string count = std::to_string(all.size());
  const std::string command = pairProgram + " tune coverage --target " KILN_V2 " --tuning ";
  Result whole = run(command + write(lines()));
  EXPECT_EQ(whole.status, 0) << whole.text;
  EXPECT_NE(whole.text.find("measured: " + count + " of " + count + " kernels, 100.0 % of the work\n"),
            std::string::npos)
      << whole.text;
  Result part = run(command + write(some));
  EXPECT_EQ(part.status, 1);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(part.text, match,
                                std::regex("measured: 1 of " + count + " kernels, ([0-9.]+) % of the work\n")))
      << part.text;
  const double percent = std::stod(match[1]);
  EXPECT_GT(percent, 60) << "both entries call it";
  EXPECT_LT(percent, 90);
  EXPECT_TRUE(std::regex_search(
      part.text, std::regex(KILN_V2 " +linear_tanh_0_up +contraction +6x10 1\\.\\.20 +[0-9.]+ %  exact\n")))
      << part.text;
  EXPECT_TRUE(
      std::regex_search(part.text, std::regex("softmax_2_cycle +row_reduction +6 1\\.\\.20 +[0-9.]+ %  default\n")))
      << part.text;
  EXPECT_EQ(run(command + write(some) + " --at-least 60").status, 0);
  EXPECT_EQ(run(command + write(some) + " --at-least 90").status, 1);
  EXPECT_EQ(run(command + write("")).status, 1);
  EXPECT_EQ(run(command + write(some) + " --extent rows=1").status, 1);
  Result outside = run(command + write(some) + " --extent rows=99");
  EXPECT_EQ(outside.status, 1);
  EXPECT_TRUE(std::regex_search(outside.text, std::regex("error: .*rows.*99"))) << outside.text;
}

TEST_F(Tuning, VerifyFindsWhatIsWrong) {
  const std::string count = std::to_string(all.size() + 1);
  const std::string command = pairProgram + " tune verify --tuning ";
  std::string good = write(lines());
  ASSERT_EQ(run(KILN_PROGRAM " tune merge " + good + " -o " + good).status, 0);
  Result result = run(command + good);
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(result.text, good + ": " + count + " measurements, " + count + " of this model\n");

  std::string stranger = kernel(0).line(changed(), "9.000us n=5");
  stranger = std::regex_replace(stranger, std::regex(kernel(0).members.at("structure")), "00000000deadbeef");
  const std::string illegal = kernel(0).line(changed(77), "9.000us n=5");
  const std::string bad = write(kernel(2).line(kernel(2).members.at("schedule"), "9.000us n=5") + illegal + stranger);
  result = run(command + bad);
  EXPECT_EQ(result.status, 1);
  for (const std::string &words :
       {"error: " + bad + ": contraction " + kernel(0).members.at("structure"),
        std::string("schedule parameter \"m\": unknown value; expected one of "),
        "error: " + bad + ": lines are not sorted, or duplicated\n",
        "warning: " + bad +
            ": the model has no kernel contraction 00000000deadbeef 6x10 1..20 for " KILN_V2 " (1 line)\n"})
    EXPECT_NE(result.text.find(words), std::string::npos) << words << "\n is not in\n" << result.text;

  result = run(command + bad + " --fix");
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.text.find(bad + ": 2 of 3 measurements kept\n"), std::string::npos) << result.text;
  EXPECT_EQ(run(command + bad).status, 0) << "only warnings are left";
  result = run(command + bad + " --fix --prune");
  EXPECT_NE(result.text.find(bad + ": 1 of 2 measurements kept\n"), std::string::npos) << result.text;
  EXPECT_EQ(run(command + bad).text, bad + ": 1 measurements, 1 of this model\n");
}

TEST_F(Tuning, MergeNeedsNoSpec) {
  const std::string a = write(lines()), b = write(lines("8.000us n=6")), c = (folder.path / "both.tuning").string();
  Result result = run(KILN_PROGRAM " tune merge " + a + " " + b + " -o " + c);
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(result.text, c + ": " + std::to_string(all.size() + 1) + " measurements\n");
  EXPECT_NE(readFile(c).find("| 8.000us n=6\n"), std::string::npos);
  EXPECT_EQ(readFile(c).find("| 9.000us n=5\n"), std::string::npos);
  const std::string first = readFile(c);
  EXPECT_EQ(run(pairProgram + " tune merge " + b + " " + a + " -o " + c).status, 0);
  EXPECT_EQ(readFile(c), first) << "the sequence is of no matter";
  const std::pair<std::string, std::string> cases[] = {
      {"", "files is required"},
      {a, "--output is required"},
      {"/nonexistent/x.tuning -o " + c,
       "error: cannot read the tuning file \"/nonexistent/x.tuning\": No such file or directory"},
      {a + " -o /nonexistent/x.tuning", "error: cannot write \"/nonexistent/x.tuning\": No such file or directory"},
  };
  for (const auto &[arguments, words] : cases) {
    result = run(KILN_PROGRAM " tune merge " + arguments);
    EXPECT_NE(result.status, 0);
    EXPECT_LT(result.status, 128);
    EXPECT_NE(result.text.find(words), std::string::npos) << result.text;
  }
}

TEST_F(Tuning, KilnPassesSubcommandsOn) {
  const std::string spec = PACKAGE_FOLDER "/pair.cpp";
  Result result = run(KILN_PROGRAM " tune coverage " + spec + " --target " KILN_V2 " --tuning " + write(lines()));
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_NE(result.text.find("100.0 % of the work"), std::string::npos) << result.text;
  EXPECT_NE(run(KILN_PROGRAM " tune").text.find("spec is required"), std::string::npos);
  EXPECT_NE(run(KILN_PROGRAM " tune coverage").text.find("spec is required"), std::string::npos);
  const std::string empty = write("");
  result = run(KILN_PROGRAM " compile " + spec + " --target " KILN_V2 " --require-tuned --tuning " + empty);
  EXPECT_NE(result.text.find("\nmeasure them with:\n  kiln tune '" + spec + "' --tuning " + empty +
                             " --target " KILN_V2 " --extent rows=20"),
            std::string::npos)
      << result.text;
}

} // namespace
