// SPDX-License-Identifier: Apache-2.0
//
// The tuning file: reading and writing, rejected files and their errors, and the algebraic laws of merging.
#include "compiler/schedule/TuningFile.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>

namespace fs = std::filesystem;

namespace kiln {
namespace {

const std::string header = "kiln tuning 1\n";
const std::string key =
    "contraction 3fa9c1d2e0b14477 768x3072 1..1024 at=128 x86-64-v4/c2/l1:32K/l2:1M/l3:32M threads=1";

TuningDatabase parse(const std::string &text) {
  std::vector<std::string> problems;
  TuningDatabase database = TuningDatabase::parse(text, "file", problems);
  EXPECT_TRUE(problems.empty()) << problems[0];
  return database;
}

TEST(TuningFile, CanonicalTextReadsBack) {
  const std::string text = header +
                           "attention 00000000deadbeef 3x12x64 1..8,1..512 at=8,512 x86-64-v3/c8/l1:48K/l2:1280K/l3:0 "
                           "threads=4 | - | wrong\n" +
                           key + " | k_block=768 m=8 n=48 | 812.4us n=21 93.1% fma default\n" + key +
                           " | k_block=3072 m=8 n=48 | timeout\n" + key + " | k_block=3072 m=9 n=48 | failed\n" + key +
                           " | k_block=3072 m=10 n=48 | crashed\n" +
                           "pointwise 0123456789abcdef - - at=- x86-64-v4/c2/l1:32K/l2:1M/l3:32M threads=1 | step=-1 | "
                           "0.123us n=1000 12.0% bytes\n";
  TuningDatabase database = parse(text);
  ASSERT_EQ(database.records().size(), 6u);
  const auto &[of, result] = *std::next(database.records().begin(), 1);
  EXPECT_EQ(of.shape, (std::vector<int64_t>{768, 3072}));
  EXPECT_EQ(of.extents, std::vector<int64_t>{128});
  EXPECT_EQ(of.config, (ScheduleConfig{{"k_block", 768}, {"m", 8}, {"n", 48}}));
  EXPECT_EQ(of.machine.l2Bytes, 1 << 20);
  EXPECT_EQ(result.outcome, Outcome::Measured);
  EXPECT_DOUBLE_EQ(result.microseconds, 812.4);
  EXPECT_EQ(result.samples, 21);
  EXPECT_NEAR(result.limitFraction, 0.931, 1e-9);
  EXPECT_EQ(result.limit, Limit::Fma);
  EXPECT_TRUE(result.isDefault);
  EXPECT_EQ(database.text(), text);
}

// Numbers sort as numbers: 768 before 3072.
TEST(TuningFile, TextIsSortedWhateverTheInput) {
  const std::string a = key + " | m=9 | 10.00us n=5\n", b = key + " | m=10 | 11.00us n=5\n",
                    c = key + " | m=100 | crashed\n";
  EXPECT_EQ(parse(header + c + "\n# a remark\n" + b + a).text(), header + a + b + c);
  EXPECT_EQ(parse("kiln tuning 1\r\n" + key + " | m=9 | 10.00us n=5\r\n").text(), header + a);
  EXPECT_EQ(parse(header + a + b.substr(0, b.size() - 1)).text(), header + a + b) << "the last line needs no end";
}

TEST(TuningFile, WritingIsStable) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    TuningCase of = parse(header + key + " | m=9 | failed\n").records().begin()->first;
    TuningResult result;
    result.microseconds = std::exp(std::uniform_real_distribution(0.0, 20.0)(random));
    result.samples = 3;
    result.limit = Limit::Bytes;
    result.limitFraction = std::uniform_real_distribution(0.0, 1.2)(random);
    std::string once = toString(of, result), twice = parse(header + once).text();
    EXPECT_EQ(header + once + "\n", twice);
    TuningDatabase database;
    database.put(of, result);
    EXPECT_EQ(database.records().begin()->second, parse(database.text()).records().begin()->second);
    EXPECT_NEAR(database.records().begin()->second.microseconds / result.microseconds, 1, 6e-4);
  }
}

struct Malformed {
  std::string text;
  const char *problem;
};

const std::string target = "x86-64-v4/c2/l1:32K/l2:1M/l3:32M", ends = " | m=8 | failed";
std::string keyWith(int word, const std::string &by) {
  std::vector<std::string> words{"contraction", "3fa9c1d2e0b14477", "768x3072", "1..1024", "at=128",
                                 target,        "threads=1"};
  words[word] = by;
  std::string line;
  for (const std::string &word : words)
    line += (line.empty() ? "" : " ") + word;
  return header + line + ends;
}

