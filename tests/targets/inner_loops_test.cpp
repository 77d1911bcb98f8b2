// SPDX-License-Identifier: Apache-2.0
//
// The machine code of a contraction's inner loop on each supported CPU, including those that this machine cannot run:
// as many vector multiply-adds as the tile has accumulators, among few other instructions. For floats and int8
// activations.
#include "LinearKernel.h"

#include "llvm/ADT/StringRef.h"

namespace kiln::testing {
namespace {

struct Cpu {
  const char *target, *multiplyAdd; // target, and mnemonic in assembly
  int tile;                         // accumulator vectors
  double share;                     // minimum share of all instructions
};

/// Returns the name of the gtest parameter.
std::string nameOf(const Cpu &cpu) {
  std::string name = cpu.target;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Returns the numbers of multiply-adds and of all instructions of the basic block with the most multiply-adds, the
/// shortest of equals. Blocks end at labels and after branches.
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

/// Checks a kernel with up to 96 rows. WebAssembly has separate instructions for operands.
void check(const Cpu &cpu, const std::string &text) {
  const auto [products, all] = busiestPiece(assemblyOf(text, cpu.target, {}), cpu.multiplyAdd);
  EXPECT_EQ(products % cpu.tile, 0) << products << " of " << all;
  EXPECT_GE(products, cpu.tile);
  EXPECT_GE(products, cpu.share * all) << products << " of " << all;
}

constexpr int64_t columns = 192, kExtent = 256;

class InnerLoop : public ::testing::TestWithParam<Cpu> {};

TEST_P(InnerLoop, IsMostlyMultiplyAdds) {
  const int64_t tile = findTarget(GetParam().target)->weightTile(columns, kExtent);
  check(GetParam(), linearKernel(columns, kExtent, "#kiln.tiled<0, " + number(tile) + ">", 96, 96));
}

// Tiles have few rows where registers are few.
INSTANTIATE_TEST_SUITE_P(Targets, InnerLoop,
                         ::testing::Values(Cpu{"x86-64-v4", "vfmadd", 24, 0.55}, Cpu{"x86-64-v3", "vfmadd", 8, 0.45},
                                           Cpu{"aarch64", "fmla", 24, 0.55}, Cpu{"riscv64-v", "vfmacc.vf", 24, 0.5},
                                           Cpu{"riscv64", "fmadd.s", 16, 0.45}, Cpu{"wasm32", "f32x4.mul", 8, 0.09},
                                           Cpu{"wasm32-relaxed", "f32x4.relaxed_madd", 8, 0.09}),
                         [](const auto &info) { return nameOf(info.param); });

class InnerLoopOfInt8 : public ::testing::TestWithParam<Cpu> {};

TEST_P(InnerLoopOfInt8, IsMostlySumsOfProducts) {
  const Target *target = findTarget(GetParam().target);
  const std::string layout = "#kiln.tiled<0, " + number(target->weightTile(columns, kExtent)) +
                             ", interleave = " + number(target->hooks().interleaveBytes) + ", storage = <i8>>";
  check(GetParam(), int8Kernel(columns, kExtent, layout, 96, 96));
}

// An instruction has four K steps or two, or two instructions have two, of which RISC-V's second one has another name.
INSTANTIATE_TEST_SUITE_P(Targets, InnerLoopOfInt8,
                         ::testing::Values(Cpu{"x86-64-v4-vnni", "vpdpbusd", 24, 0.5},
                                           Cpu{"x86-64-v3", "vpmaddwd", 12, 0.3},
                                           Cpu{"aarch64-dotprod", "sdot", 24, 0.45}, Cpu{"aarch64", "smlal", 48, 0.5},
                                           Cpu{"riscv64-v", "vwmacc.vx", 24, 0.2},
                                           Cpu{"wasm32", "i32x4.dot_i16x8_s", 8, 0.09}),
                         [](const auto &info) { return nameOf(info.param); });

} // namespace
} // namespace kiln::testing
