// SPDX-License-Identifier: Apache-2.0
// The command `kiln` as a wrapper of generators: positions of options, help and version output, which C++ compiler
// builds a generator from a spec, and when it is not needed.
#include "command.h"
#include "kiln/runtime.h"

#include <algorithm>
#include <regex>
#include <sys/stat.h>
#include <vector>

using namespace kiln::testing;

namespace {

const std::string kiln = KILN_PROGRAM, pairSpec = PACKAGE_FOLDER "/pair.cpp", pairGenerator = PAIR_GENERATOR;
const std::string only = " --target " KILN_V2; // every test machine supports it

/// A folder with a spec that includes a header from another folder, a cache, and a compiler that counts its calls.
class Options : public ::testing::Test {
protected:
  void SetUp() override {
    fs::create_directory(folder.path / "headers");
    writeWidth(6);
    std::ofstream(folder.path / "net.cpp") << R"(
#include <kiln/generator.h>
#include "width.h"
struct Net : kiln::Model {
  kiln::Linear<width, OUTPUTS> fc{"fc"};
  constexpr auto forward(kiln::Tensor<kiln::f32, 3, width> x) const { return fc(x); }
};
KILN_MODEL(net, Net)
)";
    std::ofstream(folder.path / "counted") << "#!/bin/sh\necho \"$*\" >> '" << path("calls") << "'\nexec \"$@\"\n";
    fs::permissions(folder.path / "counted", fs::perms::owner_all);
  }
  void writeWidth(int width) {
    std::ofstream(folder.path / "headers/width.h") << "inline constexpr int width = " << width << ";\n";
  }
  std::string path(const std::string &name) const { return (folder.path / name).string(); }
  /// Runs a command in the folder, with its cache and its compiler.
  Result runHere(const std::string &command) {
    return run("cd '" + folder.path.string() + "' && env KILN_CACHE_DIR='" + path("cache") + "' CXX='" +
               path("counted") + " g++' " + command);
  }
  /// Returns the number of compiler calls since the last time.
  std::size_t calls() {
    const std::string text = readFile(path("calls"));
    fs::remove(path("calls"));
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  Folder folder;
};

TEST_F(Options, StandAnywhere) {
  const std::vector<std::string> commands{
      "compile '" + pairSpec + "' -o OUT" + only, "compile -o OUT '" + pairSpec + "'" + only,
      "compile" + only + " '" + pairSpec + "' -o OUT", "compile" + only + " -o OUT '" + pairSpec + "'",
      "compile --no-tuning --target=" KILN_V2 " -o OUT '" + pairSpec + "'"};
  std::map<std::string, std::string> first;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string out = path("out" + std::to_string(i));
    const Result result = runHere(kiln + " " + std::regex_replace(commands[i], std::regex("OUT"), out));
    ASSERT_EQ(result.status, 0) << commands[i] << "\n" << result.text;
    if (i == 0)
      first = contents(out);
    EXPECT_EQ(first.size(), 6u);
    EXPECT_EQ(contents(out), first) << commands[i];
  }
  const Result schedule = runHere(kiln + " inspect --schedule" + only + " '" + pairSpec + "'");
  EXPECT_NE(schedule.text.find("pair_" KILN_V2_SYMBOL "_linear_tanh_0_up  contraction"), std::string::npos)
      << schedule.text;
  const Result packed = runHere(kiln + " pack" + only + " --name pair '" + pairSpec + "' w.safetensors");
  EXPECT_NE(packed.text.find("cannot open weight file \"w.safetensors\""), std::string::npos) << packed.text;
  const Result coverage =
      runHere(kiln + " tune coverage --at-least 0" + only + " --tuning x.tuning '" + pairSpec + "'");
  EXPECT_NE(coverage.text.find("cannot read the tuning file \"x.tuning\""), std::string::npos) << coverage.text;
  const Result archive = runHere(kiln + " inspect --flops 1e11 --bandwidth 1e10 out0/libpair.a");
  EXPECT_NE(archive.text.find("pair: 136 parameters"), std::string::npos) << archive.text;
  const Result wrong = runHere(kiln + " compile --target x86-64-v9 '" + pairSpec + "'");
  EXPECT_NE(wrong.text.find("--target"), std::string::npos) << wrong.text;
  EXPECT_NE(wrong.status, 0);
  EXPECT_NE(runHere(kiln + " compile -o out").text.find("spec is required"), std::string::npos);
  EXPECT_NE(runHere(kiln + " scale").text.find("spec is required"), std::string::npos);
}

