// SPDX-License-Identifier: Apache-2.0
//
// Stream capture. Nodes are kept in the order of their calls, which respects every edge. Vector clocks record which
// nodes each stream comes after, so that unjoined forks are detected.
#include "Capture.h"

#include <algorithm>

#include "Queue.h"

namespace kiln::fake {

void invalidate(Stream &stream) {
  if (stream.capture)
    stream.capture->invalidated = true;
}

CUresult allowLegacy(Context &context) {
  CUresult result = CUDA_SUCCESS;
  for (const auto &stream : context.streams)
    if (stream->blocking && stream->capture) {
      invalidate(*stream);
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  return result;
}

CUresult record(Stream &stream, Work work) {
  Capture &capture = *stream.capture;
  if (capture.invalidated)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  ++capture.clocks[&stream][&stream];
  if (work.kind != Work::Kind::marker)
    capture.nodes.push_back(std::move(work));
  return CUDA_SUCCESS;
}

void recordEvent(Stream &stream, Event &event) {
  event.capture = stream.capture;
  event.clock = stream.capture->clocks[&stream];
  event.recorded.reset();
}

CUresult waitEvent(Call &, const std::shared_ptr<Stream> &stream, const Event &event) {
  if (stream->capture && stream->capture->invalidated)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!event.capture) { // and the stream captures
    invalidate(*stream);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (event.capture->ended)
    return CUDA_ERROR_CAPTURED_EVENT;
  if (stream == stream->context->legacy) {
    event.capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream->capture && stream->capture != event.capture) {
    invalidate(*stream);
    event.capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (!stream->capture) {
    stream->capture = event.capture;
    stream->capture->clocks[stream.get()][stream.get()] = 1; // a fork even without work
  }
  merge(stream->capture->clocks[stream.get()], event.clock);
  return CUDA_SUCCESS;
}

namespace {

void finish(Driver &driver, Capture &capture) {
  capture.ended = true;
  for (const auto &[handle, context] : driver.contexts.all())
    for (const auto &stream : context->streams)
      if (stream->capture.get() == &capture)
        stream->capture = nullptr;
  std::erase_if(driver.captures, [&](const auto &other) { return other.get() == &capture; });
}

bool joined(const Capture &capture) {
  const Clock &last = capture.clocks.at(capture.origin);
  return std::all_of(capture.clocks.begin(), capture.clocks.end(), [&](const auto &entry) {
    const auto found = last.find(entry.first);
    return found != last.end() && found->second == entry.second.at(entry.first);
  });
}

} // namespace

void leave(Driver &driver, Stream &stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture)
    return;
  capture->invalidated = true;
  if (capture->origin == &stream)
    finish(driver, *capture);
  stream.capture = nullptr;
}

void abandon(Driver &driver, const Context &context) {
  const auto captures = driver.captures;
  for (const auto &capture : captures)
    if (capture->context == &context)
      finish(driver, *capture);
}

} // namespace kiln::fake

using namespace kiln::fake;

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return enter("cuStreamBeginCapture_v2", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    if (mode < captureGlobal || mode > captureRelaxed)
      return CUDA_ERROR_INVALID_VALUE;
    if (stream == stream->context->legacy)
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
      return CUDA_ERROR_ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream.get();
    capture->context = stream->context;
    capture->clocks[stream.get()][stream.get()] = 1;
    stream->capture = capture;
    call.driver.captures.push_back(std::move(capture));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  return enter("cuStreamEndCapture", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    if (!graph)
      return CUDA_ERROR_INVALID_VALUE;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture)
      return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->mode != captureRelaxed && capture->thread != std::this_thread::get_id())
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (capture->origin != stream.get()) {
      capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    finish(call.driver, *capture);
    if (capture->invalidated)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!joined(*capture))
      return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    auto made = std::make_shared<Graph>();
    made->context = stream->context;
    made->nodes = std::make_shared<const std::vector<Work>>(std::move(capture->nodes));
    *graph = call.driver.graphs.add(std::move(made));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  return enter("cuStreamIsCapturing", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    if (!status)
      return CUDA_ERROR_INVALID_VALUE;
    if (stream == stream->context->legacy)
      for (const auto &other : stream->context->streams)
        if (other->blocking && other->capture)
          return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; // the query does not invalidate the capture
    *status = !stream->capture               ? captureStatusNone
              : stream->capture->invalidated ? captureStatusInvalidated
                                             : captureStatusActive;
    return CUDA_SUCCESS;
  });
}
