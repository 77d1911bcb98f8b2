// SPDX-License-Identifier: Apache-2.0
//
// ldmatrix, stmatrix and mma.sync of sm_75 to sm_90. Lane 4 g + t of a fragment holds elements of row g and of columns
// that follow from t (PTX ISA, "Matrix Fragments for mma.m16n8k16" and the sections next to it).
#include <fmt/format.h>

#include "Banks.h"
#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

void requireAll(const Warp &warp, const char *what) {
  if (warp.executing != allLanes)
    throw Fault(fmt::format("{} needs all 32 lanes, here are {:#x}", what, warp.executing));
}

/// Returns the row of 16 bytes at a lane's address. Lanes 8 m to 8 m + 7 have the addresses of the rows of matrix m.
Bytes rowOf(Warp &warp, const Instruction &i, unsigned matrix, unsigned row, Access access, const void *values) {
  const unsigned lane = matrix * 8 + row;
  std::uint64_t at = warp.address(i.operands[i.elements], i, lane);
  if (i.space == Space::generic && (at & ~(windowSize - 1)) != sharedWindow)
    throw Fault("the address of a matrix is not in shared memory", static_cast<int>(lane));
  at &= windowSize - 1;
  if (at % 16)
    throw Fault(fmt::format("a row of a matrix is at {:#x}, which is misaligned: a multiple of 16 is required", at),
                static_cast<int>(lane));
  return warp.block.cluster.reachShared(warp, at, 16, access, wholeWarp, values);
}

/// Operands: a register for each matrix, the address. flags: transposed.
void loadMatrices(Warp &warp, const Instruction &i) {
  if (!warp.together())
    return;
  requireAll(warp, "ldmatrix");
  BankCount banks(16);
  for (unsigned lane = 0; lane < i.elements * 8U; ++lane)
    banks.add(warp.address(i.operands[i.elements], i, lane));
  warp.block.launch.bankConflicts += banks.conflicts();
  std::uint16_t matrices[4][8][8];
  for (unsigned m = 0; m < i.elements; ++m)
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(matrices[m][row], rowOf(warp, i, m, row, Access::read, nullptr).data, 16);
  for (unsigned m = 0; m < i.elements; ++m) {
    std::uint32_t result[warpSize];
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      const unsigned g = lane / 4, t = lane % 4 * 2;
      const std::uint32_t low = i.flags[0] ? matrices[m][t][g] : matrices[m][g][t];
      const std::uint32_t high = i.flags[0] ? matrices[m][t + 1][g] : matrices[m][g][t + 1];
      result[lane] = low | high << 16;
    }
    warp.put(i.operands[m], result);
  }
}

void storeMatrices(Warp &warp, const Instruction &i) {
  if (!warp.together())
    return;
  requireAll(warp, "stmatrix");
  for (unsigned m = 0; m < i.elements; ++m) {
    const auto *values = warp.read<std::uint32_t>(i.operands[m]);
    std::uint16_t matrix[8][8];
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      const unsigned g = lane / 4, t = lane % 4 * 2;
      (i.flags[0] ? matrix[t][g] : matrix[g][t]) = static_cast<std::uint16_t>(values[lane]);
      (i.flags[0] ? matrix[t + 1][g] : matrix[g][t + 1]) = static_cast<std::uint16_t>(values[lane] >> 16);
    }
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(rowOf(warp, i, m, row, Access::write, matrix[row]).data, matrix[row], 16);
  }
}

template <bool loads> void decodeMatrix(Decoding &d) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8"))
    d.fail("matrices of 8 x 8 with .sync.aligned are modelled");
  const std::string_view count = d.takeOneOf({"x1", "x2", "x4"});
  if (count.empty())
    d.fail("the number of matrices is .x1, .x2 or .x4");
  d.out.flags[0] = d.take("trans");
  d.out.space = d.takeOneOf({"shared", "shared::cta"}).empty() ? Space::generic : Space::shared;
  if (const Type type = d.takeType(); type != Type::b16)
    d.failType(type);
  d.expectOperands(2);
  d.out.elements = static_cast<std::uint8_t>(count[1] - '0');
  for (const syntax::Operand &part : d.parts(loads ? 0 : 1, d.out.elements))
    loads ? d.target(part, Type::b32) : d.source(part, Type::b32);
  d.address(d.operand(loads ? 1 : 0));
  d.emit(loads ? &loadMatrices : &storeMatrices);
}

/// Gathers the elements of registers of A (row g) or B (column g) along K: `perRegister` consecutive ones each.
template <class T, class Read>
void gatherRows(Warp &warp, const Operand *registers, unsigned count, unsigned rows, unsigned perRegister, Read read,
                T (*matrix)[32]) {
  for (unsigned r = 0; r < count; ++r) {
    const auto *values = warp.read<std::uint32_t>(registers[r]);
    // A has 16 rows: the registers alternate between the upper and the lower eight rows.
    const unsigned row = rows == 16 ? r % 2 * 8 : 0, part = rows == 16 ? r / 2 : r;
    for (unsigned lane = 0; lane < warpSize; ++lane)
      for (unsigned e = 0; e < perRegister; ++e)
        matrix[row + lane / 4][part * 4 * perRegister + lane % 4 * perRegister + e] = read(values[lane], e);
  }
}

/// Operands: D, A, B, C. flags: the numbers of registers of D and C, of A, of B. flags[3]: the elements of a register.
template <class T, class Read> void products(Warp &warp, const Instruction &i, Read read, T (&sums)[16][8]) {
  static thread_local T a[16][32], b[8][32];
  const unsigned nd = i.flags[0], na = i.flags[1], nb = i.flags[2], per = i.flags[3];
  gatherRows(warp, i.operands + nd, na, 16, per, read, a);
  gatherRows(warp, i.operands + nd + na, nb, 8, per, read, b);
  const unsigned k = nb * 4 * per;
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      T sum = 0;
      for (unsigned j = 0; j < k; ++j)
        sum += a[row][j] * b[column][j];
      sums[row][column] = sum;
    }
}

