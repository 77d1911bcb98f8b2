// SPDX-License-Identifier: Apache-2.0
//
// The fragments of a warp and their scheduling.
#include "Warp.h"

#include <algorithm>
#include <fmt/format.h>

#include "Block.h"

namespace kiln::ptx {

Warp::Warp(Block &block, unsigned index, unsigned threads)
    : block(block), index(index),
      actor(block.rank * static_cast<unsigned>((block.launch.config.block.count() + warpSize - 1) / warpSize) + index),
      program(block.launch.program), constants(block.launch.constants), threadCount(threads), rows(program.rowBytes),
      defined(program.registerNames.size()), predicates(program.registerNames.size()),
      local(static_cast<std::size_t>(program.localBytes) * warpSize), localWritten(local.size()) {
  alive = threads == warpSize ? allLanes : (1U << threads) - 1;
  now.lanes = alive;
  clock.advance(actor);
  setSpecials(program);
}

Warp::Turn Warp::run(std::uint64_t count) {
  // After a run without progress, the fragment with the highest program counter runs once: the first may wait for it.
  turned = (polled || usedUp) && !turned;
  polled = usedUp = false;
  if (now.lanes)
    park(now.at, runs, 0);
  if (!choose(!turned))
    return alive ? Turn::blocked : Turn::ended;
  while (count-- > 0) {
    running = now.at;
    const Instruction &instruction = program.code[running];
    executing = now.lanes;
    if (instruction.guard >= 0) {
      const auto guard = static_cast<unsigned>(instruction.guard);
      if (executing & ~defined[guard])
        unwritten(Operand{0, instruction.guard, false, 1});
      executing &= predicates[guard] ^ (instruction.guardNegated ? allLanes : 0);
    }
    ++now.at;
    ++instructions;
    if (executing) {
      threadInstructions += static_cast<unsigned>(std::popcount(executing));
      instruction.handler(*this, instruction);
    }
    if (polled)
      return Turn::waiting;
    if (!now.lanes && !choose(!turned))
      return alive ? Turn::blocked : Turn::ended;
    if (!others.empty())
      settle();
  }
  usedUp = true;
  return Turn::used;
}

void Warp::park(std::uint32_t at, int state, std::uint32_t members) {
  const std::uint32_t lanes = state == runs ? now.lanes : executing;
  others.push_back({at, lanes, state, members});
  now.lanes &= ~lanes;
}

bool Warp::choose(bool first) {
  const Fragment *best = nullptr;
  for (const Fragment &f : others)
    if (f.state == runs && (!best || (first ? f.at < best->at : f.at > best->at)))
      best = &f;
  if (!best)
    return false;
  now = {best->at, 0, runs, 0};
  std::erase_if(others, [&](const Fragment &f) {
    if (f.state != runs || f.at != now.at)
      return false;
    now.lanes |= f.lanes;
    return true;
  });
  return true;
}

void Warp::settle() {
  bool isLate = false;
  std::erase_if(others, [&](const Fragment &f) {
    if (f.state != runs && f.state != waits)
      return false;
    if (f.at != now.at) {
      isLate |= f.state == runs && f.at < now.at;
      return false;
    }
    now.lanes |= f.lanes;
    return true;
  });
  if (isLate && !turned) {
    park(now.at, runs);
    choose(true);
  }
}

bool Warp::together(std::uint32_t needed) {
  if ((needed & alive & ~executing) == 0)
    return true;
  park(running, waits);
  return false;
}

void Warp::jump(std::uint32_t target) {
  const std::uint32_t rest = now.lanes & ~executing;
  if (rest)
    others.push_back({now.at, rest, runs, 0});
  now = {target, executing, runs, 0};
}

void Warp::jumpEach(const std::uint32_t (&targets)[warpSize]) {
  const std::uint32_t rest = now.lanes & ~executing;
  if (rest)
    others.push_back({now.at, rest, runs, 0});
  for (std::uint32_t left = executing; left;) {
    const std::uint32_t target = targets[std::countr_zero(left)];
    std::uint32_t lanes = 0;
    for (unsigned lane = 0; lane < warpSize; ++lane)
      if (left >> lane & 1 && targets[lane] == target)
        lanes |= 1U << lane;
    left &= ~lanes;
    others.push_back({target, lanes, runs, 0});
  }
  now.lanes = 0;
}

void Warp::exit() {
  alive &= ~executing;
  now.lanes &= ~executing;
  ++block.launch.changes;
  // Fragments that wait for lanes retry.
  for (Fragment &f : others)
    if (f.state == waits)
      f.state = runs;
  openWarpBarriers();
  block.threadsExited();
}

void Warp::stopAt(int barrier) { park(now.at, barrier); }

bool Warp::release(int barrier) {
  bool any = false;
  for (Fragment &f : others)
    if (f.state == barrier) {
      f.state = runs;
      any = true;
    }
  return any;
}

void Warp::warpBarrier(std::uint32_t members) {
  if ((members & alive & ~executing) == 0) {
    clock.advance(actor);
    return;
  }
  park(now.at, waitsInWarp, members);
  openWarpBarriers();
}

void Warp::openWarpBarriers() {
  for (const Fragment &one : others) {
    if (one.state != waitsInWarp)
      continue;
    const std::uint32_t members = one.members;
    std::uint32_t here = 0;
    for (const Fragment &f : others)
      if (f.state == waitsInWarp && f.members == members)
        here |= f.lanes;
    if (members & alive & ~here)
      continue;
    for (Fragment &f : others)
      if (f.state == waitsInWarp && f.members == members)
        f.state = runs;
    clock.advance(actor);
  }
}

const Instruction &Warp::current() const { return program.code[running]; }

std::string Warp::standing() const {
  std::string text;
  const auto add = [&](const Fragment &f) {
    // The program counter of a fragment that waits for lanes is at its instruction, which runs again; that of a
    // fragment that waits at a barrier is after it.
    const std::uint32_t at = f.state == waits || f.at == 0 ? f.at : f.at - 1;
    text += fmt::format("{}warp {} (lanes {:#x}) at line {} \"{}\"", text.empty() ? "" : ", ", index, f.lanes,
                        program.code[at].line, program.texts[at]);
    if (f.state == waits)
      text += " waits for other lanes";
  };
  if (now.lanes)
    add(now);
  for (const Fragment &f : others)
    add(f);
  return text;
}

} // namespace kiln::ptx
