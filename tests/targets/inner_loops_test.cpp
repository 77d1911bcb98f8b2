// SPDX-License-Identifier: Apache-2.0
//
// The machine code of a contraction's inner loop on each CPU that models are compiled for, also where none of it can be
// run: as many multiply-adds of vectors as the tile has, among few other instructions. Of floats, and of rows of int8.
#include "LinearKernel.h"

#include "llvm/ADT/StringRef.h"

namespace kiln::testing {
namespace {

struct Cpu {
  const char *target, *multiplyAdd; // as assembly has it
  int tile;                         // vectors of sums
  double share;                     // of the instructions, at least
};

/// Gives its name to gtest.
std::string nameOf(const Cpu &cpu) {
  std::string name = cpu.target;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Multiply-adds and instructions of the straight piece of code that has most multiply-adds, the shortest of equals.
/// Pieces end at labels and behind branches.
std::pair<int, int> busiestPiece(llvm::StringRef assembly, llvm::StringRef multiplyAdd) {
  std::pair<int, int> most, piece;
  const auto end = [&] {
    if (piece.first > most.first || (piece.first == most.first && piece.second < most.second))
      most = piece;
    piece = {};
  };
  while (!assembly.empty()) {
    llvm::StringRef line;
    std::tie(line, assembly) = assembly.split('\n');
    const llvm::StringRef word = line.ltrim().split('\t').first.rtrim();
    if (word.empty() || word.starts_with(".") || word.starts_with("#") || word.starts_with("//")) {
      if (line.starts_with(".") && line.contains(':')) // a label
        end();
      continue;
    }
    ++piece.second;
    piece.first += word.starts_with(multiplyAdd);
    for (llvm::StringRef branch : {"b", "j", "cb", "tb", "loop", "end_loop", "ret"})
      if (word.starts_with(branch)) {
        end();
        break;
      }
  }
  return most;
}

/// That of up to 96 rows. WebAssembly names operands by instructions of their own.
void check(const Cpu &cpu, const std::string &text) {
  const auto [products, all] = busiestPiece(assemblyOf(text, cpu.target, {}), cpu.multiplyAdd);
  EXPECT_EQ(products % cpu.tile, 0) << products << " of " << all;
  EXPECT_GE(products, cpu.tile);
  EXPECT_GE(products, cpu.share * all) << products << " of " << all;
}

constexpr int64_t columns = 192, depth = 256;

class InnerLoop : public ::testing::TestWithParam<Cpu> {};

TEST_P(InnerLoop, IsMostlyMultiplyAdds) {
  const int64_t tile = findTarget(GetParam().target)->weightTile(columns, depth);
  check(GetParam(), linearKernel(columns, depth, "#kiln.tiled<0, " + number(tile) + ">", 96, 96));
}

// Tiles are low where registers are few.
INSTANTIATE_TEST_SUITE_P(Targets, InnerLoop,
                         ::testing::Values(Cpu{"x86-64-v4", "vfmadd", 24, 0.55}, Cpu{"x86-64-v3", "vfmadd", 8, 0.45},
                                           Cpu{"aarch64", "fmla", 24, 0.55}, Cpu{"riscv64-v", "vfmacc.vf", 24, 0.5},
                                           Cpu{"riscv64", "fmadd.s", 16, 0.45}, Cpu{"wasm32", "f32x4.mul", 8, 0.09},
                                           Cpu{"wasm32-relaxed", "f32x4.relaxed_madd", 8, 0.09}),
                         [](const auto &info) { return nameOf(info.param); });

class InnerLoopOfInt8 : public ::testing::TestWithParam<Cpu> {};

TEST_P(InnerLoopOfInt8, IsMostlySumsOfProducts) {
  const Target *target = findTarget(GetParam().target);
  const std::string layout = "#kiln.tiled<0, " + number(target->weightTile(columns, depth)) +
                             ", interleave = " + number(target->hooks().wordBytes) + ", storage = <i8>>";
  check(GetParam(), int8Kernel(columns, depth, layout, 96, 96));
}

// Four steps of the depth in one instruction, two in one, or two in two, of which RISC-V names the second one
// otherwise.
INSTANTIATE_TEST_SUITE_P(Targets, InnerLoopOfInt8,
                         ::testing::Values(Cpu{"x86-64-v4-vnni", "vpdpbusd", 24, 0.5},
                                           Cpu{"x86-64-v3", "vpmaddwd", 12, 0.3},
                                           Cpu{"aarch64-dotprod", "sdot", 24, 0.45}, Cpu{"aarch64", "smlal", 48, 0.5},
                                           Cpu{"riscv64-v", "vwmacc.vx", 24, 0.2},
                                           Cpu{"wasm32", "i32x4.dot_i16x8_s", 8, 0.09}),
                         [](const auto &info) { return nameOf(info.param); });

} // namespace
} // namespace kiln::testing
