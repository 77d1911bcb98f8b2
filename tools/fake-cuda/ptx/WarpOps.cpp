// SPDX-License-Identifier: Apache-2.0
//
// Communication between the lanes of a warp: shfl, vote, match, activemask, elect, redux.
#include <algorithm>
#include <fmt/format.h>

#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

/// Returns the participating lanes: the mask of the first executing lane. All lanes must have the same mask, and be in
/// it.
std::uint32_t members(Warp &warp, const Operand &operand) {
  const auto *masks = warp.read<std::uint32_t>(operand);
  const std::uint32_t mask = masks[std::countr_zero(warp.executing)];
  eachLane(warp.executing, [&](unsigned lane) {
    if (!(masks[lane] >> lane & 1))
      throw Fault(fmt::format("the mask {:#x} of members has not the lane itself", masks[lane]),
                  static_cast<int>(lane));
    if (masks[lane] != mask)
      throw Fault(fmt::format("lanes name different members: {:#x} and {:#x}", mask, masks[lane]),
                  static_cast<int>(lane));
  });
  return mask;
}

enum class Shuffle : std::uint32_t { up, down, butterfly, index };

/// Operands: result, whether the source is in range, value, lane or distance, clamp and segments, members.
void shuffle(Warp &warp, const Instruction &i) {
  if (!warp.together(members(warp, i.operands[5])))
    return;
  const auto *values = warp.peek<std::uint32_t>(i.operands[2]);
  const std::uint32_t there = warp.definedLanes(i.operands[2]);
  const auto *by = warp.read<std::uint32_t>(i.operands[3]), *controls = warp.read<std::uint32_t>(i.operands[4]);
  const auto kind = static_cast<Shuffle>(i.flags[0]);
  std::uint32_t result[warpSize] = {}, inRange = 0;
  eachLane(warp.executing, [&](unsigned lane) {
    const unsigned b = by[lane] & 31, segment = controls[lane] >> 8 & 31, clamp = controls[lane] & 31;
    const unsigned most = (lane & segment) | (clamp & ~segment), least = lane & segment;
    int from = 0;
    bool good = false;
    switch (kind) {
    case Shuffle::up:
      from = static_cast<int>(lane) - static_cast<int>(b);
      good = from >= static_cast<int>(most);
      break;
    case Shuffle::down:
      from = static_cast<int>(lane + b);
      good = from <= static_cast<int>(most);
      break;
    case Shuffle::butterfly:
      from = static_cast<int>(lane ^ b);
      good = from <= static_cast<int>(most);
      break;
    case Shuffle::index:
      from = static_cast<int>(least | (b & ~segment));
      good = from <= static_cast<int>(most);
      break;
    }
    if (!good)
      from = static_cast<int>(lane);
    inRange |= static_cast<std::uint32_t>(good) << lane;
    if (!(warp.executing >> from & 1))
      throw Fault(fmt::format("takes the value of lane {}, which is not there", from), static_cast<int>(lane));
    if (!(there >> from & 1))
      throw Fault(fmt::format("takes the value of lane {}, whose register has not been written", from),
                  static_cast<int>(lane));
    result[lane] = values[from];
  });
  warp.put(i.operands[0], result);
  warp.writePredicate(i.operands[1], inRange);
}

void decodeShfl(Decoding &d) {
  if (!d.take("sync"))
    d.fail("shfl without .sync is not modelled");
  const std::string_view kind = d.takeOneOf({"up", "down", "bfly", "idx"});
  if (kind.empty())
    d.fail("shfl needs .up, .down, .bfly or .idx");
  d.out.flags[0] = static_cast<std::uint32_t>(kind == "up"     ? Shuffle::up
                                              : kind == "down" ? Shuffle::down
                                              : kind == "bfly" ? Shuffle::butterfly
                                                               : Shuffle::index);
  if (bitsOf(d.takeType()) != 32)
    d.fail("shfl is of 32 bits");
  d.expectOperands(5);
  d.targetAndPredicate(d.operand(0), Type::b32);
  for (unsigned i = 1; i < 5; ++i)
    d.source(d.operand(i), Type::b32);
  d.emit(&shuffle);
}

/// flags: all, any, uni; ballot has a separate handler. Operands: result, predicate, members.
void vote(Warp &warp, const Instruction &i) {
  const std::uint32_t mask = members(warp, i.operands[2]);
  if (!warp.together(mask))
    return;
  const std::uint32_t lanes = warp.readPredicate(i.operands[1]) & warp.executing;
  const bool all = lanes == warp.executing, any = lanes != 0;
  const bool answer = i.flags[0] == 0 ? all : i.flags[0] == 1 ? any : all || !any;
  warp.writePredicate(i.operands[0], answer ? allLanes : 0);
}

void ballot(Warp &warp, const Instruction &i) {
  if (!warp.together(members(warp, i.operands[2])))
    return;
  std::uint32_t result[warpSize];
  std::fill_n(result, warpSize, warp.readPredicate(i.operands[1]) & warp.executing);
  warp.put(i.operands[0], result);
}

