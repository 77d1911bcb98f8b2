// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes of a warp: predicates, special registers, and memory of every space with all checks.
#include <algorithm>
#include <fmt/format.h>

#include "Block.h"
#include "Warp.h"

namespace kiln::ptx {
namespace {

std::uint32_t valueOf(Special special, const Block &block, unsigned warp, unsigned lane) {
  const LaunchConfig &config = block.launch.config;
  const unsigned thread = warp * warpSize + lane;
  const Dim3 &n = config.block, &grid = config.grid, &cluster = config.cluster, &id = block.id;
  const std::uint32_t bit = 1U << lane;
  switch (special) {
  case Special::tidX:
    return thread % n.x;
  case Special::tidY:
    return thread / n.x % n.y;
  case Special::tidZ:
    return thread / n.x / n.y;
  case Special::laneid:
    return lane;
  case Special::lanemaskEq:
    return bit;
  case Special::lanemaskLe:
    return bit | (bit - 1);
  case Special::lanemaskLt:
    return bit - 1;
  case Special::lanemaskGe:
    return ~(bit - 1);
  case Special::lanemaskGt:
    return ~(bit | (bit - 1));
  case Special::warpid:
    return warp;
  case Special::nwarpid:
    return static_cast<std::uint32_t>((n.count() + warpSize - 1) / warpSize);
  case Special::ntidX:
    return n.x;
  case Special::ntidY:
    return n.y;
  case Special::ntidZ:
    return n.z;
  case Special::ctaidX:
    return id.x;
  case Special::ctaidY:
    return id.y;
  case Special::ctaidZ:
    return id.z;
  case Special::nctaidX:
    return grid.x;
  case Special::nctaidY:
    return grid.y;
  case Special::nctaidZ:
    return grid.z;
  case Special::smid:
  case Special::gridid:
    return 0;
  case Special::nsmid:
    return 1;
  case Special::dynamicSmemSize:
    return config.dynamicShared;
  case Special::totalSmemSize:
    return block.sharedBytes;
  case Special::clusterCtaRank:
    return block.rank;
  case Special::clusterCtaidX:
    return id.x % cluster.x;
  case Special::clusterCtaidY:
    return id.y % cluster.y;
  case Special::clusterCtaidZ:
    return id.z % cluster.z;
  case Special::clusterNctaidX:
    return cluster.x;
  case Special::clusterNctaidY:
    return cluster.y;
  case Special::clusterNctaidZ:
    return cluster.z;
  case Special::clusterNctaRank:
    return static_cast<std::uint32_t>(cluster.count());
  case Special::clusteridX:
    return id.x / cluster.x;
  case Special::clusteridY:
    return id.y / cluster.y;
  case Special::clusteridZ:
    return id.z / cluster.z;
  case Special::nclusteridX:
    return grid.x / cluster.x;
  case Special::nclusteridY:
    return grid.y / cluster.y;
  case Special::nclusteridZ:
    return grid.z / cluster.z;
  }
  return 0;
}

const char *verbOf(Access access) {
  const bool writes = access == Access::write || access == Access::copy;
  return access == Access::read || access == Access::constant ? "reads" : writes ? "writes" : "updates";
}

} // namespace

void Warp::setSpecials(const Program &of) {
  executing = allLanes;
  for (const auto &[special, operand] : of.specials) {
    auto *row = write<std::uint32_t>(operand);
    for (unsigned lane = 0; lane < warpSize; ++lane)
      row[lane] = valueOf(special, block, index, lane);
  }
}

void Warp::unwritten(const Operand &operand) const {
  const auto number = static_cast<unsigned>(operand.number);
  throw Fault(fmt::format("reads register {}, which has not been written", program.registerNames[number]),
              std::countr_zero(executing & ~defined[number]));
}

std::uint32_t Warp::readPredicate(const Operand &operand) const {
  std::uint32_t lanes;
  if (operand.number < 0) {
    lanes = *reinterpret_cast<const std::uint32_t *>(constants + operand.row) ? allLanes : 0;
  } else {
    if (executing & ~defined[static_cast<unsigned>(operand.number)])
      unwritten(operand);
    lanes = predicates[static_cast<unsigned>(operand.number)];
  }
  return operand.negated ? ~lanes : lanes;
}

void Warp::writePredicate(const Operand &operand, std::uint32_t lanes) {
  const auto number = static_cast<unsigned>(operand.number);
  defined[number] |= executing;
  predicates[number] = (predicates[number] & ~executing) | (lanes & executing);
}

std::uint64_t Warp::address(const Operand &operand, const Instruction &instruction, unsigned lane) const {
  const std::uint64_t base =
      operand.bits == 64 ? read<std::uint64_t>(operand)[lane] : read<std::uint32_t>(operand)[lane];
  return base + static_cast<std::uint64_t>(instruction.offset);
}

Accessor Warp::accessor(unsigned lane) const { return {actor, &clock, lane, current().line}; }

Bytes Warp::reachLocal(std::uint64_t at, unsigned bytes, unsigned lane) {
  if (at < localBase || at - localBase + bytes > program.localBytes)
    throw Fault(fmt::format("{} bytes at {:#x} are out of range of the {} bytes of local memory", bytes, at,
                            program.localBytes),
                static_cast<int>(lane));
  const std::size_t offset = static_cast<std::size_t>(lane) * program.localBytes + at - localBase;
  return {local.data() + offset, localWritten.data() + offset};
}

Bytes Warp::reach(Space space, std::uint64_t at, unsigned bytes, unsigned alignment, Access access, unsigned lane,
                  const void *values) {
  const int thread = static_cast<int>(lane);
  if (space == Space::generic) {
    const std::uint64_t window = at & ~(windowSize - 1);
    space = window == sharedWindow  ? Space::shared
            : window == localWindow ? Space::local
            : window == paramWindow ? Space::param
                                    : Space::global;
    if (space != Space::global)
      at -= window;
  }
  if (at % alignment)
    throw Fault(fmt::format("{} {} bytes at {:#x}, which is misaligned: a multiple of {} is required", verbOf(access),
                            bytes, at, alignment),
                thread);
  Bytes found;
  if (space == Space::shared) {
    return block.cluster.reachShared(*this, at, bytes, access, lane, values);
  } else if (space == Space::local) {
    found = reachLocal(at, bytes, lane);
  } else if (space == Space::param) {
    static std::uint8_t always[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const auto parameters = block.launch.parameters;
    if (at > parameters.size() || bytes > parameters.size() - at)
      throw Fault(fmt::format("reads parameter bytes {} to {} of {}", at, at + bytes, parameters.size()), thread);
    if (access != Access::read)
      throw Fault("writes to the kernel's parameters", thread);
    return {const_cast<std::byte *>(parameters.data() + at), always};
  } else {
    if (space == Space::constant && access != Access::read)
      throw Fault("writes to constant memory", thread);
    if (program.waits && access != Access::constant && !(waited >> lane & 1))
      throw Fault(fmt::format("{} {} bytes at {:#x} before griddepcontrol.wait", verbOf(access), bytes, at), thread);
    found = block.launch.memory.access(at, bytes, verbOf(access), thread);
  }
  if (access == Access::write)
    std::memset(found.written, 1, bytes);
  else if (!std::all_of(found.written, found.written + bytes, [](std::uint8_t b) { return b != 0; }))
    throw Fault(fmt::format("{} {} bytes at {:#x} that have not all been written", verbOf(access), bytes, at), thread);
  if (access != Access::read && access != Access::constant)
    ++block.launch.changes;
  return found;
}

} // namespace kiln::ptx
