// SPDX-License-Identifier: Apache-2.0
//
// Device memory, page-locked host memory, and the owner of a pointer.
#include <cstdlib>

#include "Queue.h"

namespace kiln::fake {

Pinned::Pinned(Context *context, std::size_t bytes)
    : context(context), bytes(bytes), data(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)) {
  if (!data)
    throw std::bad_alloc();
}

Pinned::~Pinned() { std::free(data); }

namespace {

CUresult allocateHost(Call &call, void **pointer, std::size_t bytes) {
  if (!pointer || !bytes)
    return CUDA_ERROR_INVALID_VALUE;
  call.record.bytes = bytes;
  if (const CUresult error = call.allowUnsafe())
    return error;
  const auto made = std::make_shared<Pinned>(call.context, bytes);
  call.driver.pinned.emplace(static_cast<const char *>(made->data), made);
  *pointer = made->data;
  return CUDA_SUCCESS;
}

/// Owner of an address. The context is null if the driver does not know the address.
struct Owner {
  const Context *context = nullptr;
  bool onDevice = false;
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
};

Owner ownerOf(const Driver &driver, CUdeviceptr pointer) {
  for (const auto &[handle, context] : driver.contexts.all()) {
    auto found = context->allocations.upper_bound(pointer);
    if (found != context->allocations.begin() && pointer - (--found)->first < found->second)
      return {context.get(), true, found->first, found->second};
  }
  const auto *address = reinterpret_cast<const void *>(static_cast<std::uintptr_t>(pointer));
  if (const auto pinned = driver.pinnedAt(address, 1))
    return {pinned->context, false, reinterpret_cast<std::uintptr_t>(pinned->data), pinned->bytes};
  return {};
}

template <class Value> CUresult put(void *to, Value value) {
  *static_cast<Value *>(to) = value;
  return CUDA_SUCCESS;
}

} // namespace
} // namespace kiln::fake

using namespace kiln::fake;

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, std::size_t bytes) {
  return enter("cuMemAlloc_v2", Needs::context, [&](Call &call) -> CUresult {
    if (!pointer || !bytes)
      return CUDA_ERROR_INVALID_VALUE;
    call.record.bytes = bytes;
    if (const CUresult error = call.allowUnsafe())
      return error;
    Device &device = call.device();
    if (bytes > device.bytes) // the check precedes the rounding
      return CUDA_ERROR_OUT_OF_MEMORY;
    if (footprint(bytes) > device.bytes - device.used)
      return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = call.context->memory.allocate(bytes);
    call.context->allocations.emplace(*pointer, bytes);
    device.used += footprint(bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return enter("cuMemFree_v2", Needs::context, [&](Call &call) -> CUresult {
    const auto found = call.context->allocations.find(pointer);
    if (found == call.context->allocations.end())
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = call.allowUnsafe())
      return error;
    if (const CUresult error = waitFor(call.driver, *call.context))
      return error;
    call.context->memory.release(pointer);
    call.device().used -= footprint(found->second);
    call.context->allocations.erase(found);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
  return enter("cuMemGetInfo_v2", Needs::context, [&](Call &call) -> CUresult {
    if (!free || !total)
      return CUDA_ERROR_INVALID_VALUE;
    const Device &device = call.device();
    *free = device.bytes - device.used;
    *total = device.bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void **pointer, std::size_t bytes, unsigned flags) {
  return enter("cuMemHostAlloc", Needs::context, [&](Call &call) -> CUresult {
    return flags > 7 ? CUDA_ERROR_INVALID_VALUE : allocateHost(call, pointer, bytes);
  });
}

CUresult cuMemAllocHost_v2(void **pointer, std::size_t bytes) {
  return enter("cuMemAllocHost_v2", Needs::context, [&](Call &call) { return allocateHost(call, pointer, bytes); });
}

CUresult cuMemFreeHost(void *pointer) {
  return enter("cuMemFreeHost", Needs::context, [&](Call &call) -> CUresult {
    const auto found = call.driver.pinned.find(static_cast<const char *>(pointer));
    if (found == call.driver.pinned.end())
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = call.allowUnsafe())
      return error;
    call.driver.pinned.erase(found); // no wait, since the documentation promises none: a pending copy will fail
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return enter("cuPointerGetAttribute", Needs::context, [&](Call &call) -> CUresult {
    const Owner owner = ownerOf(call.driver, pointer);
    if (!value || !owner.context)
      return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case pointerContext:
      return put(value, owner.context->handle);
    case pointerMemoryType:
      return put(value, owner.onDevice ? memoryDevice : memoryHost);
    case pointerDevicePointer:
      return owner.onDevice ? put(value, pointer) : CUDA_ERROR_INVALID_VALUE;
    case pointerHostPointer:
      return owner.onDevice ? CUDA_ERROR_INVALID_VALUE
                            : put(value, reinterpret_cast<void *>(static_cast<std::uintptr_t>(pointer)));
    case pointerDevice:
      return put(value, owner.context->device);
    case pointerRangeStart:
      return put(value, owner.start);
    case pointerRangeSize:
      return put(value, owner.bytes);
    default:
      return CUDA_ERROR_INVALID_VALUE;
    }
  });
}