TEST_F(Options, HelpAndVersionAreEverywhere) {
  const std::string version = runHere(kiln + " --version").text;
  const std::string beginning =
      "kiln " KILN_TEST_VERSION "\nbinary interface " + std::to_string(KILN_ABI_VERSION) + "\n";
  EXPECT_EQ(version.substr(0, beginning.size()), beginning);
  EXPECT_TRUE(std::regex_match(version.substr(std::min(beginning.size(), version.size())),
                               std::regex(R"(LLVM 22(\.[0-9]+){2}\nHalide (14|19|21)(\.[0-9]+){2}\n)")))
      << version;
  for (const char *subcommand : {"", "compile", "inspect", "check", "scale", "pack", "bench", "tune", "tune coverage",
                                 "tune verify", "tune merge", "new"}) {
    SCOPED_TRACE(subcommand);
    const Result help = runHere(kiln + " " + subcommand + " --help");
    EXPECT_EQ(help.status, 0) << help.text;
    EXPECT_NE(help.text.find("-h,--help"), std::string::npos) << help.text;
    EXPECT_EQ(runHere(kiln + " " + subcommand + " --version").text, version);
    if (std::string(subcommand) != "new") {
      EXPECT_EQ(run(pairGenerator + " " + subcommand + " --version").text, version);
      EXPECT_EQ(run(pairGenerator + " " + subcommand + " --help").status, 0);
    }
  }
  EXPECT_NE(runHere(kiln + " compile --help").text.find("--max-arena-bytes"), std::string::npos);
  // The program that kiln_add_library calls is installed, too.
  const std::string diagnose = KILN_DIAGNOSE_PROGRAM;
  const Result help = run(diagnose + " --help");
  EXPECT_EQ(help.status, 0) << help.text;
  EXPECT_NE(help.text.find("-h,--help"), std::string::npos) << help.text;
  const Result said = run(diagnose + " --version");
  EXPECT_EQ(said.status, 0);
  EXPECT_EQ(said.text, version);
  EXPECT_EQ(run(diagnose).status, 2) << "no spec";
  EXPECT_EQ(calls(), 0u) << "a help needs no generator";
}

TEST_F(Options, TheVersionIsInWhatIsWritten) {
  ASSERT_EQ(run(pairGenerator + " compile --no-tuning -o '" + path("out") + "'" + only).status, 0);
  const std::string version = KILN_TEST_VERSION;
  EXPECT_NE(readFile(path("out/pair.manifest.json")).find("\"kiln_version\": \"" + version + "\""), std::string::npos);
  EXPECT_NE(readFile(path("out/pair.pc")).find("\nVersion: " + version + "\n"), std::string::npos);
  EXPECT_NE(readFile(path("out/pair.h")).find("written by Kiln " + version), std::string::npos);
  std::ofstream(path("program.c"))
      << "#include \"pair.h\"\n#include <stdio.h>\n"
         "_Static_assert(PAIR_KILN_VERSION_MAJOR == KILN_VERSION_MAJOR, \"\");\n"
         "int main(void) { printf(\"%s %s %d.%d.%d\\n\", KILN_VERSION, PAIR_KILN_VERSION,\n"
         "  PAIR_KILN_VERSION_MAJOR, PAIR_KILN_VERSION_MINOR, PAIR_KILN_VERSION_PATCH);\n"
         "  return 0; }\n";
  const Result said = run("cd '" + folder.path.string() +
                          "' && cc -std=c11 -Wall -Werror -Iout program.c -o program && "
                          "./program");
  EXPECT_EQ(said.text, version + " " + version + " " + version + "\n");
}

