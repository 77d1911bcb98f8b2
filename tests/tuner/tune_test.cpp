// SPDX-License-Identifier: Apache-2.0
// The subcommand as a user runs it: a run within its time budget, runs that continue earlier ones, and all kinds of
// ends.
#include "../levels.h"
#include "RunnerScript.h"
#include "compiler/schedule/TuningFile.h"

#include "../seed.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <regex>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Runs the generator, or another program, in a separate process group.
class Process {
public:
  explicit Process(std::vector<std::string> arguments, std::vector<std::string> program = {PAIR_GENERATOR, "tune"}) {
    arguments.insert(arguments.begin(), program.begin(), program.end());
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child = fork();
    if (child == 0) {
      setpgid(0, 0);
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]), close(ends[1]);
      std::vector<char *> words;
      for (std::string &argument : arguments)
        words.push_back(argument.data());
      words.push_back(nullptr);
      execv(words[0], words.data());
      _exit(127);
    }
    close(ends[1]);
    reader = std::thread([this, in = ends[0]] {
      char block[4096];
      while (ssize_t size = read(in, block, sizeof block)) {
        if (size < 0)
          break;
        text.append(block, size);
        hasOutput = true;
      }
      close(in);
    });
  }

  /// Sends a signal; to the whole group, as a terminal does for Ctrl-C.
  void signal(int number, bool toGroup) { kill(toGroup ? -child : child, number); }

  /// Waits until it has printed something, or a long time has passed.
  void waitForOutput() const {
    for (int tenths = 0; tenths < 600 && !hasOutput; ++tenths)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }

  /// Waits until it and all processes that it started have ended. Returns its exit status, or 128 plus the signal that
  /// ended it.
  int wait() {
    int status = 0;
    waitpid(child, &status, 0);
    reader.join();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string text; // of both streams, complete once it has ended

private:
  pid_t child;
  std::atomic<bool> hasOutput = false;
  std::thread reader;
};

struct Measurement {
  std::string kernel, config;
  std::vector<double> microseconds; // empty if it failed
  bool isConfirmation;
};

/// Returns the measurements in the complete lines of a run's output.
std::vector<Measurement> measurementsOf(const std::string &text, size_t *objects = nullptr) {
  std::vector<Measurement> measurements;
  llvm::StringRef rest = text;
  while (rest.contains('\n')) {
    auto [line, after] = rest.split('\n');
    rest = after;
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
    if (!value) {
      ADD_FAILURE() << "not an object: " << line.str();
      llvm::consumeError(value.takeError());
      continue;
    }
    const llvm::json::Object &object = *value->getAsObject();
    if (objects)
      ++*objects;
    if (object.getString("event") != "trial")
      continue;
    Measurement measurement{object.getString("target")->str() + " " + object.getString("kernel")->str(), "", {}, false};
    ScheduleConfig config;
    for (const auto &[key, number] : *object.getObject("point"))
      config[key.str()] = *number.getAsInteger();
    measurement.config = toString(config);
    if (const llvm::json::Array *times = object.getArray("microseconds")) {
      for (const llvm::json::Value &time : *times)
        measurement.microseconds.push_back(*time.getAsNumber());
      measurement.isConfirmation = *object.getBoolean("is_confirmation");
    }
    measurements.push_back(measurement);
  }
  return measurements;
}

class Tune : public ::testing::Test {
protected:
  Tune() {
    std::string name = ::testing::TempDir() + "kiln-tune-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    file = name + "/pair.tuning";
  }
  ~Tune() override { fs::remove_all(folder); }

