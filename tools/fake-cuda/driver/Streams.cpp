// SPDX-License-Identifier: Apache-2.0
//
// Streams, and the calls that wait for them.
#include "Capture.h"
#include "Queue.h"

using namespace kiln::fake;

namespace {

/// Checks that the state of the stream may be queried, which a capture forbids.
CUresult allowWait(Stream &stream) {
  if (stream.capture) {
    invalidate(stream);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return &stream == stream.context->legacy.get() ? allowLegacy(*stream.context) : CUDA_SUCCESS;
}

} // namespace

CUresult cuStreamCreate(CUstream *handle, unsigned flags) {
  return enter("cuStreamCreate", Needs::context, [&](Call &call) -> CUresult {
    if (!handle || flags > streamNonBlocking)
      return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>();
    stream->context = call.context;
    stream->blocking = flags != streamNonBlocking;
    call.context->streams.push_back(stream);
    *handle = call.driver.streams.add(std::move(stream));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return enter("cuStreamDestroy_v2", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    if (stream == stream->context->legacy)
      return CUDA_ERROR_INVALID_HANDLE;
    leave(call.driver, *stream);
    stream->destroyed = true; // queued work still runs, when a call waits for it
    if (stream->items.empty())
      std::erase(stream->context->streams, stream);
    call.driver.streams.remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return enter("cuStreamSynchronize", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    if (const CUresult error = allowWait(*stream))
      return error;
    return waitFor(call.driver, Point{stream, stream->submitted});
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return enter("cuStreamQuery", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    if (const CUresult error = allowWait(*stream))
      return error;
    if (stream->items.empty())
      return CUDA_SUCCESS;
    step(call.driver, Point{stream, stream->submitted}); // each query runs one item, so that polling reaches the end
    return stream->context->sticky ? stream->context->sticky : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent eventHandle, unsigned flags) {
  return enter("cuStreamWaitEvent", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    const std::shared_ptr<Event> event = call.driver.events.find(eventHandle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    if (flags > 1)
      return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture || event->capture)
      return waitEvent(call, stream, *event);
    if (!event->recorded)
      return CUDA_SUCCESS;
    return submit(call, stream, {}, {*event->recorded});
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  return enter("cuStreamGetCtx", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (!context)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = call.find(handle, stream))
      return error;
    *context = stream->context->handle;
    return CUDA_SUCCESS;
  });
}
