// SPDX-License-Identifier: Apache-2.0
//
// Calls of vector functions that pass their operands in memory: LLVM 22 makes instructions of them, for each number of
// lanes. Kernels use them with versions of Halide that do not link bitcode; here the pass runs with each version.
#include "targets/halide/workarounds/VectorCalls.h"

#include "compiler/object/Object.h"
#include "targets/halide/translate/VectorFunctions.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::halide {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Cpu {
  const char *name, *triple, *features, *multiplyAdd;
  CpuName llvm; // the bitcode of Halide 14 does not state the CPU's features
};

void PrintTo(const Cpu &cpu, std::ostream *out) { *out << cpu.name; }

const char *const v3Features = "+sse4.1,+avx,+avx2,+fma,+f16c";
const Cpu cpus[] = {
    {"v3", "x86-64-linux", "sse41-avx-avx2-fma-f16c", "vfmadd", {"x86_64-linux-gnu", "x86-64", v3Features}},
    {"v4",
     "x86-64-linux",
     "sse41-avx-avx2-fma-f16c-avx512-avx512_skylake",
     "vfmadd",
     {"x86_64-linux-gnu", "skylake-avx512"}},
    {"v3_windows",
     "x86-64-windows",
     "sse41-avx-avx2-fma-f16c",
     "vfmadd",
     {"x86_64-pc-windows-msvc", "x86-64", v3Features}},
    {"aarch64", "arm-64-linux", "", "fmla|fmadd", {"aarch64-linux-gnu", "generic"}}};

/// Returns the bitcode of a loop that adds products of `lanes` numbers at a time.
std::string bitcodeOf(const Cpu &cpu, int lanes, const InlinedFunctions &functions) {
  Halide::ImageParam in(Halide::Float(32), 1, "in");
  Halide::Var x("x");
  Halide::Func sums("sums"), out("out");
  Halide::RDom r(0, 64, "r");
  sums(x) = 0.f;
  sums(x) = fusedMultiplyAdd(in(r), in(x + r), sums(x));
  out(x) = sums(x);
  out.bound(x, 0, 4 * lanes).vectorize(x, lanes);
  sums.compute_at(out, x).vectorize(x, lanes).update().vectorize(x, lanes);

  std::set<std::string> names;
  for (llvm::StringRef bitcode : functions.bitcode)
    for (std::string &name : llvm::cantFail(functionNames(bitcode)))
      names.insert(std::move(name));
  Halide::Pipeline pipeline(out);
  pipeline.add_custom_lowering_pass(new PassVectorsInMemory(std::move(names)));
  std::string target = std::string(cpu.triple) + (*cpu.features ? "-" : "") + cpu.features;
  Halide::Module module =
      pipeline.compile_to_module({in}, "kernel", Halide::Target(target + "-no_runtime-no_asserts-no_bounds_query"));
  llvm::SmallString<64> path;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("vector_calls", "bc", path));
  module.compile({{Halide::OutputFileType::bitcode, path.str().str()}});
  auto buffer = llvm::MemoryBuffer::getFile(path);
  llvm::sys::fs::remove(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

class VectorCalls : public ::testing::TestWithParam<std::tuple<Cpu, int>> {};

TEST_P(VectorCalls, BecomeInstructions) {
  auto [cpu, lanes] = GetParam();
  const InlinedFunctions functions =
      inlinedFunctions(VectorFunctions::of(cpu.triple, cpu.features, /*hasFma=*/true, /*hasByteProducts=*/false));
  llvm::Expected<std::string> code =
      compileBitcode(bitcodeOf(cpu, lanes, functions), cpu.llvm, /*isAssembly=*/true, &functions);
  ASSERT_TRUE(static_cast<bool>(code)) << llvm::toString(code.takeError());
  EXPECT_THAT(*code, ::testing::ContainsRegex(cpu.multiplyAdd));
  EXPECT_THAT(*code, Not(HasSubstr("kiln_simd")));
}

INSTANTIATE_TEST_SUITE_P(Lanes, VectorCalls,
                         ::testing::Combine(::testing::ValuesIn(cpus), ::testing::Values(1, 2, 4, 7, 8, 12, 16, 32)));

} // namespace
} // namespace kiln::halide
