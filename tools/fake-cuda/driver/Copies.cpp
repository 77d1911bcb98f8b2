// SPDX-License-Identifier: Apache-2.0
//
// Copies and memsets. Pageable memory is read at the call and pinned memory when the copy runs; host memory is written
// when the copy runs. cuMemcpyHtoD of pageable memory returns before the data has reached the device, as the driver's
// documentation warns, and cuMemcpyDtoD and cuMemsetD8 do not wait at all.
#include "Copies.h"

#include <cstring>
#include <fmt/format.h>

#include "Queue.h"

namespace kiln::fake {
namespace {

std::size_t extent(const Copy &copy, const Side &side) { return side.pitch * (copy.height - 1) + copy.width; }

std::optional<std::string> copyRow(Context &context, const Copy &copy, std::size_t row) {
  const Side &to = copy.to, &from = copy.from;
  const std::size_t toOffset = row * to.pitch, fromOffset = row * from.pitch;
  if (to.onDevice && from.onDevice)
    return context.memory.copy(to.address + toOffset, from.address + fromOffset, copy.width);
  if (from.onDevice)
    return context.memory.copyOut(from.address + fromOffset, {to.host + toOffset, copy.width});
  const std::byte *source = (from.staged ? from.staged->data() : from.host) + fromOffset;
  if (to.onDevice)
    return context.memory.copyIn(to.address + toOffset, {source, copy.width});
  std::memmove(to.host + toOffset, source, copy.width);
  return std::nullopt;
}

Failure run(Context &context, const Copy &copy) {
  for (const Side *side : {&copy.to, &copy.from})
    if (side->isPinned && side->pinned.expired())
      return {CUDA_ERROR_ILLEGAL_ADDRESS,
              fmt::format("a copy of {} bytes: its pinned memory at {} was freed before it ran", copy.width,
                          fmt::ptr(side->host))};
  for (std::size_t row = 0; row < copy.height; ++row)
    if (const auto words = copyRow(context, copy, row))
      return {CUDA_ERROR_ILLEGAL_ADDRESS, "a copy " + *words};
  return {};
}

/// Copies pageable rows into a staging buffer without gaps.
void stage(Copy &copy) {
  auto bytes = std::make_shared<std::vector<std::byte>>(copy.width * copy.height);
  for (std::size_t row = 0; row < copy.height; ++row)
    std::memcpy(bytes->data() + row * copy.width, copy.from.host + row * copy.from.pitch, copy.width);
  copy.from.staged = std::move(bytes);
  copy.from.pitch = copy.width;
}

bool isUsable(const Context &context, const Copy &copy, const Side &side) {
  return side.onDevice ? isAllocated(context, side.address, extent(copy, side)) : side.host != nullptr;
}

/// Implements the memsets. `count` is unchecked: no product may overflow before the range is known to be allocated.
CUresult fill(Call &call, const std::shared_ptr<Stream> &stream, CUdeviceptr to, unsigned value, std::size_t element,
              std::size_t count) {
  if (to % element || count > SIZE_MAX / element || (count && !isAllocated(*stream->context, to, count * element)))
    return CUDA_ERROR_INVALID_VALUE;
  call.record.bytes = count * element;
  if (!count)
    return CUDA_SUCCESS;
  return submit(call, stream,
                Work{Work::Kind::copy,
                     [=](Driver &, Context &context) -> Failure {
                       std::vector<std::byte> bytes(count * element);
                       for (std::size_t i = 0; i < count; ++i)
                         std::memcpy(bytes.data() + i * element, &value, element);
                       if (const auto words = context.memory.copyIn(to, bytes))
                         return {CUDA_ERROR_ILLEGAL_ADDRESS, "a memset " + *words};
                       return {};
                     },
                     nullptr});
}

/// Submits to the legacy stream, for functions that are not asynchronous by name.
CUresult submitSynchronous(Call &call, Copy copy, bool waits) {
  if (const CUresult error = call.allowUnsafe())
    return error;
  const std::shared_ptr<Stream> &legacy = call.context->legacy;
  const bool pageable = !copy.from.onDevice && !copy.from.isPinned;
  if (const CUresult error = submit(call, legacy, std::move(copy)))
    return error;
  if (!waits)
    return CUDA_SUCCESS;
  // Waits for the work before the copy, and for the copy itself unless it was staged.
  return waitFor(call.driver, Point{legacy, legacy->submitted - (pageable && legacy->submitted ? 1 : 0)});
}

} // namespace

Side onDevice(CUdeviceptr address, std::size_t pitch) {
  Side side;
  side.onDevice = true;
  side.address = address;
  side.pitch = pitch;
  return side;
}

Side onHost(const Driver &driver, const void *address, std::size_t bytes, std::size_t pitch) {
  Side side;
  side.host = static_cast<std::byte *>(const_cast<void *>(address));
  side.pitch = pitch;
  const auto pinned = driver.pinnedAt(address, bytes);
  side.isPinned = pinned != nullptr;
  side.pinned = pinned;
  return side;
}

bool isAllocated(const Context &context, CUdeviceptr address, std::size_t bytes) {
  auto found = context.allocations.upper_bound(address);
  if (found == context.allocations.begin())
    return false;
  --found;
  const CUdeviceptr offset = address - found->first;
  return offset <= found->second && bytes <= found->second - offset;
}

CUresult submit(Call &call, const std::shared_ptr<Stream> &stream, Copy copy) {
  call.record.bytes = copy.width * copy.height;
  if (!copy.width || !copy.height)
    return CUDA_SUCCESS;
  if (!isUsable(*stream->context, copy, copy.to) || !isUsable(*stream->context, copy, copy.from))
    return CUDA_ERROR_INVALID_VALUE;
  if (!copy.from.onDevice && !copy.from.isPinned && !stream->capture)
    stage(copy);
  return submit(call, stream,
                Work{Work::Kind::copy,
                     [copy = std::move(copy)](Driver &, Context &context) { return run(context, copy); }, nullptr});
}

} // namespace kiln::fake