const Malformed malformed[] = {
    {"", "file:1: a tuning file begins with \"kiln tuning 1\""},
    {"{\"json\": 1}", "file:1: a tuning file begins with \"kiln tuning 1\""},
    {"kiln tuning x", "file:1: a tuning file begins with \"kiln tuning 1\""},
    {"kiln tuning 0", "file:1: a tuning file begins with \"kiln tuning 1\""},
    {"kiln tuning 7\n" + key + ends,
     "file:1: the tuning file has version 7, but this compiler reads version 1 at most; use a newer one"},
    {header + "<<<<<<< HEAD",
     "file:2: a merge conflict is not resolved; keep the lines of both sides and remove the markers"},
    {header + key,
     "file:2: measurement: wrong number of parts; expected kernel, schedule and result with \"|\" between them, got 1"},
    {header + key + " | m=8 | failed | again",
     "file:2: measurement: wrong number of parts; expected kernel, schedule and result with \"|\" between them, got 4"},
    {header + "\n\ncontraction" + ends,
     "file:4: measurement: wrong number of words; expected 7 before the first \"|\" (strategy, structure, "
     "shape, bounds, at=, machine, threads=), got 1"},
    {keyWith(0, "7up"), "file:2: strategy: not a name; expected a letter, then letters and digits, got \"7up\""},
    {keyWith(1, "3fa9"), "file:2: structure: wrong form; expected 16 hexadecimal digits, got \"3fa9\""},
    {keyWith(1, "3FA9C1D2E0B14477"),
     "file:2: structure: wrong form; expected 16 hexadecimal digits, got \"3FA9C1D2E0B14477\""},
    {keyWith(2, "768*3072"), "file:2: shape: wrong form; expected integers with \"x\" between them, got \"768*3072\""},
    {keyWith(2, "768x99999999999999999999"),
     "file:2: shape: wrong form; expected integers with \"x\" between them, got \"768x99999999999999999999\""},
    {keyWith(3, "1-1024"), "file:2: bounds: wrong form; expected MIN..MAX for each dynamic dimension, got \"1-1024\""},
    {keyWith(3, "9..8"), "file:2: bounds: wrong form; expected MIN..MAX for each dynamic dimension, got \"9..8\""},
    {keyWith(4, "128"),
     "file:2: dimensions: wrong form; expected at= and integers with \",\" between them, got \"128\""},
    {keyWith(4, "at=1,2"), "file:2: dimensions: not as many as bounds; expected 1, got 2"},
    {keyWith(4, "at=2000"), "file:2: dimensions: size is out of bounds; expected 1..1024, got 2000"},
    {keyWith(5, "here"), "file:2: machine: wrong form; expected ISA/cCORES/l1:SIZE/l2:SIZE/l3:SIZE or "
                         "ISA/GPU/CAPABILITY/m:SIZE, got \"here\""},
    {keyWith(6, "threads=0"),
     "file:2: threads: wrong form; expected threads= and an integer of at least 1, got \"threads=0\""},
    {keyWith(6, "4"), "file:2: threads: wrong form; expected threads= and an integer of at least 1, got \"4\""},
    {header + key + " |  | failed", "file:2: schedule: no parameters; expected some, or - for none, got \"\""},
    {header + key + " | m | failed", "file:2: schedule: wrong form; expected NAME=NUMBER, got \"m\""},
    {header + key + " | m=x | failed", "file:2: schedule: wrong form; expected NAME=NUMBER, got \"m=x\""},
    {header + key + " | m=1 m=2 | failed", "file:2: schedule: repeated parameter; expected each once, got \"m\" twice"},
    {header + key + " | m=8 parts=2 | failed",
     "file:2: schedule: former name of a parameter; expected \"partial_sums\", got \"parts\""},
    {header + key + " | splits=4 | failed",
     "file:2: schedule: former name of a parameter; expected \"split_kv\", got \"splits\""},
    {header + key + " | turns=8 warps=4 | failed",
     "file:2: schedule: former name of a parameter; expected \"unroll\", got \"turns\""},
    {header + key + " | m=8 | slow",
     "file:2: result: wrong form; expected failed, crashed, timeout, wrong, or a time such as 812.4us, got \"slow\""},
    {header + key + " | m=8 | -4us n=1",
     "file:2: result: wrong form; expected failed, crashed, timeout, wrong, or a time such as 812.4us, got \"-4us\""},
    {header + key + " | m=8 | nanus n=1",
     "file:2: result: wrong form; expected failed, crashed, timeout, wrong, or a time such as 812.4us, got \"nanus\""},
    {header + key + " | m=8 | 4us",
     "file:2: result: no number of samples; expected n= and the number after the time, got \"\""},
    {header + key + " | m=8 | 4us n=0",
     "file:2: result: no number of samples; expected n= and the number after the time, got \"n=0\""},
    {header + key + " | m=8 | 4us n=1 x%", "file:2: result: wrong percentage; expected one such as 93.1%, got \"x%\""},
    {header + key + " | m=8 | 4us n=1 9%",
     "file:2: result: unknown limit; expected fma or bytes after a percentage, got \"\""},
    {header + key + " | m=8 | 4us n=1 9% fma fast", "file:2: result ends with \"fast\", which has no meaning"},
};

