// SPDX-License-Identifier: Apache-2.0
//
// The machine code of a contraction's inner loop on each CPU that models are compiled for, also where none of it can be
// run: as many multiply-adds of vectors as the tile has, among few other instructions.
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

/// Multiply-adds and instructions of the straight piece of code that has most multiply-adds.
std::pair<int, int> busiestPiece(llvm::StringRef assembly, llvm::StringRef multiplyAdd) {
  std::pair<int, int> most, piece;
  while (!assembly.empty()) {
    llvm::StringRef line;
    std::tie(line, assembly) = assembly.split('\n');
    const bool isInstruction = line.starts_with("\t") && line.size() > 1 && line[1] != '.' && line[1] != '#';
    if (!isInstruction) {
      if (line.contains(':')) // a label
        piece = {};
      continue;
    }
    ++piece.second;
    piece.first += line.drop_front().starts_with(multiplyAdd);
    if (piece.first > most.first || (piece.first == most.first && piece.second > most.second && line.contains("\tb")))
      most = piece;
  }
  return most;
}

class InnerLoop : public ::testing::TestWithParam<Cpu> {};

TEST_P(InnerLoop, IsMostlyMultiplyAdds) {
  const Cpu &cpu = GetParam();
  const int64_t n = 192, k = 256, tile = findTarget(cpu.target)->weightTile(n, k);
  const std::string text = linearKernel(n, k, "#kiln.tiled<0, " + number(tile) + ">", 96, 96);
  const auto [products, all] = busiestPiece(assemblyOf(text, cpu.target, {}), cpu.multiplyAdd);
  EXPECT_EQ(products % cpu.tile, 0) << products << " of " << all;
  EXPECT_GE(products, cpu.tile);
  EXPECT_GE(products, cpu.share * all) << products << " of " << all;
}

// WebAssembly names the operands of an instruction by instructions of their own.
INSTANTIATE_TEST_SUITE_P(Targets, InnerLoop,
                         ::testing::Values(Cpu{"x86-64-v4", "vfmadd", 24, 0.6}, Cpu{"x86-64-v3", "vfmadd", 12, 0.5},
                                           Cpu{"aarch64", "fmla", 24, 0.5}, Cpu{"riscv64-v", "vfmacc.vf", 24, 0.5},
                                           Cpu{"riscv64", "fmadd.s", 24, 0.5}, Cpu{"wasm32", "f32x4.mul", 8, 0.05},
                                           Cpu{"wasm32-relaxed", "f32x4.relaxed_madd", 8, 0.05}),
                         [](const auto &info) { return nameOf(info.param); });

} // namespace
} // namespace kiln::testing
