// SPDX-License-Identifier: Apache-2.0
// Tuning and the build: all commands that compile a spec find the measurements of `kiln tune` next to the spec, since
// all commands have the same list of targets; if measurements are missing, one line names the command that makes them.
#include "command.h"

#include <algorithm>
#include <regex>
#include <sstream>
#include <vector>

using namespace kiln::testing;

namespace {

const std::string kiln = KILN_PROGRAM, pair = PAIR_GENERATOR;
const std::string only = " --target " KILN_V2; // every test machine supports it

/// The spec is in the folder `specs`; commands run in the parent folder, so that "next to the spec" is not the current
/// folder.
class TunedBuild : public ::testing::Test {
protected:
  void SetUp() override {
    fs::create_directory(folder.path / "specs");
    fs::copy_file(PACKAGE_FOLDER "/pair.cpp", folder.path / "specs/net.cpp");
  }
  Result runHere(const std::string &command) { return run("cd '" + folder.path.string() + "' && " + command); }
  std::string path(const std::string &name) const { return (folder.path / name).string(); }

  Folder folder;
};

/// A kernel of the manifest.
struct Kernel {
  std::map<std::string, std::string> members;
};

std::vector<Kernel> kernelsOf(const std::string &manifest) {
  std::vector<Kernel> found;
  const std::regex object("\\{[^{}]*\"strategy\"[^{}]*\\}"), member("\"([a-z_]+)\": \"?([^\",\n]*)\"?");
  for (std::sregex_iterator at(manifest.begin(), manifest.end(), object), end; at != end; ++at) {
    const std::string text = at->str();
    Kernel &kernel = found.emplace_back();
    for (std::sregex_iterator m(text.begin(), text.end(), member); m != end; ++m)
      kernel.members[(*m)[1]] = (*m)[2];
  }
  return found;
}

/// A measurement of a tuning file.
struct Recorded {
  std::string schedule;
  double microseconds;
  bool isDefault;
};

/// Returns the measurements of each kernel, by strategy, structure, shape and bounds.
std::map<std::string, std::vector<Recorded>> recordedIn(const std::string &path) {
  std::map<std::string, std::vector<Recorded>> found;
  const std::regex form(R"((\S+ \S+ \S+ \S+) at=\S+ \S+ threads=1 \| (.*) \| ([0-9.e-]+)us n=[0-9]+(.*))");
  std::istringstream file(readFile(path));
  std::smatch parts;
  for (std::string line; std::getline(file, line);)
    if (std::regex_match(line, parts, form))
      found[parts[1]].push_back({parts[2], std::stod(parts[3]), parts[4].str().ends_with(" default")});
  return found;
}

/// Checks that each kernel has the schedule with the least time that the search measured, and the gain over its default
/// that follows from the recorded times, whatever they are.
void expectTheFastest(const std::vector<Kernel> &kernels, const std::string &path) {
  const std::map<std::string, std::vector<Recorded>> recorded = recordedIn(path);
  std::size_t searched = 0;
  for (const Kernel &kernel : kernels) {
    const auto &of = kernel.members;
    SCOPED_TRACE(of.at("symbol"));
    const auto found =
        recorded.find(of.at("strategy") + " " + of.at("structure") + " " + of.at("shape") + " " + of.at("bounds"));
    ASSERT_NE(found, recorded.end());
    double least = found->second.front().microseconds, chosen = 0, byDefault = 0;
    for (const Recorded &each : found->second) {
      least = std::min(least, each.microseconds);
      chosen = each.schedule == of.at("schedule") ? each.microseconds : chosen;
      byDefault = each.isDefault ? each.microseconds : byDefault;
    }
    EXPECT_EQ(chosen, least) << of.at("schedule");
    ASSERT_GT(byDefault, 0) << "the default is measured, too";
    EXPECT_NEAR(std::stod(of.at("gain")), byDefault / least, 1e-3); // the manifest has three decimals
    EXPECT_GE(std::stod(of.at("gain")), 1);
    searched += found->second.size() > 1;
  }
  EXPECT_GE(searched, 1u) << "no kernel was measured with another schedule than its default";
}

TEST_F(TunedBuild, TakesWhatTheTunerFound) {
  const std::string file = path("specs/pair.tuning");
  const Result untuned = runHere(kiln + " compile specs/net.cpp -o untuned" + only);
  ASSERT_EQ(untuned.status, 0) << untuned.text;
  std::smatch advice;
  ASSERT_TRUE(std::regex_search(untuned.text, advice,
                                std::regex("schedules: none of [0-9]+ kernels is measured; measure them with: (.*)\n")))
      << untuned.text;
  EXPECT_EQ(advice[1], "kiln tune 'specs/net.cpp'" + only);
  EXPECT_NE(readFile(path("untuned/pair.h")).find("#define PAIR_TUNING_DIGEST \"none\""), std::string::npos);
  const Result looked = runHere(kiln + " inspect untuned/libpair.a --flops 1e11 --bandwidth 1e10");
  EXPECT_NE(looked.text.find("schedules: none measured"), std::string::npos) << looked.text;

  // The suggested command, except for the program's path and the time budget. At one extent, so that times compare.
  const Result tuned = runHere(kiln + advice[1].str().substr(4) + " --budget 10s --threads 1 --extent rows=20");
  ASSERT_EQ(tuned.status, 0) << tuned.text;
  EXPECT_TRUE(fs::exists(file));
  EXPECT_FALSE(fs::exists(path("pair.tuning"))) << "it was written to the current folder";

  const Result built = runHere(kiln + " compile specs/net.cpp -o tuned" + only);
  ASSERT_EQ(built.status, 0) << built.text;
  EXPECT_TRUE(std::regex_search(built.text,
                                std::regex("schedules: all [0-9]+ kernels are measured in \"specs/pair.tuning\"\n")))
      << built.text;
  EXPECT_EQ(readFile(path("tuned/pair.h")).find("#define PAIR_TUNING_DIGEST \"none\""), std::string::npos);
  const std::vector<Kernel> kernels = kernelsOf(readFile(path("tuned/pair.manifest.json")));
  for (const Kernel &kernel : kernels)
    EXPECT_EQ(kernel.members.at("provenance"), "exact") << kernel.members.at("symbol");
  expectTheFastest(kernels, file);
  const Result bench = runHere(kiln + " bench specs/net.cpp --seconds 0.02 --threads 1" + only);
  EXPECT_NE(bench.text.find("kernels are measured in \"specs/pair.tuning\""), std::string::npos) << bench.text;
  const Result ignored = runHere(kiln + " compile specs/net.cpp -o ignored --no-tuning" + only);
  EXPECT_EQ(contents(path("ignored")), contents(path("untuned")));
}

// A schedule configuration other than the default, recorded as twice as fast: it is in the archive, and its gain is
// reported.
TEST_F(TunedBuild, HasTheTunedScheduleAndItsGain) {
  ASSERT_EQ(runHere(kiln + " compile specs/net.cpp -o untuned" + only).status, 0);
  const std::vector<Kernel> kernels = kernelsOf(readFile(path("untuned/pair.manifest.json")));
  std::ofstream file(path("specs/pair.tuning"));
  file << "kiln tuning 1\n";
  std::string changed, symbol;
  for (const Kernel &kernel : kernels) {
    const auto &of = kernel.members;
    const std::string extents = std::regex_replace(of.at("bounds"), std::regex("[0-9]+\\.\\."), "");
    const std::string begin = of.at("strategy") + " " + of.at("structure") + " " + of.at("shape") + " " +
                              of.at("bounds") + " at=" + extents + " " KILN_V2 "/c2/l1:32K/l2:1M/l3:32M threads=1 | ";
    file << begin << of.at("schedule") << " | 10.00us n=5 default\n";
    if (changed.empty() && of.at("strategy") == "contraction") {
      changed = std::regex_replace(of.at("schedule"), std::regex("\\bm=[0-9]+"), "m=3");
      symbol = of.at("symbol");
      ASSERT_NE(changed, of.at("schedule"));
      file << begin << changed << " | 5.000us n=5\n";
    }
  }
  file.close();
  ASSERT_EQ(runHere(kiln + " compile specs/net.cpp -o tuned" + only).status, 0);
  EXPECT_NE(readFile(path("tuned/libpair.a")), readFile(path("untuned/libpair.a")));
  for (const Kernel &kernel : kernelsOf(readFile(path("tuned/pair.manifest.json")))) {
    const bool isChanged = kernel.members.at("symbol") == symbol;
    EXPECT_EQ(kernel.members.at("provenance"), "exact");
    EXPECT_EQ(kernel.members.at("schedule") == changed, isChanged) << kernel.members.at("symbol");
    EXPECT_EQ(std::stod(kernel.members.at("gain")), isChanged ? 2 : 1);
  }
  const Result inspected = runHere(kiln + " inspect tuned/libpair.a --flops 1e11 --bandwidth 1e10");
  EXPECT_NE(inspected.text.find(changed + "; exact, 2.00 times as fast as the default"), std::string::npos)
      << inspected.text;
  EXPECT_TRUE(std::regex_search(inspected.text, std::regex("schedules: ([0-9]+) of \\1 measured\n"))) << inspected.text;
}

// A file that covers only some kernels, or none, is reported.
TEST_F(TunedBuild, SaysWhatIsMissingAndWhatMendsIt) {
  std::ofstream(path("other.tuning")) << "kiln tuning 1\n";
  for (const std::string &command :
       {std::string("compile specs/net.cpp -o out"),
        std::string("compile specs/net.cpp"
                    " --emit=asm"),
        std::string("inspect specs/net.cpp --schedule"), std::string("bench specs/net.cpp --seconds 0.02")}) {
    const Result result = runHere(kiln + " " + command + " --tuning other.tuning" + only);
    EXPECT_EQ(result.status, 0) << result.text;
    EXPECT_TRUE(std::regex_search(
        result.text, std::regex("schedules: none of [0-9]+ kernels is measured in \"other.tuning\"; measure them with: "
                                "kiln tune 'specs/net.cpp' --tuning other.tuning --target " KILN_V2 "\n")))
        << command << "\n"
        << result.text;
  }
  const Result coverage = runHere(kiln + " tune coverage specs/net.cpp --tuning other.tuning" + only);
  EXPECT_EQ(coverage.status, 1);
  EXPECT_NE(coverage.text.find(
                "measure the others with: kiln tune 'specs/net.cpp' --tuning other.tuning --target " KILN_V2 "\n"),
            std::string::npos)
      << coverage.text;
  // The flags of the C++ compiler are part of the command.
  const Result flags = runHere(kiln + " compile specs/net.cpp -o out" + only + " -- -DSOME='a b'");
  EXPECT_NE(flags.text.find("kiln tune 'specs/net.cpp' --target " KILN_V2 " -- '-DSOME=a b'\n"), std::string::npos)
      << flags.text;
}

// All subcommands have the same list of targets; `bench` uses the first one that runs here.
TEST_F(TunedBuild, AllSubcommandsHaveOneListOfTargets) {
  const std::string list = "[" KILN_DEFAULT_TARGETS "]";
  for (const char *subcommand : {"compile", "inspect", "pack", "scale", "bench", "tune", "tune coverage"}) {
    const Result help = run(pair + " " + subcommand + " --help");
    const std::size_t target = help.text.find("--target");
    ASSERT_NE(target, std::string::npos) << help.text;
    EXPECT_LT(help.text.find(list, target), help.text.find("\n  -", target)) << subcommand << "\n" << help.text;
  }
  const Result built = runHere(pair + " compile --no-tuning -o out");
  const std::string manifest = readFile(path("out/pair.manifest.json"));
  std::string targets;
  const std::regex target("\"target\": \"([^\"]*)\"");
  for (std::sregex_iterator at(manifest.begin(), manifest.end(), target), end; at != end; ++at)
    targets += (targets.empty() ? "" : ",") + (*at)[1].str();
  EXPECT_EQ(targets, KILN_DEFAULT_TARGETS);
}

} // namespace