  /// Runs it to its end. Returns the status and the output.
  std::pair<int, std::string> run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--tuning", file});
    Process process(std::move(arguments));
    int status = process.wait();
    return {status, process.text};
  }

  /// Expects the last report of every measurement in the file, with its times.
  void expectAllIn(const TuningDatabase &database, const std::vector<Measurement> &measurements) {
    std::map<std::pair<std::string, std::string>, Measurement> last;
    for (const Measurement &measurement : measurements)
      last[{measurement.kernel, measurement.config}] = measurement;
    std::set<std::string> times, failures;
    for (const auto &[of, result] : database.records()) {
      std::string config = of.machine.isa + " " + toString(of.config);
      if (result.outcome == Outcome::Measured)
        times.insert(config + " " + llvm::formatv("{0:e2}", result.microseconds).str());
      else
        failures.insert(config);
    }
    for (const auto &[name, measurement] : last) {
      std::string config = llvm::StringRef(measurement.kernel).split(' ').first.str() + " " + measurement.config;
      for (double time : measurement.microseconds) {
        // The file keeps four digits, which may be rounded either way.
        bool isThere = false;
        for (double factor : {1.0, 1.0006, 0.9994})
          isThere |= times.count(config + " " + llvm::formatv("{0:e2}", time * factor).str());
        EXPECT_TRUE(isThere) << measurement.kernel << " " << measurement.config << " " << time
                             << " us is not in the file";
      }
      EXPECT_TRUE(!measurement.microseconds.empty() || failures.count(config))
          << measurement.kernel << " " << measurement.config;
    }
  }

  fs::path folder;
  std::string file;
};

const std::vector<std::string> quick{"--threads", "1", "--target", KILN_V2, "--json"};

