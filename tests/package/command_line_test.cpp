// SPDX-License-Identifier: Apache-2.0
// The commands as a user types them: what they refuse, with the exit status and the words, and what they write.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct Result {
  int status;
  std::string text; // of both streams
};

/// Runs a command in the temporary folder.
Result run(const std::string &command) {
  std::FILE *pipe = popen(("cd " + ::testing::TempDir() + " && " + command + " 2>&1").c_str(), "r");
  Result result{-1, ""};
  std::array<char, 4096> block;
  while (std::size_t size = std::fread(block.data(), 1, block.size(), pipe))
    result.text.append(block.data(), size);
  int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string readFile(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A folder that goes when the test ends.
class Folder {
public:
  Folder() {
    std::string name = ::testing::TempDir() + "kiln-test-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

/// The files of a folder and what is in them.
std::map<std::string, std::string> contents(const fs::path &folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), folder)] = readFile(entry.path());
  return files;
}

const std::string kilnProgram = KILN_PROGRAM, pairProgram = PAIR_GENERATOR, takenProgram = TAKEN_GENERATOR,
                  sources = PACKAGE_FOLDER;

struct CommandCase {
  const char *name;
  std::string command;
  std::string message; // a regular expression found in what it prints
};

const CommandCase commandCases[] = {
    {"kiln alone", kilnProgram, "A subcommand is required"},
    {"unknown subcommand", kilnProgram + " bake x.cpp", "not expected: .*bake"},
    {"no spec", kilnProgram + " compile", "spec is required"},
    {"a spec that is not there", kilnProgram + " compile /nonexistent/spec.cpp",
     "error: there is no spec \"/nonexistent/spec.cpp\""},
    {"a folder as spec", kilnProgram + " compile /tmp", "error: there is no spec \"/tmp\""},
    {"a spec that breaks a rule", kilnProgram + " compile " + sources + "/broken.cpp",
     "fc: linear requires the input width to equal the weight"},
    {"a C++ compiler that is not there", "CXX=/nonexistent/c++ " + kilnProgram + " compile " + sources + "/pair.cpp",
     "error: the C\\+\\+ compiler \"/nonexistent/c\\+\\+\" cannot be started; set CXX"},
    {"no place for temporary files", "TMPDIR=/nonexistent " + kilnProgram + " compile " + sources + "/pair.cpp",
     "error: cannot make a temporary folder in \"/nonexistent\"; set TMPDIR"},
    {"generator alone", pairProgram, "A subcommand is required"},
    {"generator with an unknown subcommand", pairProgram + " bake", "not expected: .*bake"},
    {"unknown option", pairProgram + " compile --fast", "not expected: .*--fast"},
    {"unknown target", pairProgram + " compile --target x86-64-v9", "--target: .*x86-64-v9 not in \\{"},
    {"no target", pairProgram + " compile --target", "--target.* required"},
    {"unknown form", pairProgram + " compile --emit=wasm", "--emit: .*wasm"},
    {"a budget that is no number", pairProgram + " compile --max-text-bytes much", "--max-text-bytes"},
    {"a negative budget", pairProgram + " compile --max-arena-bytes -5", "--max-arena-bytes"},
    {"a name that begins with a digit", pairProgram + " compile --name 9lives",
     "error: a model's name must be an identifier in C and C\\+\\+, since it begins every symbol; got \"9lives\""},
    {"a name with a dash", pairProgram + " compile --name my-model", "must be an identifier.*got \"my-model\""},
    {"an empty name", pairProgram + " compile --name ''", "must be an identifier.*got \"\""},
    {"a keyword as name", pairProgram + " compile --name int", "must be an identifier.*got \"int\""},
    {"the run time's name", pairProgram + " compile --name kiln", "error: a model's name must not be \"kiln\""},
    {"Halide's name", pairProgram + " compile --name halide", "error: a model's name must not be \"halide\""},
    {"an entry of a taken name", takenProgram + " compile -o /tmp",
     "error: an entry must not be named \"create\": taken_create is a function of the run time"},
    {"an extent that is no identifier", SPACED_GENERATOR " compile -o /tmp",
     "error: an extent's name must be an identifier in C and C\\+\\+; got \"my rows\""},
    {"an input of a taken name", CALLING_GENERATOR " compile -o /tmp",
     "error: an extent, input or output must not be named \"call\": the generated functions have that parameter"},
    {"a folder that cannot be made", pairProgram + " compile --target x86-64-v2 -o /proc/nowhere",
     "error: cannot write \"/proc/nowhere/pair.h\": No such file or directory"},
    {"code above its budget", pairProgram + " compile --target x86-64-v2 -o /tmp/kiln-budget --max-text-bytes 1000",
     "error: the code of \"pair\" exceeds its budget: [0-9]+ bytes, at most 1000 allowed"},
    {"arena above its budget", pairProgram + " compile --target x86-64-v2 -o /tmp/kiln-budget --max-arena-bytes 64",
     "error: the arena of entry \"(encode|cycle)\" exceeds its budget: [0-9]+ bytes with one worker, at most 64 "
     "allowed"},
    {"inspect with an unknown target", pairProgram + " inspect --target arm64", "--target: .*arm64 not in \\{"},
    {"inspect with an option of compile", pairProgram + " inspect --emit=ir", "not expected: .*--emit"},
};

TEST(BadCommand, IsRefusedWithWords) {
  for (const CommandCase &wrong : commandCases) {
    SCOPED_TRACE(wrong.name);
    Result result = run(wrong.command);
    EXPECT_NE(result.status, 0);
    EXPECT_LT(result.status, 128) << "it crashed";
    EXPECT_TRUE(std::regex_search(result.text, std::regex(wrong.message))) << result.text;
  }
  EXPECT_FALSE(fs::exists("/tmp/kiln-budget")) << "a library above its budget was written";
}

// Two runs, of other folders and environments, give the same bytes.
TEST(Compile, IsDeterministic) {
  Folder a, b;
  const std::string command = pairProgram + " compile --target x86-64-v3,x86-64-v2 -o ";
  ASSERT_EQ(run(command + a.path.string()).status, 0);
  ASSERT_EQ(run("cd / && FOO=bar " + command + b.path.string()).status, 0);
  const auto first = contents(a.path), second = contents(b.path);
  ASSERT_EQ(first.size(), 4u);
  for (const auto &[name, text] : first) {
    EXPECT_FALSE(text.empty()) << name;
    EXPECT_TRUE(second.count(name) && second.at(name) == text) << name << " differs";
  }
}

TEST(Compile, SaysWhatItMade) {
  Folder folder;
  Result result = run(pairProgram + " compile --target x86-64-v2 --name couple -o " + folder.path.string());
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.text.find("libcouple.a: 136 parameters"), std::string::npos) << result.text;
  EXPECT_NE(result.text.find("encode: arena"), std::string::npos) << result.text;
  for (const char *name : {"libcouple.a", "couple.h", "couple.hpp", "couple.manifest.json"})
    EXPECT_TRUE(fs::exists(folder.path / name)) << name;
}

