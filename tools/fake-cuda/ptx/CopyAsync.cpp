// SPDX-License-Identifier: Apache-2.0
//
// cp.async of sm_80: the bytes are copied from global to shared memory when the issuing thread waits, and must not be
// accessed until then. Other threads need a barrier after that wait, as for any write.
#include <fmt/format.h>

#include "Banks.h"
#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

CopyGroups &groupsOf(Warp &warp, unsigned lane) {
  if (warp.copies.empty())
    warp.copies.resize(warpSize);
  return warp.copies[lane];
}

/// Operands: target, source, and the number of bytes to read, with zero fill. flags: bytes, offset of the source.
void copy(Warp &warp, const Instruction &i) {
  const std::uint32_t bytes = i.flags[0];
  const auto *sizes = i.count > 2 ? warp.read<std::uint32_t>(i.operands[2]) : nullptr;
  BankCount banks(bytes);
  eachLane(warp.executing, [&](unsigned lane) {
    PendingCopy copy{0, bytes, {}, i.line};
    const std::uint32_t read = sizes ? sizes[lane] : bytes;
    if (read > bytes)
      throw Fault(fmt::format("copies {} bytes, of which {} are read", bytes, read), static_cast<int>(lane));
    const std::uint64_t to = warp.address(i.operands[0], i, lane);
    const std::uint64_t base = i.operands[1].bits == 64 ? warp.read<std::uint64_t>(i.operands[1])[lane]
                                                        : warp.read<std::uint32_t>(i.operands[1])[lane];
    const std::uint64_t from = base + static_cast<std::uint64_t>(static_cast<std::int32_t>(i.flags[1]));
    if (from % bytes)
      throw Fault(fmt::format("copies from {:#x}, which is misaligned: a multiple of {} is required", from, bytes),
                  static_cast<int>(lane));
    if (read)
      std::memcpy(copy.data.data(), warp.reach(Space::global, from, read, 1, Access::read, lane).data, read);
    banks.add(to);
    // Counts as a write here: earlier reads by other threads must be ordered before it.
    const Bytes target = warp.reach(Space::shared, to, bytes, bytes, Access::write, lane);
    std::memset(target.written, Block::pending, bytes);
    copy.offset = static_cast<std::uint32_t>(target.data - warp.block.shared.data());
    groupsOf(warp, lane).open.push_back(copy);
  });
  warp.block.launch.bankConflicts += banks.conflicts();
}

void finish(Warp &warp, unsigned lane, const std::vector<PendingCopy> &group) {
  Block &block = warp.block;
  for (const PendingCopy &copy : group) {
    std::memcpy(block.shared.data() + copy.offset, copy.data.data(), copy.bytes);
    std::memset(block.written.data() + copy.offset, 1, copy.bytes);
    block.races.write(copy.offset, copy.bytes, warp.accessor(lane));
  }
}

void commit(Warp &warp, const Instruction &) {
  eachLane(warp.executing, [&](unsigned lane) {
    CopyGroups &groups = groupsOf(warp, lane);
    groups.committed.push_back(std::move(groups.open));
    groups.open.clear();
  });
}

/// flags: how many groups may stay pending.
void wait(Warp &warp, const Instruction &i) {
  eachLane(warp.executing, [&](unsigned lane) {
    auto &committed = groupsOf(warp, lane).committed;
    if (committed.size() <= i.flags[0])
      return;
    const auto end = committed.end() - static_cast<std::ptrdiff_t>(i.flags[0]);
    for (auto group = committed.begin(); group != end; ++group)
      finish(warp, lane, *group);
    committed.erase(committed.begin(), end);
  });
}

void waitForAll(Warp &warp, const Instruction &) {
  eachLane(warp.executing, [&](unsigned lane) {
    CopyGroups &groups = groupsOf(warp, lane);
    for (const auto &group : groups.committed)
      finish(warp, lane, group);
    finish(warp, lane, groups.open);
    groups = {};
  });
}

void decodeCopy(Decoding &d) {
  const bool wide = d.take("cg");
  if (!wide && !d.take("ca"))
    d.fail("cp.async needs .ca or .cg");
  if (d.takeOneOf({"shared", "shared::cta"}).empty() || !d.take("global"))
    d.fail("cp.async goes from global to shared memory");
  d.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
  d.expectOperands(3, 4);
  const std::uint64_t bytes = d.operand(2).bits;
  if (d.operand(2).form != syntax::Operand::Form::integer || (bytes != 16 && (wide || (bytes != 4 && bytes != 8))))
    d.fail("cp.async copies 4, 8 or 16 bytes, and 16 with .cg");
  d.out.flags[0] = static_cast<std::uint32_t>(bytes);
  d.out.space = Space::generic;
  d.address(d.operand(1));
  if (d.out.space != Space::generic && d.out.space != Space::global)
    d.fail("the source is not in global memory");
  const Operand source = d.added(0);
  d.out.flags[1] = static_cast<std::uint32_t>(d.out.offset);
  d.clearOperands();
  d.out.space = Space::shared;
  d.address(d.operand(0));
  d.add(source);
  if (d.operands() > 3)
    d.source(d.operand(3), Type::u32);
  d.emit(&copy);
}

void decodeCp(Decoding &d) {
  if (!d.take("async"))
    d.fail("cp is modelled as cp.async");
  if (d.take("bulk"))
    return decodeBulkCopy(d);
  if (d.take("commit_group")) {
    d.expectOperands(0);
    return d.emit(&commit);
  }
  if (d.take("wait_all")) {
    d.expectOperands(0);
    return d.emit(&waitForAll);
  }
  if (d.take("wait_group")) {
    d.expectOperands(1);
    d.out.flags[0] = static_cast<std::uint32_t>(d.operand(0).bits);
    return d.emit(&wait);
  }
  decodeCopy(d);
}

} // namespace

std::span<const Opcode> copyOpcodes() {
  static constexpr Opcode opcodes[] = {{"cp", &decodeCp}};
  return opcodes;
}

} // namespace kiln::ptx
