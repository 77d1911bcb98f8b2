// SPDX-License-Identifier: Apache-2.0
//
// Launches: their preconditions, their clusters, and the error messages.
#include "Launch.h"

#include <fmt/format.h>

#include "Block.h"
#include "Fault.h"

namespace kiln::ptx {
namespace {

std::string refusal(const Entry &entry, const LaunchConfig &config, std::size_t parameterBytes) {
  const std::uint64_t threads = config.block.count();
  if (config.grid.count() == 0 || threads == 0)
    return "the grid or the block is empty";
  if (threads > 1024 || config.block.z > 64)
    return fmt::format("a block has at most 1024 threads, 64 of them in z, got {} x {} x {}", config.block.x,
                       config.block.y, config.block.z);
  if (config.grid.y > 65535 || config.grid.z > 65535)
    return fmt::format("a grid has at most 65535 blocks in y and z, got {} and {}", config.grid.y, config.grid.z);
  const std::uint64_t most =
      static_cast<std::uint64_t>(entry.maxThreads[0]) * entry.maxThreads[1] * entry.maxThreads[2];
  if (most && (threads > most || (entry.exactThreads && threads != most)))
    return fmt::format("the kernel is for {}{} threads, got {}", entry.exactThreads ? "" : "at most ", most, threads);
  if (entry.staticShared + config.dynamicShared > config.maxShared)
    return fmt::format("a block has at most {} bytes of shared memory, got {} static and {} dynamic", config.maxShared,
                       entry.staticShared, config.dynamicShared);
  if (parameterBytes != entry.parameterBytes)
    return fmt::format("the kernel has {} bytes of parameters, got {}", entry.parameterBytes, parameterBytes);
  if (config.cluster.count() == 0 || config.cluster.count() > 16 || config.grid.x % config.cluster.x ||
      config.grid.y % config.cluster.y || config.grid.z % config.cluster.z)
    return fmt::format("a cluster of {} x {} x {} blocks does not divide the grid, or is too large", config.cluster.x,
                       config.cluster.y, config.cluster.z);
  if (entry.cluster[0] && (entry.cluster[0] != config.cluster.x || entry.cluster[1] != config.cluster.y ||
                           entry.cluster[2] != config.cluster.z))
    return fmt::format("the kernel is for clusters of {} x {} x {} blocks", entry.cluster[0], entry.cluster[1],
                       entry.cluster[2]);
  return "";
}

std::string wordsOf(const Fault &fault, const std::string &kernel, const LaunchContext &context, const Warp &warp) {
  const Instruction &instruction = warp.current();
  const auto index = static_cast<std::size_t>(&instruction - context.program.code.data());
  const Dim3 &id = warp.block.id, &size = context.config.block;
  std::string who = fmt::format("warp {}", warp.index);
  if (fault.lane >= 0) {
    const unsigned thread = warp.index * warpSize + static_cast<unsigned>(fault.lane);
    who = fmt::format("thread ({}, {}, {})", thread % size.x, thread / size.x % size.y, thread / size.x / size.y);
  }
  return fmt::format("kernel {}, line {} \"{}\", block ({}, {}, {}), {}: {}", kernel, instruction.line,
                     context.program.texts[index], id.x, id.y, id.z, who, fault.what());
}

} // namespace

LaunchResult launch(const LoadedModule &module, std::string_view name, const LaunchConfig &asked,
                    std::span<const std::byte> parameters, Memory &memory) {
  LaunchResult result;
  const Entry *entry = module.module().find(name);
  if (!entry) {
    result.error = fmt::format("the module has no kernel {}", name);
    return result;
  }
  LaunchConfig config = asked;
  if (entry->cluster[0] && config.cluster.count() == 1)
    config.cluster = {entry->cluster[0], entry->cluster[1], entry->cluster[2]};
  result.error = refusal(*entry, config, parameters.size());
  if (!result.error.empty()) {
    result.error = fmt::format("kernel {}: {}", name, result.error);
    return result;
  }
  const LoadedModule::Runnable runnable = *module.runnable(name);
  if (config.isDependentLaunch && !runnable.program->waits) {
    result.error = fmt::format("kernel {}: it is launched early and does not wait for the kernels before it", name);
    return result;
  }
  LaunchContext context{*runnable.program, runnable.constants, config, parameters, memory};
  for (std::uint32_t z = 0; z < config.grid.z; z += config.cluster.z)
    for (std::uint32_t y = 0; y < config.grid.y; y += config.cluster.y)
      for (std::uint32_t x = 0; x < config.grid.x; x += config.cluster.x) {
        Cluster cluster(context, {x, y, z});
        try {
          cluster.run();
        } catch (const Fault &fault) {
          result.error = wordsOf(fault, entry->name, context, *cluster.faulting);
          result.line = cluster.faulting->current().line;
        }
        result.warpInstructions += cluster.instructions();
        result.threadInstructions += cluster.threadInstructions();
        result.bankConflicts = context.bankConflicts;
        if (!result)
          return result;
      }
  return result;
}

} // namespace kiln::ptx
