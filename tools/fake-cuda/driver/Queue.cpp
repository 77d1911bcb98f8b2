// SPDX-License-Identifier: Apache-2.0
//
// Streams as queues. An item waits only for points of other streams whose work was submitted before it, so that there
// is no deadlock: every dependence can run.
#include "Queue.h"

#include <fmt/format.h>

#include "Capture.h"

namespace kiln::fake {
namespace {

constexpr std::uint64_t copyTime = 1000; // nanoseconds, in the clock that events read

Failure execute(Driver &driver, Context &context, const Work &work) {
  if (work.kind == Work::Kind::graph) {
    for (const Work &node : *work.nodes)
      if (Failure failure = execute(driver, context, node))
        return failure;
    return {};
  }
  if (work.kind == Work::Kind::kernel)
    if (const CUresult error = driver.injected("kernel"))
      return {error, "an error injected into a kernel"};
  if (!work.run)
    return {};
  Failure failure = work.run(driver, context);
  if (failure)
    return failure;
  if (work.kind == Work::Kind::copy) {
    ++driver.copies;
    driver.now += copyTime;
  }
  return {};
}

void run(Driver &driver, Stream &stream, std::uint64_t count);

/// Runs the first item of the stream, after its dependences.
void runFirst(Driver &driver, Stream &stream) {
  const Item item = std::move(stream.items.front());
  stream.items.pop_front();
  const std::uint64_t number = stream.completed;
  for (const Point &point : item.after)
    run(driver, *point.stream, point.count);
  if (stream.completed != number)
    return; // a dependence has failed, in the same context
  const Failure failure = execute(driver, *stream.context, item.work);
  if (failure)
    driver.fail(*stream.context, failure);
  else
    ++stream.completed;
}

void run(Driver &driver, Stream &stream, std::uint64_t count) {
  while (stream.completed < count)
    runFirst(driver, stream);
}

void runOthers(Driver &driver, const Context &context) {
  if (!driver.configuration.eager)
    return;
  for (const auto &[handle, other] : driver.contexts.all())
    if (other.get() != &context)
      for (const auto &stream : other->streams)
        run(driver, *stream, stream->submitted);
  for (const auto &stream : context.streams)
    run(driver, *stream, stream->submitted);
}

/// Returns the implicit dependences: for the legacy stream the blocking streams, for a blocking stream the legacy one.
std::vector<Point> implicitOrder(const Stream &stream) {
  std::vector<Point> points;
  const Context &context = *stream.context;
  if (&stream == context.legacy.get()) {
    for (const auto &other : context.streams)
      if (other->blocking && other.get() != &stream && !other->items.empty())
        points.push_back({other, other->submitted});
  } else if (stream.blocking && !context.legacy->items.empty()) {
    points.push_back({context.legacy, context.legacy->submitted});
  }
  return points;
}

} // namespace

CUresult submit(Call &, const std::shared_ptr<Stream> &stream, Work work, std::vector<Point> after) {
  if (stream->capture)
    return record(*stream, std::move(work));
  if (stream == stream->context->legacy)
    if (const CUresult error = allowLegacy(*stream->context))
      return error;
  for (Point &point : implicitOrder(*stream))
    after.push_back(std::move(point));
  stream->items.push_back({std::move(work), std::move(after)});
  ++stream->submitted;
  return CUDA_SUCCESS;
}

CUresult submitAndWait(Call &call, Work work) {
  const std::shared_ptr<Stream> &stream = call.context->legacy;
  if (const CUresult error = submit(call, stream, std::move(work)))
    return error;
  return waitFor(call.driver, Point{stream, stream->submitted});
}

CUresult waitFor(Driver &driver, const Point &point) {
  Context *context = point.stream->context;
  if (!context)
    return CUDA_SUCCESS; // it was destroyed with its work
  if (!point.reached())
    runOthers(driver, *context);
  run(driver, *point.stream, point.count);
  return context->sticky;
}

CUresult waitFor(Driver &driver, Context &context) {
  runOthers(driver, context);
  for (const auto &stream : context.streams)
    run(driver, *stream, stream->submitted);
  std::erase_if(context.streams, [](const auto &stream) { return stream->destroyed && stream->items.empty(); });
  return context.sticky;
}

void step(Driver &driver, const Point &point) {
  if (!point.reached())
    runFirst(driver, *point.stream);
}

} // namespace kiln::fake
