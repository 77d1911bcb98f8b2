// SPDX-License-Identifier: Apache-2.0
// The contents of an archive with code for GPUs, with and without variants for CPUs, and of its manifest and header.
#include "command.h"

#include <algorithm>
#include <cctype>

namespace kiln::testing {
namespace {

const std::string generator = PAIR_GENERATOR;

class Archive : public ::testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    const Result result = run(generator + " compile --no-cache --target " + GetParam() + " -o " + folder.path.string());
    ASSERT_EQ(result.status, 0) << result.text;
  }
  bool has(const std::string &target) const {
    return ("," + GetParam() + ",").find("," + target + ",") != std::string::npos;
  }
  std::string file(const std::string &name) const { return (folder.path / name).string(); }
  /// Returns the size of the code sections of the members whose names match.
  long codeOf(const std::string &members) const {
    return std::stol(run("size -A " + file("libpair.a") + " | awk '/ex / { take = ($1 ~ /" + members +
                         "/) } take && $1 ~ /^\\.text/ { sum += $2 } END { print sum + 0 }'")
                         .text);
  }

  Folder folder;
};

// The runtime's GPU part is included if and only if there is code for GPUs; both parts are small.
TEST_P(Archive, HoldsTheRunTimeThatItWants) {
  const std::string members = run("ar t " + file("libpair.a")).text;
  EXPECT_NE(members.find("kiln_run.c.o"), std::string::npos) << members;
  EXPECT_EQ(members.find("kiln_cuda") != std::string::npos, has("cuda")) << members;
  const long all = codeOf("^kiln_"), ofCuda = codeOf("^kiln_cuda");
  EXPECT_GT(all - ofCuda, 4096);
  EXPECT_EQ(ofCuda > 0, has("cuda"));
  EXPECT_LT(ofCuda, 16384);
  EXPECT_LT(all - ofCuda, 79872) << "with what no program links: runtime.archive has the limit of the rest";
}

TEST_P(Archive, SaysItsTargets) {
  const std::string manifest = readFile(file("pair.manifest.json")), header = readFile(file("pair.h"));
  std::string isas = GetParam();
  std::replace(isas.begin(), isas.end(), ',', ' ');
  EXPECT_NE(header.find("#define PAIR_ISAS \"" + isas + "\""), std::string::npos);
  for (const char *target : {"cuda", KILN_V3, KILN_V2})
    EXPECT_EQ(manifest.find("\"target\": \"" + std::string(target) + "\"") != std::string::npos, has(target)) << target;
  EXPECT_EQ(manifest.find("\"staging_bytes\"") != std::string::npos, has("cuda"));
  EXPECT_EQ(manifest.find("\"symbol\": \"pair_cuda_") != std::string::npos, has("cuda"));
}

// PTX is text: the archive contains it for the lowest compute capability that Kiln supports.
TEST_P(Archive, HoldsDeviceCode) {
  const std::string bytes = readFile(file("libpair.a"));
  EXPECT_EQ(bytes.find(".target sm_80") != std::string::npos, has("cuda"));
  EXPECT_EQ(bytes.find(".visible .entry") != std::string::npos, has("cuda"));
}

TEST_P(Archive, IsDeterministic) {
  const auto first = contents(folder.path);
  ASSERT_EQ(first.size(), 6U);
  for (const char *jobs : {"1", "5"}) {
    Folder other;
    const std::string command = generator + " compile --no-cache --target " + GetParam() + " -o " + other.path.string();
    ASSERT_EQ(run("cd / && FOO=bar " + command + " --jobs " + jobs).status, 0);
    const auto second = contents(other.path);
    for (const auto &[name, text] : first)
      EXPECT_TRUE(second.count(name) && second.at(name) == text) << name << " differs";
  }
}

/// Returns the machine that readelf names for the objects, "AArch64", or several names if they differ.
std::string machineOf(const std::string &file) {
  return run("readelf -h " + file + " | sed -n 's/^ *Machine: *//p' | sort -u | tr '\\n' ' '").text;
}

// Both use one cache: an object of the one host must not get into the library of the other.
TEST(GpuHosts, AreThoseOfTheCpuTargets) {
  const Folder folder, cache;
  for (const auto &[targets, machine] :
       {std::pair("cuda,x86-64-v2", "Advanced Micro Devices X86-64 "), std::pair("cuda,aarch64", "AArch64 "),
        std::pair("aarch64-dotprod,cuda", "AArch64 ")}) {
    const Result result = run(generator + " compile --cache-dir " + cache.path.string() + " --target " + targets +
                              " -o " + folder.path.string());
    ASSERT_EQ(result.status, 0) << result.text;
    EXPECT_EQ(machineOf((folder.path / "libpair.a").string()), machine) << targets;
  }
}

TEST(GpuHosts, AreThisMachineWithoutCpuTargets) {
  const Folder folder;
  const Result result = run(generator + " compile --target cuda -o " + folder.path.string());
  ASSERT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(machineOf((folder.path / "libpair.a").string()), machineOf(generator));
}

TEST(GpuHosts, HaveARunTimeForGpus) {
  const Folder folder;
  for (const char *targets : {"cuda,x86-64-v3-windows", "riscv64,cuda"}) {
    const Result result = run(generator + " compile --target " + targets + " -o " + folder.path.string());
    EXPECT_NE(result.status, 0);
    EXPECT_NE(result.text.find("targets: several architectures or systems; expected one, got "), std::string::npos)
        << result.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, Archive, ::testing::Values("cuda", "cuda," KILN_V3, "cuda," KILN_V3 "," KILN_V2, KILN_V2),
                         [](const ::testing::TestParamInfo<std::string> &info) {
                           std::string name = info.param;
                           std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

} // namespace
} // namespace kiln::testing
