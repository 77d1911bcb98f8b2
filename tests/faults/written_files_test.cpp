// SPDX-License-Identifier: Apache-2.0
// A generator whose disk becomes full, or that is killed: every file with the name of an archive, a header or a
// manifest is complete, from the previous library or the new one; and the next compilation succeeds and leaves no other
// files.
#include "../seed.h"
#include "command.h"

#include <chrono>
#include <random>
#include <regex>

using namespace kiln::testing;

namespace {

using Files = std::map<std::string, std::string>;

const std::string shim = "env LD_PRELOAD=" FAILING_DISK " KILN_FAULT_FOLDER=";

class WrittenFiles : public ::testing::Test {
protected:
  WrittenFiles() {
    Result result = run(command(KILN_V2, output.path));
    EXPECT_EQ(result.status, 0) << result.text;
    before = contents(output.path);
    Folder other;
    result = run(command(KILN_V3 "," KILN_V2, other.path));
    EXPECT_EQ(result.status, 0) << result.text;
    after = contents(other.path);
    EXPECT_GE(before.size(), 4u);
    for (const char *name : {"libpair.a", "pair.h", "pair.manifest.json"})
      EXPECT_NE(before[name], after[name]) << name;
  }
  std::string command(const std::string &targets, const fs::path &folder) const {
    return PAIR_GENERATOR " compile --target " + targets + " --cache-dir " + cache.path.string() + " -o " +
           folder.string();
  }
  /// Returns the command that the fault affects: it compiles the new library over the previous one.
  std::string compile() const { return command(KILN_V3 "," KILN_V2, output.path); }
  std::string failing(const std::string &fault) const {
    return shim + output.path.string() + " KILN_FAULT=" + fault + " " + compile();
  }

  void reset() {
    for (const auto &[name, text] : contents(output.path))
      fs::remove(output.path / name);
    for (const auto &[name, text] : before)
      std::ofstream(output.path / name, std::ios::binary) << text;
  }
  /// Expects that all files are complete; returns the number of files that do not belong to a library.
  std::size_t check() {
    Files found = contents(output.path);
    for (const auto &[name, text] : before) {
      EXPECT_TRUE(found[name] == text || found[name] == after[name]) << name << " is not whole";
      found.erase(name);
    }
    return found.size();
  }
  void compileAgain() {
    const Result result = run(compile());
    EXPECT_EQ(result.status, 0) << result.text;
    EXPECT_TRUE(contents(output.path) == after) << "files are left, or not the new library's";
  }

  Folder output, cache;
  Files before, after;
};

TEST_F(WrittenFiles, AFullDisk) {
  int step = 1;
  for (;; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    reset();
    const Result result = run(failing("full:" + std::to_string(step)));
    if (result.status == 0)
      break;
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(std::regex_search(
        result.text, std::regex("error: cannot write \"[^\n]*/[A-Za-z.]*pair[A-Za-z.]*\": No space left on device")))
        << result.text;
    EXPECT_EQ(check(), 0u) << "files are left";
    ASSERT_LT(step, 1000);
  }
  EXPECT_GT(static_cast<std::size_t>(step), 3 * before.size()) << "each file is opened, written and renamed";
  compileAgain();
}

// Each file is written to the target of a link with its name, and keeps its mode; only regular files are replaced.
TEST_F(WrittenFiles, LinksAndModesAreKept) {
  Folder elsewhere;
  reset();
  const fs::path header = output.path / "pair.h", target = elsewhere.path / "real.h", other = output.path / "pair.hpp";
  fs::rename(header, target);
  fs::create_symlink(target, header);
  fs::permissions(other, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  const Result result = run(compile());
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_TRUE(fs::is_symlink(header));
  EXPECT_EQ(contents(elsewhere.path)["real.h"], after["pair.h"]);
  EXPECT_EQ(fs::status(other).permissions(), fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);

  fs::remove(header);
  fs::create_symlink("/dev/null", header);
  const Result refused = run(compile());
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.text.find("pair.h\": not a regular file"), std::string::npos) << refused.text;
  EXPECT_TRUE(fs::is_symlink(header) && fs::is_character_file("/dev/null"));
}

TEST_F(WrittenFiles, KilledAtEachStep) {
  int step = 1;
  std::size_t left = 0;
  for (;; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    reset();
    const Result result = run(failing("kill:" + std::to_string(step)));
    if (result.status == 0)
      break;
    EXPECT_EQ(result.status, 128 + 9) << result.text;
    left += check();
    compileAgain();
    ASSERT_LT(step, 1000);
  }
  EXPECT_GE(step, 13);
  EXPECT_GT(left, 0u) << "what is written has another name first";
}

TEST_F(WrittenFiles, ByTwoAtATime) {
  for (int i = 0; i < 5; ++i) {
    reset();
    const Result result = run("{ " + command(KILN_V2, output.path) + " & " + compile() + " && wait $!; }");
    EXPECT_EQ(result.status, 0) << result.text;
    EXPECT_EQ(check(), 0u) << "files are left";
  }
}

TEST_F(WrittenFiles, KilledAtAnyMoment) {
  const unsigned seed = testSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const char *option : {"", " --no-cache"}) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(run(compile() + option).status, 0);
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
    for (int i = 0; i < 10; ++i) {
      reset();
      const double moment = std::uniform_real_distribution(0.0, all.count())(random);
      SCOPED_TRACE("after " + std::to_string(moment) + " s" + option);
      run("timeout -s KILL " + std::to_string(moment) + " " + compile() + option);
      check();
      compileAgain();
    }
  }
}

} // namespace