/// Row and column of element e of D.
unsigned rowOfD(unsigned lane, unsigned e) { return lane / 4 + e / 2 * 8; }
unsigned columnOfD(unsigned lane, unsigned e) { return lane % 4 * 2 + e % 2; }

float readF16(std::uint32_t bits, unsigned e) { return fromF16(static_cast<std::uint16_t>(bits >> 16 * e)); }
float readBf16(std::uint32_t bits, unsigned e) { return fromBf16(static_cast<std::uint16_t>(bits >> 16 * e)); }
float readTf32Element(std::uint32_t bits, unsigned) { return readTf32(bits); }
int readS8(std::uint32_t bits, unsigned e) { return static_cast<std::int8_t>(bits >> 8 * e); }
int readU8(std::uint32_t bits, unsigned e) { return static_cast<std::uint8_t>(bits >> 8 * e); }

template <class T, auto read> void mma(Warp &warp, const Instruction &i) {
  if (!warp.together())
    return;
  requireAll(warp, "mma");
  T sums[16][8];
  products<T>(warp, i, read, sums);
  const Operand *c = i.operands + i.flags[0] + i.flags[1] + i.flags[2];
  T results[4][warpSize];
  for (unsigned e = 0; e < 4; ++e) {
    const T *adds = warp.read<T>(c[e]);
    for (unsigned lane = 0; lane < warpSize; ++lane)
      results[e][lane] = adds[lane] + sums[rowOfD(lane, e)][columnOfD(lane, e)];
  }
  for (unsigned e = 0; e < 4; ++e)
    warp.put(i.operands[e], results[e]);
}

/// C and D in f16, two elements a register.
void mmaToHalf(Warp &warp, const Instruction &i) {
  if (!warp.together())
    return;
  requireAll(warp, "mma");
  float sums[16][8];
  products<float>(warp, i, readF16, sums);
  const Operand *c = i.operands + i.flags[0] + i.flags[1] + i.flags[2];
  std::uint32_t results[2][warpSize];
  for (unsigned r = 0; r < 2; ++r) {
    const auto *adds = warp.read<std::uint32_t>(c[r]);
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      const auto one = [&](unsigned e) -> std::uint32_t {
        return toF16(readF16(adds[lane], e) + sums[rowOfD(lane, 2 * r + e)][columnOfD(lane, 2 * r + e)]);
      };
      results[r][lane] = one(0) | one(1) << 16;
    }
  }
  for (unsigned r = 0; r < 2; ++r)
    warp.put(i.operands[r], results[r]);
}

struct Shape {
  std::string_view name;
  Type type, accumulator;
  unsigned d, a, b, per;
  Handler handler;
};
constexpr Shape shapes[] = {{"m16n8k8", Type::f16, Type::f32, 4, 2, 1, 2, &mma<float, readF16>},
                            {"m16n8k16", Type::f16, Type::f32, 4, 4, 2, 2, &mma<float, readF16>},
                            {"m16n8k16", Type::f16, Type::f16, 2, 4, 2, 2, &mmaToHalf},
                            {"m16n8k8", Type::bf16, Type::f32, 4, 2, 1, 2, &mma<float, readBf16>},
                            {"m16n8k16", Type::bf16, Type::f32, 4, 4, 2, 2, &mma<float, readBf16>},
                            {"m16n8k4", Type::tf32, Type::f32, 4, 2, 1, 1, &mma<float, readTf32Element>},
                            {"m16n8k8", Type::tf32, Type::f32, 4, 4, 2, 1, &mma<float, readTf32Element>},
                            {"m16n8k16", Type::s8, Type::s32, 4, 2, 1, 4, &mma<int, readS8>},
                            {"m16n8k32", Type::s8, Type::s32, 4, 4, 2, 4, &mma<int, readS8>},
                            {"m16n8k32", Type::u8, Type::s32, 4, 4, 2, 4, &mma<int, readU8>}};

void decodeMma(Decoding &d) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("row") || !d.take("col"))
    d.fail("mma is modelled as mma.sync.aligned with .row.col");
  const std::string_view size = d.takeOneOf({"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32"});
  const Type result = d.takeType(), a = d.takeType(), b = d.takeType(), c = d.takeType();
  const Shape *shape = nullptr;
  for (const Shape &one : shapes)
    if (one.name == size && one.type == a && one.accumulator == result)
      shape = &one;
  if (!shape || a != b || c != result)
    d.fail("this shape and types of mma are not modelled");
  d.out.flags[0] = shape->d;
  d.out.flags[1] = shape->a;
  d.out.flags[2] = shape->b;
  d.out.flags[3] = shape->per;
  d.expectOperands(4);
  for (const syntax::Operand &part : d.parts(0, shape->d))
    d.target(part, Type::b32);
  for (const syntax::Operand &part : d.parts(1, shape->a))
    d.source(part, Type::b32);
  for (const syntax::Operand &part : d.parts(2, shape->b))
    d.source(part, Type::b32);
  for (const syntax::Operand &part : d.parts(3, shape->d))
    d.source(part, Type::b32);
  d.emit(shape->handler);
}

} // namespace

std::span<const Opcode> matrixOpcodes() {
  static constexpr Opcode opcodes[] = {
      {"ldmatrix", &decodeMatrix<true>}, {"mma", &decodeMma}, {"stmatrix", &decodeMatrix<false>}};
  return opcodes;
}

} // namespace kiln::ptx
