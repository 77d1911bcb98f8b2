// SPDX-License-Identifier: Apache-2.0
// The program that runs kernels on another machine, here on this one: its answers, and how it ends.
#include "../levels.h"
#include "RunnerScript.h"
#include "compiler/tuner/MeasurementProgram.h"
#include "compiler/tuner/measurement.h"
#include "targets/registry.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kiln {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MeasurementProgram : public ::testing::Test {
protected:
  MeasurementProgram() {
    auto started = startMeasurementProgram({testing::writeRunner(folder), folder}, findTarget(KILN_V2)->info(), {}, {});
    EXPECT_TRUE(bool(started)) << llvm::toString(started.takeError());
    if (started)
      runner = std::move(*started);
  }

  void put(std::initializer_list<uint64_t> numbers) {
    for (uint64_t number : numbers)
      runner->messages().put(number);
    runner->messages().send();
  }
  std::string end() {
    runner->messages().number();
    return llvm::toString(runner->check());
  }

  const TemporaryFolder temporary = llvm::cantFail(TemporaryFolder::make());
  const fs::path folder = temporary.path();
  std::unique_ptr<Runner> runner;
};

TEST_F(MeasurementProgram, TellsOfItsMachine) {
  ASSERT_TRUE(runner);
  put({KILN_MEASURE_CPUS});
  EXPECT_EQ(runner->messages().number(), static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  const std::string path = folder / "text";
  std::ofstream(path) << "a line\n";
  for (const std::string &name : {path, path + "s"}) {
    runner->messages().put(KILN_MEASURE_FILE);
    runner->messages().put(name.data(), name.size());
    runner->messages().send();
    const std::vector<char> text = runner->messages().bytes();
    EXPECT_EQ(std::string(text.begin(), text.end()), name == path ? "a line\n" : "");
  }
  put({KILN_MEASURE_BEGIN, 3, 1000});
  EXPECT_EQ(runner->messages().number(), 3u) << "workers";
  EXPECT_FALSE(bool(runner->check()));
}

TEST_F(MeasurementProgram, EndsWithoutMemory) {
  ASSERT_TRUE(runner);
  // A tensor with one copy, rank 0, and too many bytes.
  put({KILN_MEASURE_DATA, 0, 1, 0, 1, 1, 1, 0, uint64_t(1) << 60});
  EXPECT_THAT(end(), HasSubstr("ended with status 1: no memory for a kernel's arguments"));
}

TEST_F(MeasurementProgram, EndsWithoutMemoryForCopies) {
  ASSERT_TRUE(runner);
  put({KILN_MEASURE_DATA, 0, 1, 0, 1, 1, uint64_t(1) << 62, 0, 64}); // 2^68 bytes
  EXPECT_THAT(end(), HasSubstr("no memory"));
}

TEST_F(MeasurementProgram, EndsAtAQuestionThatItDoesNotKnow) {
  ASSERT_TRUE(runner);
  put({1000});
  EXPECT_THAT(end(), HasSubstr("ended with status 1"));
}

} // namespace
} // namespace kiln