TEST(TuningFile, MalformedTextIsRefusedWithFileAndLine) {
  for (const Malformed &wrong : malformed) {
    std::vector<std::string> problems;
    TuningDatabase::parse(wrong.text, "file", problems);
    ASSERT_EQ(problems.size(), 1u) << wrong.text;
    EXPECT_EQ(problems[0], wrong.problem);
  }
}

// Any text is either read completely or rejected.
TEST(TuningFile, AnyTextIsReadOrRefused) {
  std::mt19937 random(11);
  const std::string any(" |=x,.-0159\n%usn\0\xff/:", 20);
  const std::string line = key + " | k_block=768 m=8 n=48 | 812.4us n=21 93.1% fma default\n";
  for (int i = 0; i < 20000; ++i) {
    std::string text = header + line;
    for (int change = 0; change < 3; ++change)
      text[header.size() + random() % line.size()] = any[random() % any.size()];
    std::vector<std::string> problems;
    TuningDatabase database = TuningDatabase::parse(text, "file", problems);
    if (problems.empty()) {
      EXPECT_EQ(parse(database.text()).text(), database.text());
    }
  }
}

TEST(TuningFile, EveryProblemIsReported) {
  std::vector<std::string> problems;
  TuningDatabase database =
      TuningDatabase::parse(header + "one\n" + key + " | m=8 | 4us n=3\n" + "two\n", "file", problems);
  EXPECT_EQ(problems.size(), 2u);
  EXPECT_EQ(database.records().size(), 1u) << "what is right is read";
}

// Merging.

TuningDatabase randomDatabase(std::mt19937 &random) {
  TuningDatabase database;
  const Outcome outcomes[] = {Outcome::Failed, Outcome::Crashed, Outcome::TimedOut, Outcome::Wrong};
  for (size_t i = 0, count = random() % 12; i < count; ++i) {
    TuningCase of;
    of.strategy = random() % 2 ? "contraction" : "attention";
    of.structure = random() % 2 ? "3fa9c1d2e0b14477" : "00000000deadbeef";
    of.shape = {static_cast<int64_t>(random() % 2)};
    of.machine = *parseMachine(target);
    of.threads = 1 + random() % 2;
    of.config = {{"m", static_cast<int64_t>(random() % 2)}};
    TuningResult result;
    if (random() % 3 == 0)
      result.outcome = outcomes[random() % 4];
    else
      result = {Outcome::Measured,
                1.0 + random() % 2,
                static_cast<int64_t>(1 + random() % 2),
                0.25 * (random() % 2),
                random() % 2 ? Limit::Fma : Limit::Bytes,
                random() % 2 == 0};
    database.put(of, result);
  }
  return database;
}

TuningDatabase merged(TuningDatabase a, const TuningDatabase &b) {
  a.merge(b);
  return a;
}

TEST(TuningFile, MergingIsAUnionInAnyOrder) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    TuningDatabase a = randomDatabase(random), b = randomDatabase(random), c = randomDatabase(random);
    EXPECT_EQ(merged(a, b).text(), merged(b, a).text());
    EXPECT_EQ(merged(merged(a, b), c).text(), merged(a, merged(b, c)).text());
    EXPECT_EQ(merged(a, a).text(), a.text());
    EXPECT_EQ(merged(a, TuningDatabase()).text(), a.text());
    EXPECT_EQ(merged(merged(a, b), b).text(), merged(a, b).text());
    TuningDatabase both = merged(a, b);
    for (const auto &[of, result] : both.records()) {
      auto inA = a.records().find(of), inB = b.records().find(of);
      EXPECT_TRUE((inA != a.records().end() && inA->second == result) ||
                  (inB != b.records().end() && inB->second == result));
      if (inA != a.records().end()) {
        EXPECT_FALSE(isBetterFounded(inA->second, result));
      }
      if (inB != b.records().end()) {
        EXPECT_FALSE(isBetterFounded(inB->second, result));
      }
    }
  }
}

// The result of git's union driver: the lines of both files in any order, some twice.
TEST(TuningFile, LinesOfTwoFilesAreTheirMerge) {
  std::mt19937 random(5);
  for (int i = 0; i < 500; ++i) {
    TuningDatabase a = randomDatabase(random), b = randomDatabase(random);
    std::vector<std::string> lines;
    for (const TuningDatabase *database : {&a, &b})
      for (const auto &[of, result] : database->records())
        lines.push_back(toString(of, result));
    std::shuffle(lines.begin(), lines.end(), random);
    std::string text = header;
    for (const std::string &line : lines)
      text += line + "\n";
    EXPECT_EQ(parse(text).text(), merged(a, b).text());
  }
}

