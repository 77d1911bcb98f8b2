// SPDX-License-Identifier: Apache-2.0
//
// Launches: the checks that the driver makes at the call, and execution by the interpreter.
#include <cstring>
#include <fmt/format.h>

#include "Launch.h"
#include "Queue.h"

namespace kiln::fake {
namespace {

struct Launch {
  ptx::LaunchConfig config;
  bool hasCluster = false; ///< set by a launch attribute
  CUstream stream = nullptr;
};

/// Maps the interpreter's error text to one of three errors of the context; a real driver has more.
CUresult codeOf(const std::string &words) {
  const auto has = [&](const char *part) { return words.find(part) != std::string::npos; };
  if (has("misaligned"))
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  if (has("out of range") || has("in no allocation") || has("that is freed"))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (has("taken to hang") || has("deadlock"))
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  return CUDA_ERROR_LAUNCH_FAILED;
}

bool isPossible(const ptx::LaunchConfig &config, const ptx::Entry &entry) {
  const std::uint64_t threads = config.block.count();
  const std::uint64_t most =
      static_cast<std::uint64_t>(entry.maxThreads[0]) * entry.maxThreads[1] * entry.maxThreads[2];
  return config.grid.count() && config.grid.x <= 0x7fffffff && config.grid.y <= 65535 && config.grid.z <= 65535 &&
         threads && threads <= 1024 && config.block.z <= 64 && (!most || threads <= most) &&
         (!entry.exactThreads || threads == most);
}

/// Uses the kernel's required cluster dimensions where the launch has none.
CUresult checkCluster(Launch &launch, const Function &function, const Device &device) {
  const auto &required = function.entry->cluster;
  ptx::Dim3 &cluster = launch.config.cluster;
  if (required[0]) {
    if (launch.hasCluster && (cluster.x != required[0] || cluster.y != required[1] || cluster.z != required[2]))
      return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    cluster = {required[0], required[1], required[2]};
  }
  const ptx::Dim3 &grid = launch.config.grid;
  if (launch.hasCluster && device.major < 9)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (!cluster.count() || cluster.count() > (function.nonPortableCluster ? 16 : 8) || grid.x % cluster.x ||
      grid.y % cluster.y || grid.z % cluster.z)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return CUDA_SUCCESS;
}

/// Copies the parameters at the call, in the kernel's layout: from one pointer each, or from a buffer with all of them.
CUresult pack(const ptx::Entry &entry, void **parameters, void **extra, std::vector<std::byte> &bytes) {
  bytes.resize(entry.parameterBytes);
  if (parameters && extra)
    return CUDA_ERROR_INVALID_VALUE;
  if (extra) {
    const void *buffer = nullptr;
    std::size_t size = 0;
    for (; *extra; extra += 2) {
      if (*extra == launchParameterBuffer)
        buffer = extra[1];
      else if (*extra == launchParameterBytes)
        size = *static_cast<const std::size_t *>(extra[1]);
      else
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size != bytes.size() || (size && !buffer))
      return CUDA_ERROR_INVALID_VALUE;
    if (size)
      std::memcpy(bytes.data(), buffer, size);
    return CUDA_SUCCESS;
  }
  if (!parameters && !entry.parameters.empty())
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
    if (!parameters[i])
      return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(bytes.data() + entry.parameters[i].offset, parameters[i], entry.parameters[i].size);
  }
  return CUDA_SUCCESS;
}

Failure run(Driver &driver, Context &context, const Function &function, const ptx::LaunchConfig &config,
            const std::vector<std::byte> &parameters) {
  const std::string &name = function.entry->name;
  if (function.module->unloaded)
    return {CUDA_ERROR_LAUNCH_FAILED, fmt::format("kernel {}: its module was unloaded before it ran", name)};
  const ptx::LaunchResult result = ptx::launch(*function.module->code, name, config, parameters, context.memory);
  driver.warpInstructions += result.warpInstructions;
  driver.now += 2000 + result.warpInstructions; // nanoseconds
  if (!result)
    return {codeOf(result.error), result.error};
  ++driver.kernels;
  return {};
}

void describe(Record &record, const Launch &launch, const Function *function) {
  const auto put = [](unsigned (&to)[3], const ptx::Dim3 &from) { to[0] = from.x, to[1] = from.y, to[2] = from.z; };
  put(record.grid, launch.config.grid);
  put(record.block, launch.config.block);
  put(record.cluster, launch.config.cluster);
  record.sharedBytes = launch.config.dynamicShared;
  if (function)
    record.kernel = function->entry->name;
}

CUresult enqueue(Call &call, CUfunction handle, Launch launch, void **parameters, void **extra) {
  const std::shared_ptr<Function> function = call.driver.functions.find(handle);
  describe(call.record, launch, function.get());
  std::shared_ptr<Stream> stream;
  if (const CUresult error = call.find(launch.stream, stream))
    return error;
  if (!function || function->context != stream->context)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!isPossible(launch.config, *function->entry) || launch.config.dynamicShared > function->maxDynamicShared)
    return CUDA_ERROR_INVALID_VALUE;
  const Device &device = call.driver.devices[static_cast<std::size_t>(function->context->device)];
  if (const CUresult error = checkCluster(launch, *function, device))
    return error;
  std::vector<std::byte> bytes;
  if (const CUresult error = pack(*function->entry, parameters, extra, bytes))
    return error;
  launch.config.maxShared = device.mostShared();
  if (call.driver.configuration.instructionLimit)
    launch.config.limit = call.driver.configuration.instructionLimit;
  Work work;
  work.kind = Work::Kind::kernel;
  work.run = [function, config = launch.config, bytes = std::move(bytes)](Driver &driver, Context &context) {
    return run(driver, context, *function, config, bytes);
  };
  return submit(call, stream, std::move(work));
}

} // namespace
} // namespace kiln::fake

using namespace kiln::fake;

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream, void **parameters,
                        void **extra) {
  return enter("cuLaunchKernel", Needs::context, [&](Call &call) {
    Launch launch;
    launch.config.grid = {gridX, gridY, gridZ};
    launch.config.block = {blockX, blockY, blockZ};
    launch.config.dynamicShared = sharedBytes;
    launch.stream = stream;
    return enqueue(call, function, launch, parameters, extra);
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  return enter("cuLaunchKernelEx", Needs::context, [&](Call &call) -> CUresult {
    if (!config || (config->numAttrs && !config->attrs))
      return CUDA_ERROR_INVALID_VALUE;
    Launch launch;
    launch.config.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
    launch.config.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
    launch.config.dynamicShared = config->sharedMemBytes;
    launch.stream = config->hStream;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const CUlaunchAttribute &attribute = config->attrs[i];
      if (attribute.id == launchClusterDimension) {
        const auto &[x, y, z] = attribute.value.clusterDim;
        launch.config.cluster = {x, y, z};
        launch.hasCluster = true;
      } else if (attribute.id == launchProgrammaticStreamSerialization) {
        launch.config.isDependentLaunch = attribute.value.programmaticStreamSerializationAllowed;
      } else if (attribute.id == 2 && attribute.value.cooperative) {
        return CUDA_ERROR_NOT_SUPPORTED; // blocks run one after the other
      } else if (attribute.id < 0 || attribute.id > 15) {
        return CUDA_ERROR_INVALID_VALUE;
      } // the other attributes are performance hints
    }
    return enqueue(call, function, launch, parameters, extra);
  });
}
