// SPDX-License-Identifier: Apache-2.0
//
// wgmma of sm_90a: MMAs of 64 x N by four warps, each with 16 rows. A is in shared memory or in registers, B in shared
// memory, with matrix descriptors (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout"). The sums are
// written immediately. Reads of shared memory are repeated for the race detector at the wait, so that a pipeline stage
// that is released too early is detected.
#include <fmt/format.h>

#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"
#include "TensorMap.h"

namespace kiln::ptx {
namespace {

using Swizzle = TensorMap::Swizzle;

/// Fields of a matrix descriptor; addresses and strides in bytes.
struct Descriptor {
  std::uint32_t start, leading, stride;
  Swizzle swizzle;
};
Descriptor descriptorOf(std::uint64_t bits) {
  const auto field = [&](unsigned at) { return static_cast<std::uint32_t>(bits >> at & 0x3fff) << 4; };
  constexpr Swizzle swizzles[] = {Swizzle::none, Swizzle::bytes128, Swizzle::bytes64, Swizzle::bytes32};
  if (bits >> 49 & 7)
    throw Fault("a base offset in a matrix descriptor is not modelled");
  return {field(0), field(16), field(32), swizzles[bits >> 62]};
}

/// Returns the address of 16 bytes of a matrix: of row `row` (along M or N) and byte `byte` along K or, where rows are
/// contiguous in memory, of step `row` along K and byte `byte` along M or N.
std::uint32_t chunkAddress(const Descriptor &d, bool transposed, unsigned row, unsigned byte) {
  std::uint32_t at;
  if (d.swizzle == Swizzle::none) {
    if (transposed)
      throw Fault("a transposed matrix without a swizzle is not modelled");
    at = d.start + row / 8 * d.stride + row % 8 * 16 + byte / 16 * d.leading;
  } else {
    const std::uint32_t width = 16U << static_cast<unsigned>(d.swizzle);
    if (transposed)
      at = d.start + byte / width * d.leading + row / 8 * d.stride + row % 8 * width + byte % width;
    else
      at = d.start + row / 8 * d.stride + row % 8 * width + byte;
  }
  return swizzled(at, d.swizzle);
}

float readElement(const std::byte *from, Type type) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, from, bytesOf(type));
  return type == Type::tf32   ? readTf32(bits)
         : type == Type::bf16 ? fromBf16(static_cast<std::uint16_t>(bits))
                              : fromF16(static_cast<std::uint16_t>(bits));
}

/// Gathers rows `first` to `first + rows` of a matrix with k steps along K.
void gather(Warp &warp, std::uint64_t bits, bool transposed, unsigned first, unsigned rows, unsigned k, Type type,
            std::vector<float> &matrix) {
  const Descriptor d = descriptorOf(bits);
  const unsigned size = bytesOf(type), per = 16 / size;
  const unsigned outer = transposed ? k : rows, inner = transposed ? rows : k, skip = transposed ? 0 : first;
  matrix.resize(static_cast<std::size_t>(rows) * k);
  for (unsigned o = 0; o < outer; ++o)
    for (unsigned i = 0; i < inner; i += per) {
      const std::uint32_t at = chunkAddress(d, transposed, o + skip, (i + (transposed ? first : 0)) * size);
      const Bytes found = warp.block.cluster.reachShared(warp, at, 16, Access::read, wholeWarp);
      warp.matrixReads.open.push_back({at, warp.current().line});
      ++warp.block.matrixReaders;
      for (unsigned e = 0; e < per; ++e)
        matrix[transposed ? static_cast<std::size_t>(i + e) * k + o : static_cast<std::size_t>(o) * k + i + e] =
            readElement(found.data + e * size, type);
    }
}

/// Gathers 16 rows of A from four registers, in the layout of mma.sync.
void gatherRegisters(Warp &warp, const Operand *registers, unsigned k, Type type, std::vector<float> &matrix) {
  const unsigned per = 4 / bytesOf(type);
  matrix.resize(16 * k);
  for (unsigned r = 0; r < 4; ++r) {
    const auto *values = warp.read<std::uint32_t>(registers[r]);
    for (unsigned lane = 0; lane < warpSize; ++lane)
      for (unsigned e = 0; e < per; ++e) {
        const std::uint32_t bits = values[lane] >> 16 * e;
        matrix[(r % 2 * 8 + lane / 4) * k + r / 2 * 4 * per + lane % 4 * per + e] =
            readElement(reinterpret_cast<const std::byte *>(&bits), type);
      }
  }
}

enum Flags : std::uint32_t { aInRegisters = 1, transposesA = 2, transposesB = 4, negatesA = 8, negatesB = 16 };

void requireGroup(const Warp &warp) {
  if (warp.executing != allLanes || warp.block.warps.size() < warp.index / 4 * 4 + 4)
    throw Fault("wgmma needs four whole warps, the first of which has a number that four divides");
}