std::vector<std::string> with(std::vector<std::string> options, std::vector<std::string> more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

TEST_F(Tune, WritesWhatItMeasured) {
  auto start = std::chrono::steady_clock::now();
  auto [status, text] = run(with(quick, {"--budget", "8s"}));
  EXPECT_EQ(status, 0) << text;
  EXPECT_LT(Seconds(std::chrono::steady_clock::now() - start).count(), 60) << "a budget of 8 s";
  std::vector<Measurement> measurements = measurementsOf(text);
  EXPECT_GE(measurements.size(), 6u);
  llvm::Expected<TuningDatabase> database = TuningDatabase::load(file);
  ASSERT_TRUE(bool(database)) << llvm::toString(database.takeError());
  expectAllIn(*database, measurements);
  std::set<std::string> structures, defaults;
  for (const auto &[of, result] : database->records()) {
    EXPECT_EQ(of.threads, 1);
    EXPECT_EQ(of.machine.isa, KILN_V2);
    structures.insert(of.strategy + of.structure);
    if (result.isDefault)
      defaults.insert(of.strategy + of.structure);
    EXPECT_TRUE(of.extents == std::vector<int64_t>{20} || of.extents == std::vector<int64_t>{10})
        << "the bound of rows, and half of it";
  }
  EXPECT_EQ(structures, defaults) << "each kernel's default is measured";
  EXPECT_GE(structures.size(), 2u);
  EXPECT_NE(text.find("\"event\":\"end\""), std::string::npos);
}

TEST_F(Tune, TunesForGivenExtents) {
  auto [status, text] =
      run(with(quick, {"--budget", "1s", "--extent", "rows=7", "--extent", "rows=12", "--kernel", "linear_tanh_0_up"}));
  EXPECT_EQ(status, 0) << text;
  llvm::Expected<TuningDatabase> database = TuningDatabase::load(file);
  ASSERT_TRUE(bool(database)) << llvm::toString(database.takeError());
  for (const auto &[of, result] : database->records())
    EXPECT_TRUE(of.extents == std::vector<int64_t>{7} || of.extents == std::vector<int64_t>{12});
  for (const Measurement &measurement : measurementsOf(text))
    EXPECT_EQ(measurement.kernel, KILN_V2 " linear_tanh_0_up");
}

TEST_F(Tune, MeasuresInAProgramThatARunnerRuns) {
  const std::string log = folder / "runs";
  const std::string runner = testing::writeRunner(folder, "echo run >> '" + log + "'; exec \"$program\"");
  const fs::path temporary = folder / "temporary";
  fs::create_directory(temporary);
  setenv("TMPDIR", temporary.c_str(), 1);
  auto [status, text] = run(with(quick, {"--budget", "4s", "--runner", runner}));
  EXPECT_EQ(status, 0) << text;
  llvm::Expected<TuningDatabase> database = TuningDatabase::load(file);
  ASSERT_TRUE(bool(database)) << llvm::toString(database.takeError());
  const std::vector<Measurement> measurements = measurementsOf(text);
  expectAllIn(*database, measurements);
  size_t measured = 0;
  for (const auto &[of, result] : database->records()) {
    EXPECT_EQ(of.machine, detectMachine(KILN_V2)) << "what the program read of this machine";
    EXPECT_EQ(of.threads, 1);
    EXPECT_EQ(result.limit, Limit::Unknown);
    measured += result.outcome == Outcome::Measured;
  }
  EXPECT_GE(measured, 6u) << text;
  std::ifstream runs(log);
  EXPECT_GT(std::count(std::istreambuf_iterator<char>(runs), {}, '\n'), measurements.size())
      << "each measurement has a separate program, as checks of defaults have";

  int verified = 0;
  std::string words;
  std::tie(verified, words) = run({"verify", "--measure", "--tolerance", "900", "--runner", runner});
  EXPECT_EQ(verified, 0) << words;
  std::tie(verified, words) = run({"verify", "--measure", "--runner", testing::writeRunner(folder, "exit 7")});
  EXPECT_EQ(verified, 1);
  EXPECT_THAT(words, HasSubstr("nothing was measured: leaving out " KILN_V2 ": the program ended with status 7"));
  unsetenv("TMPDIR");
  EXPECT_TRUE(fs::is_empty(temporary));
}

TEST_F(Tune, SaysWhatIsWrongWithARunner) {
  auto fails = [&](const std::string &run, std::vector<std::string> more = {}) {
    const std::string runner = testing::writeRunner(folder, run);
    auto [status, text] = this->run(with({"--target", KILN_V2, "--budget", "1s", "--runner", runner}, std::move(more)));
    EXPECT_EQ(status, 1) << text;
    return text;
  };
  EXPECT_THAT(fails("echo cannot reach the board >&2; exit 5"),
              AllOf(HasSubstr("leaving out " KILN_V2 ": the program ended with status 5: cannot reach the board"),
                    HasSubstr("runner.sh\" runs none of the targets")));
  EXPECT_THAT(
      fails("echo Welcome to the board!; exec \"$program\""),
      HasSubstr("runner.sh run\": other text on the standard output; expected nothing but what the program writes"));
  EXPECT_THAT(fails("exec \"$program\"", {"--threads", "1000"}),
              HasSubstr("--threads: too many; expected at most the "));

  const std::string runner = folder / "runner.sh";
  EXPECT_THAT(run({"--target", "cuda", "--runner", runner}).second,
              HasSubstr("leaving out cuda: a runner is for CPUs"));
  std::ofstream(runner) << "#!/bin/sh\necho no linker; exit 3\n";
  EXPECT_THAT(run({"--target", KILN_V2, "--runner", runner}).second,
              HasSubstr("runner.sh link\" ended with status 3: no linker"));
  fs::permissions(runner, fs::perms::owner_read);
  EXPECT_THAT(run({"--target", KILN_V2, "--runner", runner}).second, HasSubstr("Permission denied"));
  EXPECT_THAT(run({"--target", KILN_V2, "--runner", "nowhere.sh"}).second, HasSubstr("nowhere.sh"));
  EXPECT_THAT(run({"--runner", runner}).second, HasSubstr("--runner requires --target"));
  EXPECT_THAT(run({"verify", "--runner", runner}).second, HasSubstr("--runner requires --measure"));
}

// Kills at random times; results that a run printed are in the file, and no later run measures them again.
TEST_F(Tune, SurvivesKill) {
  const unsigned seed = kiln::testing::testSeed();
  SCOPED_TRACE("KILN_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<Measurement> all;
  std::set<std::string> measured;
  size_t reported = 0, killed = 0;
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    Process process({"--threads", "1", "--target", KILN_V2 "," KILN_V3, "--json", "--budget", "60s", "--tuning", file});
    // Half of them while they start, half of them while they measure.
    if (round % 2)
      process.waitForOutput();
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<>(10, 400)(random)));
    process.signal(SIGKILL, /*toGroup=*/false);
    killed += process.wait() == 128 + SIGKILL;
    std::vector<Measurement> measurements = measurementsOf(process.text);
    reported += measurements.size();
    std::set<std::string> now;
    for (const Measurement &measurement : measurements) {
      std::string name = measurement.kernel + " " + measurement.config;
      EXPECT_TRUE(measurement.isConfirmation || !measured.count(name)) << name << " is measured again";
      now.insert(name);
    }
    measured.insert(now.begin(), now.end());
    all.insert(all.end(), measurements.begin(), measurements.end());
    if (!fs::exists(file)) {
      EXPECT_TRUE(all.empty()) << "there were reports, but no file";
      continue;
    }
    llvm::Expected<TuningDatabase> database = TuningDatabase::load(file);
    ASSERT_TRUE(bool(database)) << llvm::toString(database.takeError());
    expectAllIn(*database, all);
  }
  EXPECT_GE(killed, 10u) << "the runs are too short for this test";
  EXPECT_GE(reported, 10u);
}

