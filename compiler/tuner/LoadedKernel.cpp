// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/LoadedKernel.h"

#include "runtime/src/model.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/Support/MemoryBuffer.h"
#include <array>
#include <cstdlib>
#include <utility>

namespace kiln {

using namespace llvm::orc;

struct LoadedKernel::Linked {
  explicit Linked(std::unique_ptr<ExecutorProcessControl> control) : session(std::move(control)), layer(session) {}
  ~Linked() { llvm::consumeError(session.endSession()); }

  ExecutionSession session;
  ObjectLinkingLayer layer;
  void *entry = nullptr;
};

/// What a kernel calls where it cannot go on; the child's end is an outcome.
static void stop() { std::abort(); }

template <typename Function> static ExecutorSymbolDef toSymbol(Function *function) {
  return {ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
}

LoadedKernel::LoadedKernel(std::unique_ptr<Linked> linked) : linked(std::move(linked)) {}
LoadedKernel::LoadedKernel(LoadedKernel &&) = default;
LoadedKernel::~LoadedKernel() = default;

llvm::Expected<LoadedKernel> LoadedKernel::load(llvm::StringRef object, llvm::StringRef symbol) {
  // In place: linking must not start a thread, which would share the measured CPU.
  auto control = SelfExecutorProcessControl::Create(nullptr, std::make_unique<InPlaceTaskDispatcher>());
  if (!control)
    return control.takeError();
  auto linked = std::make_unique<Linked>(std::move(*control));
  JITDylib &code = linked->session.createBareJITDylib("kernel");
  auto intern = [&](llvm::StringRef name) { return linked->session.intern(name); };
  if (llvm::Error error = code.define(absoluteSymbols({{intern("halide_malloc"), toSymbol(kiln_malloc)},
                                                       {intern("halide_free"), toSymbol(kiln_free)},
                                                       {intern("halide_do_par_for"), toSymbol(kiln_do_par_for)},
                                                       {intern("halide_error"), toSymbol(stop)}})))
    return error;
  auto process = DynamicLibrarySearchGenerator::GetForCurrentProcess('\0'); // memset, memcpy
  if (!process)
    return process.takeError();
  code.addGenerator(std::move(*process));
  if (llvm::Error error = linked->layer.add(code, llvm::MemoryBuffer::getMemBufferCopy(object, "kernel.o")))
    return error;
  auto entry = linked->session.lookup({&code}, intern(symbol));
  if (!entry)
    return entry.takeError();
  linked->entry = entry->getAddress().toPtr<void *>();
  return LoadedKernel(std::move(linked));
}

template <size_t... I> static int callWith(void *entry, const uint64_t *values, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(std::remove_cvref_t<decltype(values[I])>...)>(entry)(values[I]...);
}

int LoadedKernel::call(llvm::ArrayRef<uint64_t> arguments) const {
  assert(arguments.size() <= mostArguments);
  std::array<uint64_t, mostArguments> all{};
  llvm::copy(arguments, all.begin());
  return callWith(linked->entry, all.data(), std::make_index_sequence<mostArguments>());
}

} // namespace kiln
