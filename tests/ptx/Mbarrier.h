// SPDX-License-Identifier: Apache-2.0
//
// mbarrier objects. Their state is kept beside shared memory, by address: the eight bytes in it are the phase, so that
// a kernel that overwrites them is found.
#pragma once

#include <cstdint>
#include <map>

#include "Races.h"

namespace kiln::ptx {

struct Mbarrier {
  std::uint32_t count = 0; ///< arrivals of a phase
  std::uint32_t left = 0;  ///< arrivals that the present phase lacks
  std::int64_t bytes = 0;  ///< that asynchronous copies have still to bring
  std::uint64_t phase = 0; ///< phases that are complete
  VectorClock arriving;    ///< what the present phase's arrivals have seen
  VectorClock complete;    ///< what a thread that waits successfully knows
  int copier = -1;         ///< actor of the copies that it counts
};

using Mbarriers = std::map<std::uint32_t, Mbarrier>;

} // namespace kiln::ptx