/// Operands: sums, A or its descriptor, descriptor of B, whether to accumulate. flags: N, K, flags above.
void multiply(Warp &warp, const Instruction &i) {
  if (!warp.together())
    return;
  requireGroup(warp);
  const unsigned n = i.flags[0], k = i.flags[1], sums = n / 2;
  const std::uint32_t flags = i.flags[2];
  static thread_local std::vector<float> a, b;
  const Operand *left = i.operands + sums;
  const unsigned lefts = flags & aInRegisters ? 4 : 1;
  if (flags & aInRegisters)
    gatherRegisters(warp, left, k, i.type, a);
  else
    gather(warp, warp.read<std::uint64_t>(left[0])[0], flags & transposesA, warp.index % 4 * 16, 16, k, i.type, a);
  gather(warp, warp.read<std::uint64_t>(left[lefts])[0], flags & transposesB, 0, n, k, i.type, b);
  const bool adds = warp.readPredicate(left[lefts + 1]) & 1;
  const float sign = !(flags & negatesA) == !(flags & negatesB) ? 1.0F : -1.0F;
  for (unsigned r = 0; r < sums; ++r) {
    const float *before = adds ? warp.read<float>(i.operands[r]) : nullptr;
    float result[warpSize];
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      const float *x = a.data() + (lane / 4 + r % 4 / 2 * 8) * k;
      const float *y = b.data() + (r / 4 * 8 + lane % 4 * 2 + r % 2) * k;
      float sum = 0;
      for (unsigned step = 0; step < k; ++step)
        sum += x[step] * y[step];
      result[lane] = (adds ? before[lane] : 0) + sign * sum;
    }
    warp.put(i.operands[r], result);
  }
}

void commit(Warp &warp, const Instruction &) {
  if (!warp.together())
    return;
  warp.matrixReads.committed.push_back(std::move(warp.matrixReads.open));
  warp.matrixReads.open.clear();
}

/// flags: how many groups may stay pending.
void wait(Warp &warp, const Instruction &i) {
  if (!warp.together())
    return;
  auto &committed = warp.matrixReads.committed;
  while (committed.size() > i.flags[0]) {
    for (const MatrixRead &read : committed.front()) {
      Accessor who = warp.accessor(wholeWarp);
      who.line = read.line;
      warp.block.races.read(read.address - warp.block.launch.program.sharedStart, 16, who);
    }
    warp.block.matrixReaders -= committed.front().size();
    committed.erase(committed.begin());
  }
}

void together(Warp &warp, const Instruction &) { warp.together(); }

void decodeMultiply(Decoding &d) {
  unsigned n = 0;
  std::string shape;
  for (const std::string &modifier : d.modifiers())
    if (modifier.starts_with("m64n"))
      shape = modifier;
  d.take(shape);
  const std::size_t split = shape.find('k');
  if (split == std::string::npos)
    d.fail("the shape is m64nNkK");
  n = static_cast<unsigned>(std::stoul(shape.substr(4, split - 4)));
  const unsigned k = static_cast<unsigned>(std::stoul(shape.substr(split + 1)));
  const Type sum = d.takeType(), a = d.takeType(), b = d.takeType();
  const bool shorts = a == Type::f16 || a == Type::bf16;
  if (sum != Type::f32 || a != b || (!shorts && a != Type::tf32) || k * bytesOf(a) != 32 || n % 8 || n == 0 || n > 256)
    d.fail("this shape and types of wgmma are not modelled");
  d.out.type = a;
  d.out.flags[0] = n;
  d.out.flags[1] = k;
  for (const syntax::Operand &part : d.parts(0, n / 2))
    d.target(part, Type::b32);
  const bool registers = d.operand(1).form == syntax::Operand::Form::list;
  d.expectOperands(6 + (shorts ? (registers ? 1 : 2) : 0));
  if (registers)
    for (const syntax::Operand &part : d.parts(1, 4))
      d.source(part, Type::b32);
  else
    d.source(d.operand(1), Type::b64);
  d.source(d.operand(2), Type::b64);
  d.predicateSource(d.operand(3));
  const auto isSet = [&](std::size_t i, std::uint32_t flag) { return d.operand(i).bits == 1 ? flag : 0U; };
  std::uint32_t flags = registers ? aInRegisters : 0U;
  flags |= d.operand(4).bits == 1 ? 0U : negatesA;
  flags |= d.operand(5).bits == 1 ? 0U : negatesB;
  if (shorts)
    flags |= registers ? isSet(6, transposesB) : isSet(6, transposesA) | isSet(7, transposesB);
  d.out.flags[2] = flags;
  d.emit(&multiply);
}

void decodeWgmma(Decoding &d) {
  const std::string_view kind = d.takeOneOf({"fence", "commit_group", "wait_group", "mma_async"});
  if (!d.take("sync") || !d.take("aligned"))
    d.fail("wgmma needs .sync.aligned");
  if (kind == "mma_async")
    return decodeMultiply(d);
  if (kind == "wait_group") {
    d.expectOperands(1);
    d.out.flags[0] = static_cast<std::uint32_t>(d.operand(0).bits);
    return d.emit(&wait);
  }
  d.expectOperands(0);
  d.emit(kind == "commit_group" ? &commit : &together);
}

void decodeRegisters(Decoding &d) {
  if (d.takeOneOf({"inc", "dec"}).empty() || !d.take("sync") || !d.take("aligned") || !d.take("u32"))
    d.fail("setmaxnreg is .inc or .dec, .sync.aligned.u32");
  d.expectOperands(1);
  const std::uint64_t count = d.operand(0).bits;
  if (count % 8 || count < 24 || count > 256)
    d.fail("setmaxnreg takes 24 to 256 registers, a multiple of 8");
  d.emit(&together);
}

} // namespace

std::span<const Opcode> wgmmaOpcodes() {
  static constexpr Opcode opcodes[] = {{"setmaxnreg", &decodeRegisters}, {"wgmma", &decodeWgmma}};
  return opcodes;
}

} // namespace kiln::ptx
