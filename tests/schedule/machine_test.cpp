// SPDX-License-Identifier: Apache-2.0
//
// The machine's text, and how it is read from the kernel's description of the CPUs.
#include "compiler/schedule/Machine.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace fs = std::filesystem;

namespace kiln {
namespace {

TEST(Machine, TextReadsBack) {
  for (const char *text : {"x86-64-v4/c2/l1:32K/l2:1M/l3:32M", "x86-64-v3/c14/l1:48K/l2:1280K/l3:24M",
                           "x86-64-v2/c1/l1:0/l2:0/l3:0", "x86-64-v2/c1/l1:1000/l2:0/l3:0"}) {
    std::optional<Machine> machine = parseMachine(text);
    ASSERT_TRUE(machine) << text;
    EXPECT_EQ(toString(*machine), text);
  }
  EXPECT_EQ(parseMachine("x86-64-v3/c14/l1:48K/l2:1280K/l3:24M")->l2Bytes, 1280 * 1024);
}

TEST(Machine, OtherTextIsNone) {
  for (const char *text :
       {"", "x86-64-v4", "/c2/l1:32K/l2:1M/l3:32M", "x86-64-v4/c0/l1:32K/l2:1M/l3:32M",
        "x86-64-v4/2/l1:32K/l2:1M/l3:32M", "x86-64-v4/c2/l1:32K/l2:1M", "x86-64-v4/c2/l2:32K/l1:1M/l3:32M",
        "x86-64-v4/c2/l1:-32K/l2:1M/l3:32M", "x86-64-v4/c2/l1:32KB/l2:1M/l3:32M",
        "x86-64-v4/c2/l1:99999999999M/l2:1M/l3:32M", "x86-64-v4/c2/l1:32K/l2:1M/l3:32M/l4:1G"})
    EXPECT_FALSE(parseMachine(text)) << text;
}

/// A folder in the format of /sys/devices/system/cpu.
class Description {
public:
  Description() {
    std::string name = ::testing::TempDir() + "kiln-cpus-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path = name;
  }
  ~Description() { fs::remove_all(path); }
  void write(const std::string &name, const std::string &text) {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text << "\n";
  }
  fs::path path;
};

TEST(Machine, CountsCoresNotThreads) {
  Description cpus;
  cpus.write("online", "0-3,6");
  const int cores[] = {0, 0, 1, 1, -1, -1, 0}; // the last one is in another package
  for (int cpu : {0, 1, 2, 3, 6}) {
    std::string folder = "cpu" + std::to_string(cpu) + "/topology/";
    cpus.write(folder + "core_id", std::to_string(cores[cpu]));
    cpus.write(folder + "physical_package_id", cpu == 6 ? "1" : "0");
  }
  const std::array<const char *, 3> caches[] = {
      {"1", "Data", "48K"}, {"1", "Instruction", "32K"}, {"2", "Unified", "2048K"}, {"3", "Unified", "36864K"}};
  for (size_t i = 0; i < std::size(caches); ++i) {
    std::string folder = "cpu0/cache/index" + std::to_string(i) + "/";
    cpus.write(folder + "level", caches[i][0]);
    cpus.write(folder + "type", caches[i][1]);
    cpus.write(folder + "size", caches[i][2]);
  }
  EXPECT_EQ(toString(detectMachine("x86-64-v3", cpus.path)), "x86-64-v3/c3/l1:48K/l2:2M/l3:36M");
}

// Some containers hide the description.
TEST(Machine, IsDescribedEverywhere) {
  for (const std::string &folder : {std::string("/nonexistent"), std::string("/sys/devices/system/cpu")}) {
    Machine machine = detectMachine("x86-64-v2", folder);
    EXPECT_GE(machine.cores, 1);
    EXPECT_EQ(parseMachine(toString(machine)), machine);
  }
}

TEST(Machine, OfAGpu) {
  const int64_t gibi = int64_t(1) << 30, mebi = int64_t(1) << 20;
  const Machine h100 = makeGpu("cuda", "NVIDIA H100 80GB HBM3", 90, 79 * gibi + 99 * mebi);
  EXPECT_EQ(toString(h100), "cuda/NVIDIA-H100-80GB-HBM3/9.0/m:79G");
  EXPECT_EQ(h100, makeGpu("cuda", " NVIDIA H100 80GB HBM3 ", 90, 79 * gibi)) << "drivers keep more or less of it";
  EXPECT_NE(h100, makeGpu("cuda", "NVIDIA H100 80GB HBM3", 90, 94 * gibi));
  EXPECT_EQ(toString(makeGpu("cuda", "a/b|c d", 120, 64 * mebi)), "cuda/a-b-c-d/12.0/m:64M");
  for (const Machine &machine : {h100, makeGpu("cuda", "", 80, 0), makeGpu("cuda", "x", 103, 600 * mebi)}) {
    EXPECT_TRUE(machine.isGpu());
    EXPECT_EQ(parseMachine(toString(machine)), machine) << toString(machine);
  }
  for (const char *text : {"cuda/x/9.0/79G", "cuda/x/9/m:79G", "cuda//9.0/m:79G", "cuda/x/9.10/m:79G",
                           "cuda/x/9.0/m:", "cuda/x/-9.0/m:1G", "cuda/x/9.0/m:99999999999999G", "/x/9.0/m:1G"})
    EXPECT_FALSE(parseMachine(text)) << text;
}

} // namespace
} // namespace kiln
