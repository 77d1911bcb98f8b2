// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/CudaDevice.h"

#include "compiler/jobs/Jobs.h"
#include "runtime/src/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace kiln {

/// Returns "CAPABILITY BYTES NAME". Runs in a child process.
static llvm::Expected<std::string> describeGpu() {
  kiln_cuda_driver_t driver = {};
  kiln_error_t error = {};
  if (kiln_cuda_driver_open(&driver, &error))
    return llvm::createStringError(error.message);
  auto getName = reinterpret_cast<int (*)(char *, int, int)>(dlsym(driver.library, "cuDeviceGetName"));
  auto getMemory = reinterpret_cast<int (*)(size_t *, int)>(dlsym(driver.library, "cuDeviceTotalMem_v2"));
  if (!getName || !getMemory)
    return llvm::createStringError("the CUDA driver does not tell the GPU's name and memory");
  int count = 0, device = 0, major = 0, minor = 0, result = driver.cuDeviceGetCount(&count);
  if (!result && count == 0)
    return llvm::createStringError("the CUDA driver finds no GPU");
  size_t bytes = 0;
  char name[256] = "";
  if (result || (result = driver.cuDeviceGet(&device, 0)) ||
      (result = driver.cuDeviceGetAttribute(&major, KILN_CUDA_CAPABILITY_MAJOR, device)) ||
      (result = driver.cuDeviceGetAttribute(&minor, KILN_CUDA_CAPABILITY_MINOR, device)) ||
      (result = getName(name, int(sizeof name), device)) || (result = getMemory(&bytes, device)))
    return llvm::createStringError(fmt::format("the CUDA driver does not describe the GPU: {} ({})",
                                               kiln_cuda_error_name(&driver, result), result));
  return fmt::format("{} {} {}", 10 * major + minor, bytes, name);
}

llvm::Expected<Machine> findGpu(llvm::StringRef isa) {
  static constexpr double seconds = 60; // a driver that initialises the GPU takes some seconds
  const JobResult result = runJob({describeGpu, {}}, {seconds, 0});
  if (result.outcome != JobOutcome::Done)
    return llvm::createStringError(result.error);
  auto [capability, rest] = llvm::StringRef(result.bytes).split(' ');
  auto [memory, name] = rest.split(' ');
  int64_t number = 0, bytes = 0;
  if (capability.getAsInteger(10, number) || memory.getAsInteger(10, bytes))
    return llvm::createStringError("the CUDA driver's GPU cannot be described");
  return makeGpu(isa, name, number, bytes);
}

} // namespace kiln
