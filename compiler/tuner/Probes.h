// SPDX-License-Identifier: Apache-2.0
//
// Measures the machine's peak rates in the run with which they are compared: floating-point operations of one
// instruction set, and bytes read and copied within a footprint.
#pragma once

#include "compiler/kernel/Workload.h"
#include "kiln/runtime.h"
#include "targets/target.h"

namespace kiln {

/// Rates per second. 0: unknown.
struct Rates {
  double operations = 0, bytesRead = 0, bytesCopied = 0; // copied: counts bytes read and bytes written
};

/// Returns the best of several rounds, on all workers of the executor; null: on this thread.
double probeOperations(const MachineModel &machine, const kiln_executor_t *executor);
/// Measures reading (or copying within) a memory footprint repeatedly.
double probeReading(const MachineModel &machine, int64_t footprint, const kiln_executor_t *executor);
double probeCopying(int64_t footprint, const kiln_executor_t *executor);

/// Returns the minimum time of the work at these rates (roofline).
double leastSeconds(const Work &work, const Rates &rates);
/// Whether the work is compute-bound rather than memory-bound.
bool isBoundByOperations(const Work &work, const Rates &rates);

} // namespace kiln