// Every form, by the words that only that stage has.
TEST(Compile, EmitsEveryStage) {
  const std::pair<const char *, const char *> forms[] = {
      {"ir", "kiln\\.linear[^]*kiln\\.tanh"},
      {"linalg", "linalg\\.generic[^]*kiln\\.kernel|kiln\\.kernel[^]*linalg\\.generic"},
      {"stmt", "for (<[^>]*> )?\\(|produce |vectorized|ramp\\("},
      {"asm", "\\.globl|\\.text|xmm"},
  };
  for (const auto &[form, words] : forms) {
    SCOPED_TRACE(form);
    Result result = run(pairProgram + " compile --target x86-64-v2 --emit=" + form);
    EXPECT_EQ(result.status, 0);
    EXPECT_TRUE(std::regex_search(result.text, std::regex(words))) << result.text.substr(0, 2000);
  }
  Folder folder;
  Result result = run(pairProgram + " compile --target x86-64-v2 --emit=obj -o " + folder.path.string());
  EXPECT_EQ(result.status, 0) << result.text;
  std::size_t objects = 0;
  for (const auto &[name, text] : contents(folder.path))
    objects += name.ends_with(".o") && text.starts_with("\x7f"
                                                        "ELF");
  EXPECT_GE(objects, 2u);
}

TEST(Compile, DumpsEveryStage) {
  Folder folder;
  Result result = run(pairProgram + " compile --target x86-64-v2 -o " + (folder.path / "out").string() + " --dump-ir " +
                      (folder.path / "ir").string());
  ASSERT_EQ(result.status, 0) << result.text;
  std::size_t stages = 0, statements = 0, assemblies = 0;
  for (const auto &[name, text] : contents(folder.path / "ir")) {
    EXPECT_FALSE(text.empty()) << name;
    stages += name.ends_with(".mlir");
    statements += name.ends_with(".stmt");
    assemblies += name.ends_with(".s");
  }
  EXPECT_GE(stages, 5u);
  EXPECT_GE(statements, 2u);
  EXPECT_EQ(statements, assemblies);
}

TEST(Inspect, ShowsTheModel) {
  Result result = run(pairProgram + " inspect --target x86-64-v2");
  EXPECT_EQ(result.status, 0);
  for (const char *words : {"pair: 136 parameters", "up.weight f32\\[10, 6\\]", "lower bound", "pair_x86_64_v2_"})
    EXPECT_TRUE(std::regex_search(result.text, std::regex(words))) << words << " is not in\n" << result.text;
  Result manifest = run(pairProgram + " inspect --target x86-64-v2 --manifest");
  EXPECT_EQ(manifest.text.substr(0, 1), "{");
}

TEST(Kiln, CompilesASpec) {
  Folder folder;
  Result result =
      run(kilnProgram + " compile " + sources + "/pair.cpp -o " + folder.path.string() + " --target x86-64-v2");
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(contents(folder.path).size(), 4u);
  Result help = run(kilnProgram + " --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.text.find("compile"), std::string::npos);
}

} // namespace