TEST_F(Tune, StopsOnInterrupt) {
  Process process(with(quick, {"--budget", "60s", "--tuning", file}));
  process.waitForOutput();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  auto start = std::chrono::steady_clock::now();
  process.signal(SIGINT, /*toGroup=*/true);
  EXPECT_EQ(process.wait(), 130) << process.text;
  EXPECT_LT(Seconds(std::chrono::steady_clock::now() - start).count(), 20);
  EXPECT_NE(process.text.find("\"interrupted\":true"), std::string::npos) << process.text;
  std::vector<Measurement> measurements = measurementsOf(process.text);
  for (const Measurement &measurement : measurements)
    EXPECT_FALSE(measurement.microseconds.empty()) << "a killed measurement became a failure of " << measurement.config;
  llvm::Expected<TuningDatabase> database = TuningDatabase::load(file);
  ASSERT_TRUE(bool(database)) << llvm::toString(database.takeError());
  expectAllIn(*database, measurements);
}

// A file with results that this machine does not reproduce.
TEST_F(Tune, VerifyMeasuresAgain) {
  auto [tuned, output] = run(with(quick, {"--budget", "1s", "--extent", "rows=12", "--kernel", "linear_tanh_0_up$"}));
  ASSERT_EQ(tuned, 0) << output;
  llvm::Expected<TuningDatabase> database = TuningDatabase::load(file);
  ASSERT_TRUE(bool(database)) << llvm::toString(database.takeError());
  auto byDefault = std::find_if(database->records().begin(), database->records().end(),
                                [](const auto &record) { return record.second.isDefault; });
  ASSERT_NE(byDefault, database->records().end());
  TuningCase of = byDefault->first;
  of.config["m"] = 3;
  ASSERT_NE(of.config, byDefault->first.config);
  TuningResult forged = byDefault->second;
  forged.isDefault = false;
  forged.microseconds /= 10;
  database->put(of, forged);
  ASSERT_FALSE(bool(database->save(file)));

  auto [status, text] = run({"verify", "--measure", "--json"});
  EXPECT_EQ(status, 1) << text;
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text); // a single line
  ASSERT_TRUE(bool(value)) << text;
  const llvm::json::Object &object = *value->getAsObject();
  EXPECT_EQ(object.getString("kernel"), "linear_tanh_0_up");
  EXPECT_EQ(object.getString("target"), KILN_V2);
  EXPECT_EQ(object.getBoolean("is_lost"), true);
  EXPECT_NEAR(*object.getNumber("recorded"), 0.1, 0.01);
  EXPECT_GT(*object.getNumber("now"), 0.2);
  EXPECT_LT(*object.getNumber("now"), 10);
  ScheduleConfig best;
  for (const auto &[key, number] : *object.getObject("best"))
    best[key.str()] = *number.getAsInteger();
  EXPECT_EQ(best, of.config);

  std::tie(status, text) = run({"verify", "--measure"});
  EXPECT_EQ(status, 1) << text;
  EXPECT_NE(text.find("LOST\nof the default's time; 1 of 1 take more than recorded by over 10 %\n"), std::string::npos)
      << text;
  std::tie(status, text) = run({"verify", "--measure", "--tolerance", "9999999"});
  EXPECT_EQ(status, 0) << text;
  EXPECT_EQ(text.find("LOST"), std::string::npos) << text;
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), database->text()) << "it records nothing";

  TuningDatabase elsewhere;
  for (const auto &[here, result] : database->records()) {
    TuningCase there = here;
    there.machine.cores += 1000;
    elsewhere.put(there, result);
  }
  ASSERT_FALSE(bool(elsewhere.save(file)));
  std::tie(status, text) = run({"verify", "--measure"});
  EXPECT_EQ(status, 1);
  EXPECT_NE(text.find("error: " + file + ": no measurements of this model's kernels on this machine"),
            std::string::npos)
      << text;
}

