// SPDX-License-Identifier: Apache-2.0
//
// Streams that capture: which calls they allow, and the graph that a capture makes.
#pragma once

#include "Driver.h"

namespace kiln::fake {

/// Marks the stream's capture as invalid: only the error of its end is left to return.
void invalidate(Stream &stream);
/// Checks that the legacy stream may take work. If it may not, the captures of streams that it waits for are
/// invalidated.
CUresult allowLegacy(Context &context);
/// Records the stream's work as a node.
CUresult record(Stream &stream, Work work);
/// Implement cuEventRecord and cuStreamWaitEvent where a capture takes part.
void recordEvent(Stream &stream, Event &event);
CUresult waitEvent(Call &call, const std::shared_ptr<Stream> &stream, const Event &event);
/// Called when a stream is destroyed: the capture that began in it cannot end successfully.
void leave(Driver &driver, Stream &stream);
/// Called when a context is destroyed: abandons all of its captures.
void abandon(Driver &driver, const Context &context);

} // namespace kiln::fake
