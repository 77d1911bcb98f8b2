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

// Of 96 rows tiles are low where registers are few. WebAssembly names operands by instructions of their own.
INSTANTIATE_TEST_SUITE_P(Targets, InnerLoop,
                         ::testing::Values(Cpu{"x86-64-v4", "vfmadd", 24, 0.55}, Cpu{"x86-64-v3", "vfmadd", 8, 0.45},
                                           Cpu{"aarch64", "fmla", 24, 0.55}, Cpu{"riscv64-v", "vfmacc.vf", 24, 0.5},
                                           Cpu{"riscv64", "fmadd.s", 16, 0.45}, Cpu{"wasm32", "f32x4.mul", 8, 0.09},
                                           Cpu{"wasm32-relaxed", "f32x4.relaxed_madd", 8, 0.09}),
                         [](const auto &info) { return nameOf(info.param); });

} // namespace
} // namespace kiln::testing
