// SPDX-License-Identifier: Apache-2.0
//
// Streams as queues: work is put in, and runs when something waits for it.
#pragma once

#include "Driver.h"

namespace kiln::fake {

/// Puts work into the stream, or, while it captures, into the graph.
CUresult submit(Call &call, const std::shared_ptr<Stream> &stream, Work work, std::vector<Point> after = {});
/// The same for the legacy stream and a call that does not come back before what is there has run.
CUresult submitAndWait(Call &call, Work work);

/// Runs what leads to the point. The error of the stream's context, if it has one.
CUresult waitFor(Driver &driver, const Point &point);
/// Runs what the context has.
CUresult waitFor(Driver &driver, Context &context);
/// One item of those that lead to the point.
void step(Driver &driver, const Point &point);

} // namespace kiln::fake
