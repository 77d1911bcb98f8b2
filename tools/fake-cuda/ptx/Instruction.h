// SPDX-License-Identifier: Apache-2.0
//
// Executable instructions: a function for the instruction and its types, and operands that are offsets. A register is a
// row of 32 values, one per lane, each as wide as the register; so is a constant. Predicates are masks of 32 lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "Syntax.h"
#include "Type.h"

namespace kiln::ptx {

class Warp;
struct Instruction;
using Handler = void (*)(Warp &, const Instruction &);

constexpr unsigned warpSize = 32;
constexpr std::uint32_t allLanes = 0xffffffff;

struct Operand {
  std::uint32_t row = 0;    ///< in bytes: among the warp's rows, or the program's constants
  std::int32_t number = -1; ///< of the register; -1: a constant
  bool negated = false;     ///< of a predicate
  std::uint8_t bits = 0;    ///< of the register or constant
};

struct Instruction {
  Handler handler = nullptr;
  const Operand *operands = nullptr;
  std::uint32_t count = 0;
  std::uint32_t line = 0;
  std::int32_t guard = -1; ///< number of the predicate
  bool guardNegated = false;
  Space space = Space::generic;
  std::uint8_t bytes = 0;    ///< of an element in memory
  std::uint8_t elements = 1; ///< of a vector
  Type type = Type::none;
  std::int64_t offset = 0;     ///< of the address
  std::uint32_t target = 0;    ///< of a branch
  std::uint32_t flags[4] = {}; ///< specific to each instruction
};

/// The contents of a special register. The first ones differ between threads, the others between blocks.
enum class Special : unsigned char {
  tidX,
  tidY,
  tidZ,
  laneid,
  lanemaskEq,
  lanemaskLe,
  lanemaskLt,
  lanemaskGe,
  lanemaskGt,
  warpid,
  nwarpid,
  ntidX,
  ntidY,
  ntidZ,
  ctaidX,
  ctaidY,
  ctaidZ,
  nctaidX,
  nctaidY,
  nctaidZ,
  smid,
  nsmid,
  gridid,
  dynamicSmemSize,
  totalSmemSize,
  clusterCtaRank,
  clusterCtaidX,
  clusterCtaidY,
  clusterCtaidZ,
  clusterNctaidX,
  clusterNctaidY,
  clusterNctaidZ,
  clusterNctaRank,
  clusteridX,
  clusteridY,
  clusteridZ,
  nclusteridX,
  nclusteridY,
  nclusteridZ
};

struct Constant {
  std::uint64_t bits = 0;
  unsigned width = 32;
  /// A module variable, whose address in device memory is added.
  std::string variable;
};

/// An entry function with its called functions inlined, ready to run.
struct Program {
  std::vector<Instruction> code;
  std::vector<std::string> texts; ///< of each instruction
  std::vector<Operand> operands;
  std::vector<Constant> constants;
  std::vector<std::string> registerNames; ///< by number
  std::vector<std::pair<Special, Operand>> specials;
  std::uint32_t rowBytes = 0, constantBytes = 0;
  std::uint32_t localBytes = 0;   ///< of each thread, including call parameters
  std::uint32_t staticShared = 0; ///< bytes; the dynamic variables follow
  std::uint32_t sharedStart = 0;  ///< address of the block's shared memory
  bool waits = false;             ///< has griddepcontrol.wait
};

/// Where a module's shared variables start, as on sm_90, so that address zero is an error. If there are none, as in
/// Halide's modules, which use addresses from zero, shared memory starts at zero.
constexpr std::uint32_t sharedBase = 1024;
/// Where a thread's local memory starts.
constexpr std::uint32_t localBase = 1024;
/// Shared memory of the block with rank r of the cluster is at (r + 1) << sharedRankShift.
constexpr unsigned sharedRankShift = 24;
/// Generic-address windows of the other spaces.
constexpr std::uint64_t sharedWindow = 0x020000000000, localWindow = 0x030000000000, paramWindow = 0x040000000000,
                        windowSize = 0x010000000000;

} // namespace kiln::ptx