// `kiln` cannot stop the generator that it runs if it is killed itself.
TEST_F(Tune, EndsWithKiln) {
  Process process(with({PAIR_SPEC}, with(quick, {"--budget", "100s", "--tuning", file})),
                  {"/usr/bin/env", "TMPDIR=" + folder.string(), KILN_PROGRAM, "tune"});
  process.waitForOutput();
  auto start = std::chrono::steady_clock::now();
  process.signal(SIGKILL, /*toGroup=*/false);
  EXPECT_EQ(process.wait(), 128 + SIGKILL) << process.text;
  EXPECT_LT(Seconds(std::chrono::steady_clock::now() - start).count(), 30);
  EXPECT_NE(process.text.find("\"interrupted\":true"), std::string::npos) << process.text;
  llvm::Expected<TuningDatabase> database = TuningDatabase::load(file);
  ASSERT_TRUE(bool(database)) << llvm::toString(database.takeError());
  EXPECT_GE(database->records().size(), 1u) << process.text;
}

TEST_F(Tune, RefusesWhatItCannotDo) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{"--extent", "rows=21"}, "error: dimension \"rows\": size is out of range; expected one in \\[1, 20\\], got 21"},
      {{"--extent", "columns=2"}, "error: the model has no dimension \"columns\"; it has: rows"},
      {{"--extent", "rows"}, "--extent: wrong form; expected NAME=VALUE, got \"rows\""},
      {{"--extent", "rows=x"}, "--extent: wrong form; expected NAME=VALUE, got \"rows=x\""},
      {{"--kernel", "["}, "error: --kernel: wrong pattern; expected a regular expression, got \"\\[\""},
      {{"--kernel", "layer"}, "error: no kernel has a name that matches \"layer\"; nearest: "},
      {{"--threads", "0"}, "--threads"},
      {{"--threads", "1000"},
       "error: --threads: too many; expected at most the [0-9]+ CPUs that this process may use, got 1000"},
      {{"--budget", "fast"}, "--budget"},
      {{"--budget", "-3s"}, "--budget"},
      {{"--target", "arm64"}, "--target: \"arm64\" is unknown; expected one of .*aarch64"},
      {{"--tuning", "/proc/nowhere/x.tuning"}, "error: .*/proc/nowhere/x.tuning"},
      {{"verify"}, "--target: wrong position; expected after \"verify\""},
  };
  for (const auto &[arguments, words] : cases) {
    SCOPED_TRACE(words);
    Process process(with({"--target", KILN_V2, "--budget", "1s"}, arguments));
    int status = process.wait();
    EXPECT_GT(status, 0);
    EXPECT_LT(status, 128) << "it crashed";
    EXPECT_TRUE(std::regex_search(process.text, std::regex(words))) << process.text;
  }
  Process other(with({"--target", "x86-64-v2-windows", "--budget", "1s"}, {}));
  EXPECT_NE(other.wait(), 0);
  EXPECT_NE(other.text.find("leaving out x86-64-v2-windows: this machine cannot run it"), std::string::npos)
      << other.text;
  std::ofstream(file) << "this is no tuning file\n";
  auto [status, text] = run({"--budget", "1s"});
  EXPECT_EQ(status, 1);
  EXPECT_NE(text.find("pair.tuning:1: "), std::string::npos) << text;
}

} // namespace
} // namespace kiln
