// SPDX-License-Identifier: Apache-2.0
//
// Prints what a pipeline stage reports once another stage is lost, for lost.sh.
#pragma once

#include <cstdio>
#include <string>

#include "kiln/communicators/mpi.h"

namespace kiln::test {

/// `begin`, `found`: when the failing call began and returned, with `status` and the message `words`; `second`: what
/// the next call returned.
inline int tellOfLost(const kiln_communicator_t &stages, unsigned deadlineMs, double begin, double found,
                      kiln_status_t status, kiln_status_t second, const std::string &words) {
  // A stage before the lost one may have waited for a stage that waited itself.
  const bool isLate = found - begin > (stages.size - 1) * deadlineMs / 1000. + 1 || MPI_Wtime() - found > 0.1;
  const bool isSaid =
      words.find(" on stage " + std::to_string(stages.rank) + " of 3 cannot finish its ") != std::string::npos;
  const size_t at = words.find("a rank did not");
  std::printf("rank %u: status %d after %.2f s, then %d%s: %s\n", stages.rank, static_cast<int>(status), found - begin,
              static_cast<int>(second), isLate ? ", late" : "",
              at == std::string::npos || !isSaid ? words.c_str() : words.c_str() + at);
  return std::fflush(stdout);
}

} // namespace kiln::test
