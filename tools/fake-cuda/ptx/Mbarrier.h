// SPDX-License-Identifier: Apache-2.0
//
// mbarrier objects. Their state is stored outside of shared memory, by address. Their eight bytes in shared memory hold
// a mark, so that a kernel that overwrites them is detected.
#pragma once

#include <cstdint>
#include <map>

#include "Races.h"

namespace kiln::ptx {

class Warp;

struct Mbarrier {
  std::uint32_t count = 0; ///< arrivals per phase
  std::uint32_t left = 0;  ///< pending arrivals of the current phase
  std::int64_t bytes = 0;  ///< pending bytes of asynchronous copies
  std::uint64_t phase = 0; ///< number of completed phases
  VectorClock arriving;    ///< join of the clocks of the current phase's arrivals
  VectorClock complete;    ///< clock that a thread joins after a successful wait
  unsigned copier = 0;     ///< actor of the copies that it tracks
  VectorClock copies;      ///< clock of these copies

  void completeIfFull();
};

/// By address in shared memory.
using Mbarriers = std::map<std::uint32_t, Mbarrier>;

/// Returns the mbarrier at a shared address, which may be another block's; throws Fault.
Mbarrier &mbarrierAt(Warp &warp, std::uint64_t address, unsigned lane);

} // namespace kiln::ptx
