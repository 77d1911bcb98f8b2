// SPDX-License-Identifier: Apache-2.0
// Machine files, and which links the groups of ranks use on them.
#include "tools/scale/Cluster.h"

#include <filesystem>
#include <gtest/gtest.h>

namespace kiln {
namespace {

const char *const machineText = R"({"name": "tiny", "source": "made up",
  "device": {"name": "d", "peaks": {"f16": 1e12, "f32": 5e11}, "fraction": 0.5,
             "memory_bytes": 1e9, "memory_bandwidth": 1e11, "memory_fraction": 0.8},
  "devices_in_node": 8,
  "node": {"latency": 1e-6, "bandwidth": 1e11},
  "network": {"latency": 1e-5, "bandwidth": 4e10, "fraction": 0.5}})";

Cluster read() {
  llvm::Expected<Cluster> cluster = readCluster(machineText, "tiny.json");
  if (cluster)
    return *cluster;
  ADD_FAILURE() << llvm::toString(cluster.takeError());
  return {};
}

TEST(Cluster, AKernelTakesTheLongerOfBoth) {
  const Cluster cluster = read();
  EXPECT_DOUBLE_EQ(cluster.kernelSeconds("f16", 1e12, 0), 2);
  EXPECT_DOUBLE_EQ(cluster.kernelSeconds("f32", 1e12, 0), 4);
  EXPECT_DOUBLE_EQ(cluster.kernelSeconds("f16", 1e12, 1.6e11), 2);
  EXPECT_DOUBLE_EQ(cluster.kernelSeconds("f16", 1e12, 8e11), 10);
}

TEST(Cluster, GroupsHaveTheLinksBetweenThem) {
  const Cluster cluster = read();
  EXPECT_EQ(cluster.linkOf(1, 8).bandwidth, 1e11) << "a node";
  EXPECT_EQ(cluster.linkOf(4, 2).latency, 1e-6);
  EXPECT_EQ(cluster.linkOf(8, 2).latency, 1e-5) << "one device of each node";
  EXPECT_DOUBLE_EQ(cluster.linkOf(8, 2).bandwidth, 2e10 / 8) << "eight such groups share the adapters";
  EXPECT_DOUBLE_EQ(cluster.linkOf(4, 4).bandwidth, 2e10 / 4) << "two of its devices are in a node, one of which sends";
  EXPECT_DOUBLE_EQ(cluster.linkOf(1, 16).bandwidth, 2e10) << "one group";
  EXPECT_DOUBLE_EQ(cluster.linkOf(64, 2).bandwidth, 2e10 / 8);
}

TEST(Cluster, FilesOfMachinesAreRead) {
  size_t count = 0;
  for (const auto &file : std::filesystem::directory_iterator(KILN_MACHINES)) {
    llvm::Expected<Cluster> cluster = loadCluster(file.path());
    EXPECT_TRUE(bool(cluster)) << llvm::toString(cluster.takeError());
    ++count;
  }
  EXPECT_GE(count, 3u);
}

TEST(Cluster, RefusesWhatIsNoMachine) {
  auto problem = [](std::string from, const std::string &old, const std::string &changed) {
    const size_t at = from.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    llvm::Expected<Cluster> cluster = readCluster(from.replace(at, old.size(), changed), "x.json");
    return cluster ? "" : llvm::toString(cluster.takeError());
  };
  const std::pair<std::pair<const char *, const char *>, const char *> cases[] = {
      {{"{", "nothing"}, "\"x.json\" describes no machine: "},
      {{"\"latency\": 1e-6", "\"delay\": 1e-6"}, "missing value at machine.node.latency"},
      {{"\"latency\": 1e-6", "\"latency\": -1"}, "link: value is out of range; expected a latency of at least 0"},
      {{"1e11},", "0},"}, "and a fraction in (0, 1]"},
      {{"\"fraction\": 0.5}", "\"fraction\": 1.5}"}, "link: value is out of range; expected"},
      {{"\"fraction\": 0.5,", "\"fraction\": 0,"},
       "device: value is out of range; expected peaks and memory above 0, and fractions in (0, 1]"},
      {{"\"f16\": 1e12, \"f32\": 5e11", ""}, "device: value is out of range; expected peaks"},
      {{"5e11", "0"}, "device: value is out of range; expected peaks"},
      {{"\"devices_in_node\": 8", "\"devices_in_node\": 0"}, "too few devices; expected at least 1"},
      {{"\"source\": \"made up\",", ""}, "missing value at machine.source"},
  };
  for (const auto &[change, words] : cases)
    EXPECT_NE(problem(machineText, change.first, change.second).find(words), std::string::npos)
        << problem(machineText, change.first, change.second);
  llvm::Expected<Cluster> missing = loadCluster("/nonexistent/x.json");
  ASSERT_FALSE(bool(missing));
  EXPECT_EQ(llvm::toString(missing.takeError()), "cannot read \"/nonexistent/x.json\": No such file or directory");
}

} // namespace
} // namespace kiln
