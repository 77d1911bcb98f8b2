// SPDX-License-Identifier: Apache-2.0
//
// mbarrier objects. Their state is kept beside shared memory, by address. Their eight bytes in it hold a mark, so that
// a kernel that overwrites them is found.
#pragma once

#include <cstdint>
#include <map>

#include "Races.h"

namespace kiln::ptx {

class Warp;

struct Mbarrier {
  std::uint32_t count = 0; ///< arrivals of a phase
  std::uint32_t left = 0;  ///< arrivals that the present phase lacks
  std::int64_t bytes = 0;  ///< that asynchronous copies have still to bring
  std::uint64_t phase = 0; ///< phases that are complete
  VectorClock arriving;    ///< what the present phase's arrivals have seen
  VectorClock complete;    ///< what a thread that waits successfully knows
  unsigned copier = 0;     ///< actor of the copies that it counts
  VectorClock copies;      ///< their times

  void completeIfFull();
};

/// By address in shared memory.
using Mbarriers = std::map<std::uint32_t, Mbarrier>;

/// The one at a shared address, which may be another block's; throws Fault.
Mbarrier &mbarrierAt(Warp &warp, std::uint64_t address, unsigned lane);

} // namespace kiln::ptx