using namespace kiln::fake;

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, std::size_t bytes) {
  return enter("cuMemcpyHtoD_v2", Needs::context, [&](Call &call) {
    return submitSynchronous(call, {onDevice(to), onHost(call.driver, from, bytes), bytes}, true);
  });
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, std::size_t bytes) {
  return enter("cuMemcpyDtoH_v2", Needs::context, [&](Call &call) {
    return submitSynchronous(call, {onHost(call.driver, to, bytes), onDevice(from), bytes}, true);
  });
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return enter("cuMemcpyDtoD_v2", Needs::context,
               [&](Call &call) { return submitSynchronous(call, {onDevice(to), onDevice(from), bytes}, false); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, std::size_t bytes, CUstream handle) {
  return enter("cuMemcpyHtoDAsync_v2", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    return submit(call, stream, {onDevice(to), onHost(call.driver, from, bytes), bytes});
  });
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, std::size_t bytes, CUstream handle) {
  return enter("cuMemcpyDtoHAsync_v2", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    return submit(call, stream, {onHost(call.driver, to, bytes), onDevice(from), bytes});
  });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream handle) {
  return enter("cuMemcpyDtoDAsync_v2", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    return submit(call, stream, {onDevice(to), onDevice(from), bytes});
  });
}

namespace {

/// Returns one side of the struct, or nothing for an unknown memory type or a pitch smaller than a row.
std::optional<Side> sideOf(const Call &call, const Context &context, CUmemorytype type, const void *host,
                           CUdeviceptr device, std::size_t pitch, std::size_t x, std::size_t y,
                           const CUDA_MEMCPY2D &copy) {
  if (type == memoryUnified) { // the device field has the address, which tells the memory type
    type = isAllocated(context, device, 1) ? memoryDevice : memoryHost;
    host = reinterpret_cast<const void *>(static_cast<std::uintptr_t>(device));
  }
  if ((type != memoryHost && type != memoryDevice) || pitch < x + copy.WidthInBytes || x > pitch)
    return std::nullopt;
  const std::size_t offset = y * pitch + x;
  if (type == memoryDevice)
    return onDevice(device + offset, pitch);
  if (!host)
    return std::nullopt;
  return onHost(call.driver, static_cast<const std::byte *>(host) + offset,
                pitch * (copy.Height - 1) + copy.WidthInBytes, pitch);
}

} // namespace

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream handle) {
  return enter("cuMemcpy2DAsync_v2", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    if (!copy)
      return CUDA_ERROR_INVALID_VALUE;
    if (copy->srcMemoryType == memoryArray || copy->dstMemoryType == memoryArray)
      return CUDA_ERROR_NOT_SUPPORTED;
    if (!copy->WidthInBytes || !copy->Height)
      return CUDA_SUCCESS;
    const auto from = sideOf(call, *stream->context, copy->srcMemoryType, copy->srcHost, copy->srcDevice,
                             copy->srcPitch, copy->srcXInBytes, copy->srcY, *copy);
    const auto to = sideOf(call, *stream->context, copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstPitch,
                           copy->dstXInBytes, copy->dstY, *copy);
    if (!from || !to)
      return CUDA_ERROR_INVALID_VALUE;
    return submit(call, stream, {*to, *from, copy->WidthInBytes, copy->Height});
  });
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return enter("cuMemsetD8_v2", Needs::context, [&](Call &call) -> CUresult {
    if (const CUresult error = call.allowUnsafe())
      return error;
    return fill(call, call.context->legacy, to, value, 1, count);
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream handle) {
  return enter("cuMemsetD8Async", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    return fill(call, stream, to, value, 1, count);
  });
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream handle) {
  return enter("cuMemsetD32Async", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(handle, stream))
      return error;
    return fill(call, stream, to, value, 4, count);
  });
}
