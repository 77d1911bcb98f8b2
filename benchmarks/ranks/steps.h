// SPDX-License-Identifier: Apache-2.0
//
// Shared code of the programs that time training steps.
#pragma once

#include <algorithm>
#include <cstdio>
#include <vector>

#include "kiln/communicators/mpi.h"

inline void check(kiln_status_t status, const kiln_error_t &error) {
  if (!status)
    return;
  std::fprintf(stderr, "error: %s\n", error.message);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}
