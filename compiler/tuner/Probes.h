// SPDX-License-Identifier: Apache-2.0
//
// What the machine does at best, measured in the run that it is compared with: floating point operations of one
// instruction set, and bytes read and copied within a footprint.
#pragma once

#include "compiler/schedule/Workload.h"
#include "kiln/runtime.h"

namespace kiln {

/// A second of the machine. 0: unknown.
struct Rates {
  double operations = 0, bytesRead = 0, bytesCopied = 0; // copied: read and written both count
};

/// The best of several rounds, on all workers of the executor; null: on this thread.
double probeOperations(const MachineModel &machine, const kiln_executor_t *executor);
/// Reading (or copying within) so much memory over and over.
double probeReading(const MachineModel &machine, int64_t footprint, const kiln_executor_t *executor);
double probeCopying(int64_t footprint, const kiln_executor_t *executor);

/// The least time that the rates allow for the work.
double leastSeconds(const Work &work, const Rates &rates);
/// Whether operations, not bytes, are what bounds the work.
bool isBoundByOperations(const Work &work, const Rates &rates);

} // namespace kiln
