// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/LoadedKernel.h"

#include "runtime/src/core/model.h"

#include <array>
#include <cstdlib>
#include <utility>

namespace kiln {

/// Called by a kernel that cannot continue; the tuner sees a crashed child process.
static void stop() { std::abort(); }

template <typename Function> static void *toAddress(Function *function) { return reinterpret_cast<void *>(function); }

llvm::Expected<LoadedKernel> LoadedKernel::load(const KernelCode &code, const KernelAbi &abi) {
  auto hook = [&](const char *name) { return (abi.hookPrefix() + name).str(); };
  const std::string allocate = hook("malloc"), release = hook("free"), loop = hook("do_par_for"), error = hook("error");
  auto linked =
      LinkedObjects::link(llvm::StringRef(code.object), {{allocate, toAddress(kiln_malloc)},
                                                         {release, toAddress(kiln_free)},
                                                         {loop, toAddress(kiln_do_par_for)},
                                                         {error, toAddress(stop)},
                                                         {"kiln_cuda_launch", toAddress(kiln_cuda_launch)},
                                                         {"kiln_cuda_launch_tma", toAddress(kiln_cuda_launch_tma)}});
  if (!linked)
    return linked.takeError();
  llvm::Expected<void *> entry = linked->lookup(code.symbol);
  if (!entry)
    return entry.takeError();
  return LoadedKernel(std::move(*linked), *entry);
}

template <size_t... I> static int callWith(void *entry, const uint64_t *values, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(std::remove_cvref_t<decltype(values[I])>...)>(entry)(values[I]...);
}

int LoadedKernel::call(llvm::ArrayRef<uint64_t> arguments) const {
  assert(arguments.size() <= mostArguments);
  std::array<uint64_t, mostArguments> all{};
  llvm::copy(arguments, all.begin());
  return callWith(entry, all.data(), std::make_index_sequence<mostArguments>());
}

} // namespace kiln
