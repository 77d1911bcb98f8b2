// SPDX-License-Identifier: Apache-2.0
//
// Streams that capture: what they may do, and the graph that comes of it.
#pragma once

#include "Driver.h"

namespace kiln::fake {

/// Nothing more can come of it but the error of its end.
void invalidate(Stream &stream);
/// That the legacy stream may take work: otherwise the captures of streams that it waits for are invalidated.
CUresult allowLegacy(Context &context);
/// The stream's work becomes a node.
CUresult record(Stream &stream, Work work);
/// cuEventRecord and cuStreamWaitEvent, where a capture takes part.
void recordEvent(Stream &stream, Event &event);
CUresult waitEvent(Call &call, const std::shared_ptr<Stream> &stream, const Event &event);
/// A stream goes: the capture that began there can come to no end.
void leave(Driver &driver, Stream &stream);
/// A context goes, with all captures.
void abandon(Driver &driver, const Context &context);

} // namespace kiln::fake
