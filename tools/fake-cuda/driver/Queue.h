// SPDX-License-Identifier: Apache-2.0
//
// Streams as queues: work is enqueued, and runs when a call waits for it.
#pragma once

#include "Driver.h"

namespace kiln::fake {

/// Enqueues work in the stream, or records it in the graph while the stream captures.
CUresult submit(Call &call, const std::shared_ptr<Stream> &stream, Work work, std::vector<Point> after = {});
/// Submits to the legacy stream, and returns when all work before it, and the work itself, has run.
CUresult submitAndWait(Call &call, Work work);

/// Runs the work up to the point. Returns the error of the stream's context, if it has one.
CUresult waitFor(Driver &driver, const Point &point);
/// Runs all work of the context.
CUresult waitFor(Driver &driver, Context &context);
/// Runs one item of the work up to the point.
void step(Driver &driver, const Point &point);

} // namespace kiln::fake
