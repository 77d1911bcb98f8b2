// SPDX-License-Identifier: Apache-2.0
//
// The cache returns exactly what was stored or nothing, for entries that are damaged, missing, unreadable or written
// concurrently.
#include "../read_file.h"
#include "compiler/jobs/Jobs.h"
#include "compiler/jobs/ObjectCache.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <unistd.h>

using namespace kiln;
namespace fs = std::filesystem;

namespace {

class Cache : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "kiln-cache-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root = name;
    folder = root / "made" / "when needed";
  }
  void TearDown() override { fs::remove_all(root); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> list;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder))
      list.push_back(entry.path());
    return list;
  }
  static std::string read(const fs::path &path) { return kiln::testing::readFile(path); }
  static void write(const fs::path &path, const std::string &text) { std::ofstream(path, std::ios::binary) << text; }

  fs::path root, folder;
  const std::string object = std::string("a\0b\nc\n", 6) + std::string(5000, 'x');
};

TEST_F(Cache, GivesWhatWasStored) {
  ObjectCache cache(folder);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_FALSE(fs::exists(folder)) << "looking makes no folder";
  cache.store("key", object);
  cache.store("another key", "");
  EXPECT_EQ(cache.find("key"), object);
  EXPECT_EQ(cache.find("another key"), "");
  EXPECT_FALSE(cache.find("ke"));
  EXPECT_EQ(ObjectCache(folder).find("key"), object) << "it outlives the process";
  cache.store("key", "newer");
  EXPECT_EQ(cache.find("key"), "newer");
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(Cache, IgnoresWhatIsDamaged) {
  ObjectCache cache(folder);
  cache.store("key", object);
  const fs::path file = files().front();
  const std::string whole = read(file);
  for (size_t length : {size_t(0), size_t(10), size_t(64), size_t(65), whole.size() - 1}) {
    write(file, whole.substr(0, length));
    EXPECT_FALSE(cache.find("key")) << length << " bytes are left";
  }
  for (size_t at : {size_t(0), size_t(64), size_t(65), whole.size() - 1}) {
    std::string flipped = whole;
    flipped[at] ^= 1;
    write(file, flipped);
    EXPECT_FALSE(cache.find("key")) << "byte " << at << " is wrong";
  }
  write(file, whole + "x");
  EXPECT_FALSE(cache.find("key")) << "a byte too many";
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_FALSE(cache.find("key")) << "a folder";
  fs::remove(file);
  cache.store("key", object);
  EXPECT_EQ(cache.find("key"), object);
}

TEST_F(Cache, DropsWhatWasUsedLeastRecently) {
  ObjectCache cache(folder, 3 * 6000);
  for (const char *key : {"a", "b", "c"})
    cache.store(key, object);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (const fs::path &file : files())
    fs::last_write_time(file, long_ago);
  cache.trim();
  EXPECT_EQ(files().size(), 3u) << "they fit";
  EXPECT_TRUE(cache.find("a"));
  EXPECT_TRUE(cache.find("c"));
  cache.store("d", object);
  cache.trim();
  EXPECT_FALSE(cache.find("b"));
  for (const char *key : {"a", "c", "d"})
    EXPECT_TRUE(cache.find(key)) << key;
}

TEST_F(Cache, RemovesNothingButItsOwn) {
  fs::create_directories(folder);
  const std::string hash(64, 'a');
  for (const char *name : {"thesis.tex", "x.kernel", "x.partial"})
    write(folder / name, std::string(1000, 'x'));
  write(folder / (hash + ".12345678.partial"), "of a build that runs");
  write(folder / (hash + ".abcdefab.partial"), "of a build that was killed");
  fs::last_write_time(folder / (hash + ".abcdefab.partial"), fs::file_time_type::clock::now() - std::chrono::hours(2));
  ObjectCache cache(folder, 0);
  cache.store("a", object);
  cache.trim();
  EXPECT_FALSE(cache.find("a"));
  EXPECT_EQ(files().size(), 4u);
  EXPECT_FALSE(fs::exists(folder / (hash + ".abcdefab.partial")));
}

TEST_F(Cache, WithoutAFolderIsEmpty) {
  for (const std::string &nowhere : {std::string(), std::string("/proc/nowhere"), (root / "file" / "under").string()}) {
    write(root / "file", "not a folder");
    ObjectCache cache(nowhere);
    cache.store("key", object);
    cache.trim();
    EXPECT_FALSE(cache.find("key")) << nowhere;
  }
}

TEST_F(Cache, ReadsAFolderThatCannotBeWritten) {
  ObjectCache(folder).store("key", object);
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  ObjectCache cache(folder);
  EXPECT_EQ(cache.find("key"), object);
  cache.store("new", object);
  cache.trim();
  if (geteuid() != 0) { // root ignores permissions
    EXPECT_FALSE(cache.find("new"));
  }
  fs::permissions(folder, fs::perms::owner_all);
}

// Eight builds store and trim the same few entries concurrently; every entry that is found is complete.
TEST_F(Cache, ServesBuildsAtTheSameTime) {
  const auto content = [](int key) { return std::string(20'000 + key, static_cast<char>('a' + key)); };
  std::vector<Job> jobs(8, {[&]() -> llvm::Expected<std::string> {
                              size_t hits = 0;
                              ObjectCache cache(folder, 100'000); // five of the ten
                              for (int round = 0; round < 200; ++round) {
                                const int key = round * 7 % 10;
                                if (auto found = cache.find(std::to_string(key))) {
                                  ++hits;
                                  if (*found != content(key))
                                    return llvm::createStringError("a torn entry");
                                } else {
                                  cache.store(std::to_string(key), content(key));
                                  cache.trim();
                                }
                              }
                              return std::to_string(hits);
                            },
                            {}});
  size_t hits = 0;
  for (const JobResult &result : runJobs(jobs, 8)) {
    EXPECT_EQ(result.outcome, JobOutcome::Done) << result.error;
    hits += std::strtoul(result.bytes.c_str(), nullptr, 10);
  }
  EXPECT_GT(hits, 0u);
  EXPECT_LE(files().size(), 10u) << "nothing partial is left";
}

TEST(CacheFolder, FollowsTheEnvironment) {
  const auto folder = [](const char *own, const char *all, const char *home) {
    for (auto [name, value] :
         {std::pair("KILN_CACHE_DIR", own), std::pair("XDG_CACHE_HOME", all), std::pair("HOME", home)})
      value ? setenv(name, value, 1) : unsetenv(name);
    return ObjectCache::defaultFolder();
  };
  EXPECT_EQ(folder("own", "/all", "/home/me"), "own");
  EXPECT_EQ(folder(nullptr, "/all", "/home/me"), "/all/kiln");
  EXPECT_EQ(folder("", "/all", "/home/me"), "/all/kiln");
  EXPECT_EQ(folder(nullptr, "relative", "/home/me"), "/home/me/.cache/kiln");
  EXPECT_EQ(folder(nullptr, nullptr, "/home/me"), "/home/me/.cache/kiln");
  EXPECT_EQ(folder(nullptr, nullptr, ""), "");
  EXPECT_EQ(folder(nullptr, nullptr, nullptr), "");
}

// The program that contains the compiler, and its libraries: at least LLVM, the C++ library and this project's.
TEST(Fingerprint, NamesTheCompiler) {
  const std::string &text = compilerFingerprint();
  EXPECT_GE(std::count(text.begin(), text.end(), ' '), 3);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef "), std::string::npos) << text;
}

} // namespace