TEST_F(Options, FoldersAreMadeByTheUmask) {
  const auto rights = [&](const std::string &name) {
    struct stat known{};
    EXPECT_EQ(stat(path(name).c_str(), &known), 0) << name;
    return known.st_mode & 0777;
  };
  for (const auto &[umask, expected] : {std::pair("022", 0755u), {"027", 0750u}, {"077", 0700u}}) {
    const std::string out = std::string("out") + umask;
    const Result result = runHere(std::string("sh -c \"umask ") + umask + "; " + pairGenerator + " compile -o " + out +
                                  "/deep --dump-ir " + out + "/ir --cache-dir " + out + "/cache" + only + "\"");
    ASSERT_EQ(result.status, 0) << result.text;
    for (const char *inner : {"", "/deep", "/ir", "/cache"})
      EXPECT_EQ(rights(out + inner), expected) << umask << inner;
  }
}

TEST_F(Options, FlagsOfTheCompilerStandAfterTwoDashes) {
  const Result without = runHere(kiln + " compile net.cpp -o out" + only);
  EXPECT_NE(without.status, 0);
  EXPECT_NE(without.text.find("width.h"), std::string::npos) << without.text;
  const Result with = runHere(kiln + " compile net.cpp -o out" + only + " -- -Iheaders -DOUTPUTS=5");
  EXPECT_EQ(with.status, 0) << with.text;
  EXPECT_NE(with.text.find("out/libnet.a: 35 parameters"), std::string::npos) << with.text;
  const Result other = runHere(kiln + " compile net.cpp -o out" + only + " -- -I headers -D OUTPUTS=4");
  EXPECT_NE(other.text.find("out/libnet.a: 28 parameters"), std::string::npos) << other.text;
}

TEST_F(Options, WrongCommandsSayWhatIsExpected) {
  std::ofstream(path("w.safetensors")) << "weights";
  const std::string gcc = "env CXX='gcc-12' ";
  const std::vector<std::pair<std::string, std::string>> commands{
      {kiln + " check w.safetensors net.cpp",
       "spec \"w.safetensors\": no C++ source file; expected kiln check net.cpp w.safetensors"},
      {kiln + " compile w.safetensors",
       "spec \"w.safetensors\": no C++ source file; expected a name that ends in .cpp, .cc or .cxx"},
      {kiln + " compile .", "spec \".\": a folder; expected a C++ source file, such as ./spec.cpp"},
      {kiln + " compile none.cpp", "spec \"none.cpp\": not found; expected a C++ source file"},
      {kiln + " compile net.cpp -Iheaders",
       "option \"-Iheaders\": a flag of the C++ compiler; expected it after \"--\": "
       "kiln compile SPEC -- -Iheaders"},
      {kiln + " inspect -DOUTPUTS=5 net.cpp", "option \"-DOUTPUTS=5\": a flag of the C++ compiler; expected it after "
                                              "\"--\": kiln inspect SPEC -- -DOUTPUTS=5"},
      {gcc + kiln + " compile net.cpp", "CXX \"gcc-12\": a C compiler, which links no C++ program; expected a C++ "
                                        "compiler, such as g++"}};
  for (const auto &[command, words] : commands) {
    const Result result = runHere(command);
    EXPECT_EQ(result.status, 1) << command;
    EXPECT_EQ(result.text, "error: " + words + "\n") << command;
  }
  EXPECT_EQ(calls(), 0u);
}

