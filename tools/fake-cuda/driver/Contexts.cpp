// SPDX-License-Identifier: Apache-2.0
//
// Contexts: each has its own memory. Each thread has a stack of contexts, whose top is the current one.
#include "Capture.h"
#include "Queue.h"

using namespace kiln::fake;

namespace {

bool deviceExists(const Driver &driver, CUdevice device) {
  return device >= 0 && static_cast<std::size_t>(device) < driver.devices.size();
}

std::shared_ptr<Context> create(Driver &driver, CUdevice device, bool primary) {
  // No process has these addresses, and no two contexts share any: a pointer of another context, or one that the host
  // dereferences, is always invalid.
  const std::uint64_t first = 0x8000'0000'0000 + driver.contextsMade++ * 0x100'0000'0000;
  auto context = std::make_shared<Context>(device, primary, first);
  context->legacy = std::make_shared<Stream>();
  context->legacy->context = context.get();
  context->streams.push_back(context->legacy);
  context->handle = driver.contexts.add(context);
  return context;
}

/// Destroys the context and all objects in it.
void destroy(Driver &driver, const std::shared_ptr<Context> &context) {
  const auto isIn = [&](const auto &object) { return object.context == context.get(); };
  abandon(driver, *context);
  for (const auto &stream : context->streams) {
    stream->drop();
    stream->context = nullptr;
  }
  for (const auto &[handle, module] : driver.modules.all())
    if (isIn(*module))
      module->unloaded = true;
  driver.functions.removeIf(isIn);
  unsigned gone = driver.modules.removeIf(isIn) + driver.events.removeIf(isIn) + driver.graphs.removeIf(isIn) +
                  driver.executables.removeIf(isIn) + driver.links.removeIf(isIn) +
                  driver.streams.removeIf([](const Stream &stream) { return !stream.context; }) +
                  static_cast<unsigned>(context->allocations.size());
  gone += static_cast<unsigned>(std::erase_if(driver.pinned, [&](const auto &entry) { return isIn(*entry.second); }));
  if (!context->sticky)
    driver.orphans += gone;
  for (const auto &[address, bytes] : context->allocations)
    driver.devices[static_cast<std::size_t>(context->device)].used -= footprint(bytes);
  driver.contexts.remove(context->handle);
}

} // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal) {
  return enter("cuDevicePrimaryCtxRetain", Needs::driver, [&](Call &call) -> CUresult {
    if (!context)
      return CUDA_ERROR_INVALID_VALUE;
    if (!deviceExists(call.driver, ordinal))
      return CUDA_ERROR_INVALID_DEVICE;
    Device &device = call.driver.devices[static_cast<std::size_t>(ordinal)];
    if (!device.primary)
      device.primary = create(call.driver, ordinal, true);
    ++device.primaryReferences;
    *context = device.primary->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  return enter("cuDevicePrimaryCtxRelease_v2", Needs::driver, [&](Call &call) -> CUresult {
    if (!deviceExists(call.driver, ordinal))
      return CUDA_ERROR_INVALID_DEVICE;
    Device &device = call.driver.devices[static_cast<std::size_t>(ordinal)];
    if (!device.primary)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (--device.primaryReferences == 0) {
      destroy(call.driver, device.primary);
      device.primary = nullptr;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned, CUdevice ordinal) {
  return enter("cuCtxCreate_v2", Needs::driver, [&](Call &call) -> CUresult {
    if (!context)
      return CUDA_ERROR_INVALID_VALUE;
    if (!deviceExists(call.driver, ordinal))
      return CUDA_ERROR_INVALID_DEVICE;
    *context = create(call.driver, ordinal, false)->handle;
    call.thread.stack.push_back(*context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  return enter("cuCtxDestroy_v2", Needs::driver, [&](Call &call) -> CUresult {
    const std::shared_ptr<Context> context = call.driver.contexts.find(handle);
    if (!context || context->primary)
      return CUDA_ERROR_INVALID_CONTEXT;
    destroy(call.driver, context);
    if (!call.thread.stack.empty() && call.thread.stack.back() == handle)
      call.thread.stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  return enter("cuCtxGetCurrent", Needs::driver, [&](Call &call) -> CUresult {
    if (!context)
      return CUDA_ERROR_INVALID_VALUE;
    *context = call.thread.stack.empty() ? nullptr : call.thread.stack.back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return enter("cuCtxSetCurrent", Needs::driver, [&](Call &call) -> CUresult {
    if (context && !call.driver.contexts.find(context))
      return CUDA_ERROR_INVALID_CONTEXT;
    if (!call.thread.stack.empty())
      call.thread.stack.pop_back();
    if (context)
      call.thread.stack.push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return enter("cuCtxPushCurrent_v2", Needs::driver, [&](Call &call) -> CUresult {
    if (!call.driver.contexts.find(context))
      return CUDA_ERROR_INVALID_CONTEXT;
    call.thread.stack.push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  return enter("cuCtxPopCurrent_v2", Needs::driver, [&](Call &call) -> CUresult {
    if (call.thread.stack.empty())
      return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
      *context = call.thread.stack.back();
    call.thread.stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice *device) {
  return enter("cuCtxGetDevice", Needs::anyContext, [&](Call &call) -> CUresult {
    if (!device)
      return CUDA_ERROR_INVALID_VALUE;
    *device = call.context->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return enter("cuCtxSynchronize", Needs::context, [&](Call &call) -> CUresult {
    CUresult result = call.allowUnsafe();
    for (const auto &stream : call.context->streams)
      if (stream->capture) {
        invalidate(*stream);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      }
    return result ? result : waitFor(call.driver, *call.context);
  });
}
