// SPDX-License-Identifier: Apache-2.0
//
// Events. Their times are those of a clock that copies and kernels advance, the same in each run of a test.
#include "Capture.h"
#include "Queue.h"

using namespace kiln::fake;

namespace {

/// Finds an event, of any context without a sticky error, and checks that it may be queried: a capture forbids that.
CUresult find(Call &call, CUevent handle, std::shared_ptr<Event> &event) {
  event = call.driver.events.find(handle);
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture) {
    event->capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  return event->context->sticky;
}

} // namespace

CUresult cuEventCreate(CUevent *handle, unsigned flags) {
  return enter("cuEventCreate", Needs::context, [&](Call &call) -> CUresult {
    if (!handle || flags > 7)
      return CUDA_ERROR_INVALID_VALUE;
    if (flags & 4) // interprocess event
      return CUDA_ERROR_NOT_SUPPORTED;
    auto event = std::make_shared<Event>();
    event->context = call.context;
    event->timing = !(flags & eventDisableTiming);
    *handle = call.driver.events.add(std::move(event));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent handle, CUstream streamHandle) {
  return enter("cuEventRecord", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(streamHandle, stream))
      return error;
    const std::shared_ptr<Event> event = call.driver.events.find(handle);
    if (!event || event->context != stream->context)
      return CUDA_ERROR_INVALID_HANDLE;
    auto time = std::make_shared<std::uint64_t>(0);
    Work work;
    work.run = [time](Driver &driver, Context &) -> Failure {
      *time = driver.now;
      return {};
    };
    if (const CUresult error = submit(call, stream, std::move(work)))
      return error;
    if (stream->capture) {
      recordEvent(*stream, *event);
      return CUDA_SUCCESS;
    }
    event->capture = nullptr;
    event->recorded = Point{stream, stream->submitted};
    event->time = std::move(time);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return enter("cuEventSynchronize", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Event> event;
    if (const CUresult error = find(call, handle, event))
      return error;
    if (const CUresult error = call.allowUnsafe())
      return error;
    return event->recorded ? waitFor(call.driver, *event->recorded) : CUDA_SUCCESS;
  });
}

CUresult cuEventQuery(CUevent handle) {
  return enter("cuEventQuery", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Event> event;
    if (const CUresult error = find(call, handle, event))
      return error;
    if (const CUresult error = call.allowUnsafe())
      return error;
    if (!event->recorded || event->recorded->reached())
      return CUDA_SUCCESS;
    step(call.driver, *event->recorded);
    return event->context->sticky ? event->context->sticky : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent startHandle, CUevent endHandle) {
  return enter("cuEventElapsedTime", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Event> start, end;
    if (!milliseconds)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = find(call, startHandle, start))
      return error;
    if (const CUresult error = find(call, endHandle, end))
      return error;
    if (!start->timing || !end->timing || !start->recorded || !end->recorded || start->context != end->context)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!start->recorded->reached() || !end->recorded->reached())
      return CUDA_ERROR_NOT_READY;
    *milliseconds = (static_cast<float>(*end->time) - static_cast<float>(*start->time)) / 1e6F;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return enter("cuEventDestroy_v2", Needs::context, [&](Call &call) {
    return call.driver.events.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}