// The precompiled header must not provide what the spec does not include.
TEST_F(Options, SpecsIncludeWhatTheyUse) {
  const std::string model = "struct Net : kiln::Model {\n"
                            "  constexpr auto forward(kiln::Tensor<kiln::f32, 3> x) const { return kiln::relu(x); }\n"
                            "};\n",
                    make = "KILN_MODEL(net, Net)\n";
  const std::string command = "compile net.cpp -o out" + only;
  const auto firstLine = [&](const std::string &spec) {
    std::ofstream(path("net.cpp")) << spec;
    const std::string said = runHere(kiln + " " + command).text;
    return said.substr(0, said.find('\n'));
  };
  const std::string undeclared = "error: KILN_MODEL: it is not declared; expected #include <kiln/generator.h>";
  EXPECT_EQ(firstLine("#include <kiln/dsl.h>\n" + model + make), "net.cpp:5: " + undeclared);
  EXPECT_NE(firstLine(model + make).find("net.cpp:1: error: "), std::string::npos);
  EXPECT_NE(firstLine(model + "#include <kiln/generator.h>\n" + make).find("net.cpp:1: error: "), std::string::npos);
  std::ofstream(path("model.h")) << "// A model.\n#pragma once\n\n#include \"kiln/dsl.h\"\n" << model;
  EXPECT_EQ(firstLine("#include \"model.h\"\n" + make), "net.cpp:2: " + undeclared);
  calls();
  EXPECT_NE(firstLine("#include \"model.h\"\n#include <kiln/generator.h>\n" + make).find("libnet.a"),
            std::string::npos);
  EXPECT_EQ(calls(), 3u) << "the language, the spec, the link";
}

// The compiler command has two words; and it is not called again for an unchanged spec.
TEST_F(Options, GeneratorsAreKept) {
  const std::string command = kiln + " compile net.cpp -o out" + only + " -- -Iheaders -DOUTPUTS=5";
  EXPECT_EQ(runHere(command).status, 0);
  EXPECT_EQ(calls(), 3u) << "the language, the spec, the link";
  Result again = runHere(command);
  EXPECT_EQ(again.status, 0) << again.text;
  EXPECT_NE(again.text.find(": 35 parameters"), std::string::npos) << again.text;
  EXPECT_EQ(calls(), 0u);
  ASSERT_EQ(run("cd '" + folder.path.string() + "' && touch headers/width.h net.cpp").status, 0);
  EXPECT_EQ(runHere(command).status, 0);
  EXPECT_EQ(calls(), 0u) << "nothing in them has changed";

  writeWidth(7);
  again = runHere(command);
  EXPECT_NE(again.text.find(": 40 parameters"), std::string::npos) << "a header that it includes\n" << again.text;
  EXPECT_EQ(calls(), 2u) << "the language is precompiled";
  writeWidth(6);
  again = runHere(command);
  EXPECT_NE(again.text.find(": 35 parameters"), std::string::npos) << again.text;
  EXPECT_EQ(calls(), 0u) << "what was there before is still kept";
  again = runHere(kiln + " compile net.cpp -o out" + only + " -- -Iheaders -DOUTPUTS=4");
  EXPECT_NE(again.text.find(": 28 parameters"), std::string::npos) << "other flags\n" << again.text;
  EXPECT_GE(calls(), 2u);
  again = runHere(kiln + " compile net.cpp -o out --no-cache" + only + " -- -Iheaders -DOUTPUTS=4");
  EXPECT_EQ(calls(), 2u) << "if it is asked not to look";

  // A broken spec is compiled each time, and is never cached.
  std::ofstream(folder.path / "net.cpp", std::ios::app) << "int broken = ;\n";
  for (int i = 0; i < 2; ++i) {
    const Result broken = runHere(command);
    EXPECT_NE(broken.status, 0);
    EXPECT_NE(broken.text.find("net.cpp:"), std::string::npos) << broken.text;
    EXPECT_EQ(calls(), 1u);
  }
  // An unwritable cache only costs time.
  const Result nowhere = run("cd '" + folder.path.string() + "' && env KILN_CACHE_DIR=/proc/nowhere " + kiln +
                             " compile '" + pairSpec + "' -o out" + only);
  EXPECT_EQ(nowhere.status, 0) << nowhere.text;
}

// A different compiler with the same name invalidates the cache.
TEST_F(Options, AnotherCompilerCompilesAnew) {
  const std::string command = kiln + " compile '" + pairSpec + "' -o out" + only;
  EXPECT_EQ(runHere(command).status, 0);
  calls();
  std::ofstream(folder.path / "counted", std::ios::app) << "# another version\n";
  EXPECT_EQ(runHere(command).status, 0);
  EXPECT_GE(calls(), 2u);
}

} // namespace
