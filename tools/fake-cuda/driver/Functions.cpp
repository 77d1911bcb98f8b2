// SPDX-License-Identifier: Apache-2.0
//
// Attributes of functions: reading and setting them.
#include <algorithm>

#include "Driver.h"

using namespace kiln::fake;

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return enter("cuFuncSetAttribute", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Function> function;
    if (const CUresult error = call.find(call.driver.functions, handle, function))
      return error;
    switch (attribute) {
    case functionMaxDynamicShared:
      if (value < 0 ||
          value > static_cast<int>(call.device().mostShared()) - static_cast<int>(function->entry->staticShared))
        return CUDA_ERROR_INVALID_VALUE;
      function->maxDynamicShared = static_cast<unsigned>(value);
      return CUDA_SUCCESS;
    case functionCarveout:
      return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case functionNonPortableCluster:
      function->nonPortableCluster = value != 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
  return enter("cuFuncGetAttribute", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Function> function;
    if (!value)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = call.find(call.driver.functions, handle, function))
      return error;
    const auto &most = function->entry->maxThreads;
    switch (attribute) {
    case functionMaxThreads:
      *value = most[0] ? static_cast<int>(std::min(1024U, most[0] * most[1] * most[2])) : 1024;
      return CUDA_SUCCESS;
    case functionStaticShared:
      *value = static_cast<int>(function->entry->staticShared);
      return CUDA_SUCCESS;
    case functionConstants:
    case functionLocal: // the interpreter spills no registers
      *value = 0;
      return CUDA_SUCCESS;
    case functionRegisters:
      *value = 32;
      return CUDA_SUCCESS;
    case functionPtxVersion:
      *value = function->module->target;
      return CUDA_SUCCESS;
    case functionBinaryVersion:
      *value = static_cast<int>(call.device().capability());
      return CUDA_SUCCESS;
    case functionMaxDynamicShared:
      *value = static_cast<int>(function->maxDynamicShared);
      return CUDA_SUCCESS;
    case functionCarveout:
      *value = -1;
      return CUDA_SUCCESS;
    case functionNonPortableCluster:
      *value = function->nonPortableCluster;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads,
                                                     std::size_t dynamicShared) {
  return enter("cuOccupancyMaxActiveBlocksPerMultiprocessor", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Function> function;
    if (!blocks || threads < 1)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = call.find(call.driver.functions, handle, function))
      return error;
    const Device &device = call.device();
    const std::size_t reserved = 1024; // bytes of shared memory per block that the system reserves
    const std::size_t byShared =
        (device.mostShared() + reserved) / (function->entry->staticShared + dynamicShared + reserved);
    const std::size_t byThreads =
        device.threadsOfMultiprocessor() / ((static_cast<std::size_t>(threads) + 31) / 32 * 32);
    *blocks = threads > 1024 || dynamicShared > function->maxDynamicShared
                  ? 0
                  : static_cast<int>(std::min({byShared, byThreads, std::size_t(device.blocksOfMultiprocessor())}));
    return CUDA_SUCCESS;
  });
}