void decodeVote(Decoding &d) {
  if (!d.take("sync"))
    d.fail("vote without .sync is not modelled");
  const std::string_view kind = d.takeOneOf({"all", "any", "uni", "ballot"});
  const Type type = d.takeType();
  d.expectOperands(3);
  if (kind == "ballot")
    d.target(d.operand(0), type);
  else
    d.predicateTarget(d.operand(0));
  d.predicateSource(d.operand(1));
  d.source(d.operand(2), Type::b32);
  d.out.flags[0] = kind == "all" ? 0 : kind == "any" ? 1 : 2;
  d.emit(kind == "ballot" ? &ballot : &vote);
}

/// match.any: returns the lanes with this lane's value; match.all: returns all lanes if they have the same value.
/// Operands: result, whether all have it, value, members. flags: all.
template <class T> void match(Warp &warp, const Instruction &i) {
  if (!warp.together(members(warp, i.operands[3])))
    return;
  const T *values = warp.read<T>(i.operands[2]);
  std::uint32_t result[warpSize] = {};
  bool all = true;
  eachLane(warp.executing, [&](unsigned lane) {
    eachLane(warp.executing, [&](unsigned other) {
      result[lane] |= static_cast<std::uint32_t>(values[lane] == values[other]) << other;
    });
    all &= result[lane] == warp.executing;
  });
  if (i.flags[0] && !all)
    std::fill_n(result, warpSize, 0);
  warp.put(i.operands[0], result);
  warp.writePredicate(i.operands[1], all ? allLanes : 0);
}

void decodeMatch(Decoding &d) {
  const std::string_view kind = d.takeOneOf({"any", "all"});
  if (!d.take("sync") || kind.empty())
    d.fail("match needs .any or .all, and .sync");
  d.out.flags[0] = kind == "all";
  const Type type = d.takeType();
  d.expectOperands(3);
  d.targetAndPredicate(d.operand(0), Type::b32);
  d.source(d.operand(1), type);
  d.source(d.operand(2), Type::b32);
  d.emit(bitsOf(type) == 32 ? &match<std::uint32_t> : &match<std::uint64_t>);
}

void activeMask(Warp &warp, const Instruction &i) {
  std::uint32_t result[warpSize];
  std::fill_n(result, warpSize, warp.executing);
  warp.put(i.operands[0], result);
}

void decodeActiveMask(Decoding &d) {
  d.takeType();
  d.expectOperands(1);
  d.target(d.operand(0), Type::b32);
  d.emit(&activeMask);
}

/// elect.sync: elects the first executing lane. Operands: its number, whether it is this lane, members.
void elect(Warp &warp, const Instruction &i) {
  if (!warp.together(members(warp, i.operands[2])))
    return;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(warp.executing));
  std::uint32_t result[warpSize];
  std::fill_n(result, warpSize, first);
  warp.put(i.operands[0], result);
  warp.writePredicate(i.operands[1], 1U << first);
}

void decodeElect(Decoding &d) {
  if (!d.take("sync") || d.operand(0).form != syntax::Operand::Form::pair)
    d.fail("elect needs .sync and two results");
  d.expectOperands(2);
  d.target(d.operand(0).parts[0], Type::b32);
  d.predicateTarget(d.operand(0).parts[1]);
  d.source(d.operand(1), Type::b32);
  d.emit(&elect);
}

enum class Reduction : std::uint32_t { add, least, most, conjunction, disjunction, exclusive };

template <class T> void reduce(Warp &warp, const Instruction &i) {
  if (!warp.together(members(warp, i.operands[2])))
    return;
  const T *values = warp.read<T>(i.operands[1]);
  T sum = values[std::countr_zero(warp.executing)];
  eachLane(warp.executing & (warp.executing - 1), [&](unsigned lane) {
    const T value = values[lane];
    switch (static_cast<Reduction>(i.flags[0])) {
    case Reduction::add:
      sum = static_cast<T>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(value));
      break;
    case Reduction::least:
      sum = std::min(sum, value);
      break;
    case Reduction::most:
      sum = std::max(sum, value);
      break;
    case Reduction::conjunction:
      sum &= value;
      break;
    case Reduction::disjunction:
      sum |= value;
      break;
    case Reduction::exclusive:
      sum ^= value;
      break;
    }
  });
  T result[warpSize];
  std::fill_n(result, warpSize, sum);
  warp.put(i.operands[0], result);
}

void decodeRedux(Decoding &d) {
  constexpr std::string_view names[] = {"add", "min", "max", "and", "or", "xor"};
  unsigned kind = 0;
  while (kind < std::size(names) && !d.take(names[kind]))
    ++kind;
  const Type type = d.takeType();
  if (!d.take("sync") || kind == std::size(names) || bitsOf(type) != 32 || isFloat(type))
    d.failType(type);
  d.out.flags[0] = kind;
  d.expectOperands(3);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.source(d.operand(2), Type::b32);
  d.emit(isSigned(type) ? &reduce<std::int32_t> : &reduce<std::uint32_t>);
}

} // namespace

std::span<const Opcode> warpOpcodes() {
  static constexpr Opcode opcodes[] = {
      {"activemask", &decodeActiveMask}, {"elect", &decodeElect}, {"match", &decodeMatch},
      {"redux", &decodeRedux},           {"shfl", &decodeShfl},   {"vote", &decodeVote}};
  return opcodes;
}

} // namespace kiln::ptx
