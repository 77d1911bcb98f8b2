// SPDX-License-Identifier: Apache-2.0
//
// Initialisation, error names, and device attributes, which are roughly those of an A100 or an H100.
#include <array>
#include <cstring>
#include <fmt/format.h>

#include "Driver.h"

using namespace kiln::fake;

namespace {

CUresult find(Call &call, CUdevice ordinal, Device *&device) {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= call.driver.devices.size())
    return CUDA_ERROR_INVALID_DEVICE;
  device = &call.driver.devices[static_cast<std::size_t>(ordinal)];
  return CUDA_SUCCESS;
}

/// Attributes that depend on more than the compute capability's generation.
std::array<std::pair<CUdevice_attribute, unsigned>, 6> computed(const Device &device) {
  return {{{39, device.threadsOfMultiprocessor()},
           {75, device.major},
           {76, device.minor},
           {81, device.mostShared() + 1024}, // bytes of shared memory per multiprocessor
           {97, device.mostShared()},        // bytes of shared memory per block, with opt-in
           {106, device.blocksOfMultiprocessor()}}};
}

struct Attribute {
  CUdevice_attribute id;
  int value, onHopper; ///< before capability 9.0, and from 9.0 on
};

constexpr Attribute attributes[] = {
    {1, 1024, 1024},             // threads per block
    {2, 1024, 1024},             // in x
    {3, 1024, 1024},             // in y
    {4, 64, 64},                 // in z
    {5, 2147483647, 2147483647}, // blocks of a grid in x
    {6, 65535, 65535},           // in y
    {7, 65535, 65535},           // in z
    {8, 49152, 49152},           // bytes of shared memory per block, without opt-in
    {9, 65536, 65536},           // bytes of constant memory
    {10, 32, 32},                // threads per warp
    {12, 65536, 65536},          // registers per block
    {13, 1410000, 1980000},      // clock rate in kHz
    {15, 1, 1},                  // concurrent copies and kernels
    {16, 108, 132},              // multiprocessors
    {17, 0, 0},                  // kernel run-time limit
    {18, 0, 0},                  // integrated GPU
    {19, 1, 1},                  // host memory can be mapped
    {20, 0, 0},                  // compute mode: any
    {31, 1, 1},                  // concurrent kernels
    {35, 0, 0},                  // TCC driver
    {36, 1215000, 2619000},      // memory clock rate in kHz
    {37, 5120, 5120},            // memory bus width in bits
    {38, 41943040, 52428800},    // bytes of L2 cache
    {40, 3, 3},                  // asynchronous copy engines
    {41, 1, 1},                  // unified addressing
    {78, 1, 1},                  // stream priorities
    {82, 65536, 65536},          // registers per multiprocessor
    {83, 1, 1},                  // managed memory
    {95, 1, 1},                  // cooperative launches
    {115, 1, 1},                 // memory pools
    {120, 0, 1},                 // cluster launches
};

} // namespace

CUresult cuInit(unsigned flags) {
  return enter("cuInit", Needs::nothing, [&](Call &call) -> CUresult {
    if (flags)
      return CUDA_ERROR_INVALID_VALUE;
    if (!call.driver.initialised)
      call.driver.devices = call.driver.configuration.devices;
    if (call.driver.devices.empty())
      return CUDA_ERROR_NO_DEVICE;
    call.driver.initialised = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuDriverGetVersion(int *version) {
  return enter("cuDriverGetVersion", Needs::nothing, [&](Call &call) -> CUresult {
    if (!version)
      return CUDA_ERROR_INVALID_VALUE;
    *version = call.driver.configuration.version;
    return CUDA_SUCCESS;
  });
}

// These two functions only read a table, and so are not recorded as calls.
CUresult cuGetErrorName(CUresult error, const char **name) {
  if (!name)
    return CUDA_ERROR_INVALID_VALUE;
  switch (error) {
#define KILN_CUDA_RESULT(id, value, words)                                                                             \
  case id:                                                                                                             \
    *name = #id;                                                                                                       \
    return CUDA_SUCCESS;
    KILN_CUDA_RESULTS(KILN_CUDA_RESULT)
#undef KILN_CUDA_RESULT
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **words) {
  if (!words)
    return CUDA_ERROR_INVALID_VALUE;
  switch (error) {
#define KILN_CUDA_RESULT(id, value, text)                                                                              \
  case id:                                                                                                             \
    *words = text;                                                                                                     \
    return CUDA_SUCCESS;
    KILN_CUDA_RESULTS(KILN_CUDA_RESULT)
#undef KILN_CUDA_RESULT
  }
  *words = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
  return enter("cuDeviceGetCount", Needs::driver, [&](Call &call) -> CUresult {
    if (!count)
      return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(call.driver.devices.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return enter("cuDeviceGet", Needs::driver, [&](Call &call) -> CUresult {
    Device *found = nullptr;
    if (!device)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = find(call, ordinal, found))
      return error;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char *name, int length, CUdevice ordinal) {
  return enter("cuDeviceGetName", Needs::driver, [&](Call &call) -> CUresult {
    Device *device = nullptr;
    if (!name || length < 1)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = find(call, ordinal, device))
      return error;
    const std::string text = fmt::format("Interpreted GPU {}.{}", device->major, device->minor);
    const std::size_t size = std::min(text.size(), static_cast<std::size_t>(length) - 1);
    std::memcpy(name, text.data(), size);
    name[size] = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice ordinal) {
  return enter("cuDeviceGetUuid", Needs::driver, [&](Call &call) -> CUresult {
    Device *device = nullptr;
    if (!uuid)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = find(call, ordinal, device))
      return error;
    std::memcpy(uuid->bytes, "interpreted PTX", sizeof uuid->bytes);
    uuid->bytes[15] = static_cast<char>(ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice ordinal) {
  return enter("cuDeviceGetAttribute", Needs::driver, [&](Call &call) -> CUresult {
    Device *device = nullptr;
    if (!value)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = find(call, ordinal, device))
      return error;
    for (const auto &[id, number] : computed(*device))
      if (id == attribute) {
        *value = static_cast<int>(number);
        return CUDA_SUCCESS;
      }
    for (const Attribute &known : attributes)
      if (known.id == attribute) {
        *value = device->major >= 9 ? known.onHopper : known.value;
        return CUDA_SUCCESS;
      }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuDeviceTotalMem_v2(std::size_t *bytes, CUdevice ordinal) {
  return enter("cuDeviceTotalMem_v2", Needs::driver, [&](Call &call) -> CUresult {
    Device *device = nullptr;
    if (!bytes)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = find(call, ordinal, device))
      return error;
    *bytes = device->bytes;
    return CUDA_SUCCESS;
  });
}
