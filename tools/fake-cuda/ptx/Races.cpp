// SPDX-License-Identifier: Apache-2.0
//
// The order of accesses to shared memory.
#include "Races.h"

#include <algorithm>
#include <fmt/format.h>

#include "Fault.h"
#include "Instruction.h"

namespace kiln::ptx {

void VectorClock::join(const VectorClock &other) {
  if (other.times.size() > times.size())
    times.resize(other.times.size());
  for (std::size_t i = 0; i < other.times.size(); ++i)
    times[i] = std::max(times[i], other.times[i]);
}

Races::Entry Races::entryOf(const Accessor &who) {
  return {who.clock->of(who.actor), who.line, static_cast<std::uint16_t>(who.actor),
          static_cast<std::uint8_t>(who.lane)};
}

bool Races::ordered(const Entry &before, const Accessor &who) {
  const std::uint32_t known = who.clock->of(before.actor);
  if (before.actor != who.actor)
    return before.time <= known;
  return before.time < known || (before.lane == who.lane && who.lane != wholeWarp);
}

std::string Races::nameOf(unsigned actor, unsigned lane) const {
  if (actor >= warpsOfCluster)
    return "an asynchronous copy";
  std::string name = fmt::format("warp {}", actor % warpsOfBlock);
  if (lane != wholeWarp)
    name += fmt::format(" lane {}", lane);
  if (warpsOfCluster > warpsOfBlock)
    name += fmt::format(" of the cluster's block {}", actor / warpsOfBlock);
  return name;
}

void Races::report(const Entry &before, const char *was, const char *is, std::uint32_t offset,
                   const Accessor &who) const {
  throw Fault(fmt::format("{} shared byte {}, which {} {} at line {} with no barrier between", is, offset + start,
                          nameOf(before.actor, before.lane), was, before.line),
              who.lane == wholeWarp ? -1 : static_cast<int>(who.lane));
}

void Races::read(std::uint32_t offset, std::uint32_t bytes, const Accessor &who) {
  if (!allOrdered(writes, offset, bytes, who) || !allOrdered(atomics, offset, bytes, who))
    for (std::uint32_t i = offset; i < offset + bytes; ++i) {
      const Entry write = writes.get(i);
      if (write.time != 0 && !ordered(write, who))
        report(write, "wrote", "reads", i, who);
      checkAtomics(i, "reads", who);
    }
  if (who.actor >= reads.size())
    reads.resize(who.actor + 1, History(size));
  const Entry entry = entryOf(who);
  reads[who.actor].change(offset, bytes, entry.time, [&](Entry &last) {
    // Several lanes that read in one interval are recorded as the whole warp.
    const bool others = last.time == entry.time && last.lane != entry.lane;
    last = entry;
    if (others)
      last.lane = wholeWarp;
  });
}

/// Each actor's entries are tried only if the latest of them is not known to be ordered.
bool Races::readsAreOrdered(std::uint32_t offset, std::uint32_t bytes, const Accessor &who) const {
  for (unsigned actor = 0; actor < reads.size(); ++actor) {
    const std::uint32_t latest = reads[actor].latest(offset, bytes), known = who.clock->of(actor);
    const bool isOrdered = actor == who.actor ? latest < known : latest <= known;
    if (latest != 0 && !isOrdered && !allOrdered(reads[actor], offset, bytes, who))
      return false;
  }
  return true;
}

void Races::checkReads(std::uint32_t offset, const Accessor &who) const {
  for (const History &of : reads) {
    const Entry read = of.get(offset);
    if (read.time != 0 && !ordered(read, who))
      report(read, "read", "writes", offset, who);
  }
}

void Races::write(std::uint32_t offset, std::uint32_t bytes, const Accessor &who, bool same) {
  // Several lanes may write the same value in one store.
  const auto isHarmless = [&](const Entry &before) {
    return ordered(before, who) || (same && before.actor == who.actor && before.line == who.line);
  };
  if (!writes.allOf(offset, bytes, isHarmless) || !allOrdered(atomics, offset, bytes, who) ||
      !readsAreOrdered(offset, bytes, who))
    for (std::uint32_t i = offset; i < offset + bytes; ++i) {
      const Entry before = writes.get(i);
      if (before.time != 0 && !isHarmless(before))
        report(before, "wrote", "writes", i, who);
      checkAtomics(i, "writes", who);
      checkReads(i, who);
    }
  writes.set(offset, bytes, entryOf(who));
}

void Races::checkAtomics(std::uint32_t offset, const char *is, const Accessor &who) const {
  const Entry last = atomics.get(offset);
  if (last.time != 0 && !ordered(last, who))
    report(last, "updated", is, offset, who);
}

void Races::atomic(std::uint32_t offset, std::uint32_t bytes, const Accessor &who) {
  if (!allOrdered(writes, offset, bytes, who) || !readsAreOrdered(offset, bytes, who))
    for (std::uint32_t i = offset; i < offset + bytes; ++i) {
      const Entry before = writes.get(i);
      if (before.time != 0 && !ordered(before, who))
        report(before, "wrote", "updates", i, who);
      checkReads(i, who);
    }
  atomics.set(offset, bytes, entryOf(who));
}

void Races::copied(std::uint32_t offset, std::uint32_t bytes, const Accessor &issuer, const Accessor &copier) {
  write(offset, bytes, issuer);
  writes.set(offset, bytes, entryOf(copier));
}

} // namespace kiln::ptx