TEST(TuningFile, TheBetterFoundedMeasurementStays) {
  auto result = [](const std::string &text) {
    return parse(header + key + " | m=8 | " + text).records().begin()->second;
  };
  const std::pair<const char *, const char *> pairs[] = {
      {"9.000us n=21", "5.000us n=20"},
      {"5.000us n=20", "9.000us n=20"},
      {"wrong", "5.000us n=20"},
      {"5.000us n=1", "crashed"},
      {"crashed", "failed"},
      {"failed", "timeout"},
      {"5.000us n=1 1.0% fma", "5.000us n=1 2.0% fma"},
  };
  for (const auto &[better, worse] : pairs) {
    EXPECT_TRUE(isBetterFounded(result(better), result(worse))) << better << ", " << worse;
    EXPECT_FALSE(isBetterFounded(result(worse), result(better))) << better << ", " << worse;
    EXPECT_FALSE(isBetterFounded(result(better), result(better))) << better;
  }
}

TEST(TuningFile, PutReplaces) {
  TuningDatabase database = parse(header + key + " | m=8 | wrong\n");
  TuningCase of = database.records().begin()->first;
  TuningResult result;
  result.microseconds = 3;
  result.samples = 1;
  database.put(of, result);
  EXPECT_EQ(database.text(), header + key + " | m=8 | 3.000us n=1\n");
}

// Files.

class Folder {
public:
  Folder() {
    std::string name = ::testing::TempDir() + "kiln-tuning-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

std::string message(llvm::Error error) { return llvm::toString(std::move(error)); }

TEST(TuningFile, SavesAndLoads) {
  Folder folder;
  std::string file = folder.path / "model.tuning";
  TuningDatabase database = parse(header + key + " | m=8 | wrong\n");
  ASSERT_EQ(message(database.save(file)), "");
  llvm::Expected<TuningDatabase> loaded = TuningDatabase::load(file);
  ASSERT_TRUE(bool(loaded));
  EXPECT_EQ(loaded->text(), database.text());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1) << "nothing else is left";
}

TEST(TuningFile, SavingKeepsLinksAndPermissions) {
  Folder folder;
  fs::path file = folder.path / "real", link = folder.path / "link";
  std::ofstream(file) << "old";
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  fs::create_symlink(file, link);
  ASSERT_EQ(message(TuningDatabase().save(link)), "");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), header);
}

TEST(TuningFile, SavingMakesTheTargetOfALink) {
  Folder folder;
  fs::create_directory(folder.path / "other");
  fs::path file = folder.path / "other/real", link = folder.path / "link";
  fs::create_symlink("other/real", link);
  ASSERT_EQ(message(TuningDatabase().save(link)), "");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file)));
}

// A link to a device, so that a write that replaces the link instead of its target does not harm the machine.
TEST(TuningFile, WhatIsNoRegularFileIsNotReplaced) {
  Folder folder;
  const fs::path link = folder.path / "link", pipe = folder.path / "pipe", circle = folder.path / "circle";
  fs::create_symlink("/dev/null", link);
  fs::create_symlink("circle", circle);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path &path : {link, pipe, folder.path}) {
    EXPECT_EQ(message(TuningDatabase().save(path)), "cannot write \"" + path.string() + "\": not a regular file");
    EXPECT_FALSE(fs::exists(path.string() + ".partial"));
  }
  EXPECT_TRUE(fs::is_symlink(link) && fs::is_fifo(pipe) && fs::is_character_file("/dev/null"));
  EXPECT_NE(message(TuningDatabase().save(circle)), "");
  EXPECT_TRUE(fs::is_symlink(circle));
}

TEST(TuningFile, FilesThatCannotBeAreReported) {
  Folder folder;
  std::string missing = folder.path / "missing.tuning", nowhere = folder.path / "nowhere/x.tuning";
  EXPECT_EQ(message(TuningDatabase::load(missing).takeError()),
            "cannot read the tuning file \"" + missing + "\": No such file or directory");
  EXPECT_EQ(message(TuningDatabase().save(nowhere)), "cannot write \"" + nowhere + "\": No such file or directory");
  std::string bad = folder.path / "bad.tuning";
  std::ofstream out(bad);
  out << header;
  for (int i = 0; i < 12; ++i)
    out << "x\n";
  out.close();
  std::string all = message(TuningDatabase::load(bad).takeError());
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 10) << all;
  EXPECT_EQ(all.find(bad + ":2: measurement: wrong number of "), 0u) << all;
  EXPECT_NE(all.find("and 2 more"), std::string::npos) << all;
}

} // namespace
} // namespace kiln
