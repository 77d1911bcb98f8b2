// SPDX-License-Identifier: Apache-2.0
//
// Calls kernels as an entry does: with workers whose scratch memory has the size that the kernel requires.
#include "compiler/tuner/Executor.h"
#include "compiler/tuner/Session.h"

#include <chrono>
#include <fmt/format.h>

namespace kiln {

namespace {

class HostCaller : public Caller {
public:
  HostCaller(const Executor &executor, LoadedKernel kernel, int64_t scratchBytes);

  llvm::Error call(KernelData &data) override { return callWith(data, 0); }
  llvm::Expected<double> time(KernelData &data, unsigned repeats) override;

private:
  llvm::Error callWith(const KernelData &data, size_t weights);

  LoadedKernel kernel;
  size_t stride;
  std::vector<char> scratch;
  std::vector<kiln_worker_t> workers;
  std::vector<uint64_t> words;
  size_t rotation = 0;
};

HostCaller::HostCaller(const Executor &executor, LoadedKernel kernel, int64_t scratchBytes)
    : kernel(std::move(kernel)), stride(KILN_ARENA_ROUND(scratchBytes)),
      scratch(executor.workers() * stride + KILN_ARENA_ALIGNMENT), workers(executor.workers()) {
  uintptr_t begin = KILN_ARENA_ROUND(reinterpret_cast<uintptr_t>(scratch.data()));
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i] = {};
    workers[i].workers = workers.data();
    workers[i].top = reinterpret_cast<char *>(begin + i * stride);
    workers[i].end = workers[i].top + stride;
  }
  workers[0].executor = workers.size() > 1 ? executor.get() : nullptr;
}

llvm::Error HostCaller::callWith(const KernelData &data, size_t weights) {
  words.assign({reinterpret_cast<uint64_t>(workers.data())});
  llvm::ArrayRef<uint64_t> arguments = data.arguments(weights);
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (int result = kernel.call(words))
    return llvm::createStringError(fmt::format("the kernel returned {}", result));
  return llvm::Error::success();
}

llvm::Expected<double> HostCaller::time(KernelData &data, unsigned repeats) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  for (unsigned i = 0; i < repeats; ++i) {
    workers[0].is_backward = data.isStep() && rotation % 2;
    llvm::consumeError(callWith(data, rotation++));
  }
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

class HostSession : public Session {
public:
  explicit HostSession(unsigned threads) : executor(threads) {}

  llvm::Expected<std::unique_ptr<Caller>> load(const KernelCode &code, const KernelAbi &abi) override {
    llvm::Expected<LoadedKernel> kernel = LoadedKernel::load(code, abi);
    if (!kernel)
      return kernel.takeError();
    return std::make_unique<HostCaller>(executor, std::move(*kernel), code.scratchBytes);
  }

  std::vector<Rates> probe(const MachineModel &machine, llvm::ArrayRef<int64_t> footprints) override {
    const double operations = probeOperations(machine, executor.get());
    std::vector<Rates> rates;
    for (int64_t footprint : footprints)
      rates.push_back(
          {operations, probeReading(machine, footprint, executor.get()), probeCopying(footprint, executor.get())});
    return rates;
  }

private:
  Executor executor;
};

} // namespace

std::unique_ptr<Session> openHostSession(unsigned threads) { return std::make_unique<HostSession>(threads); }

llvm::Expected<std::unique_ptr<Session>> Session::open(const TargetInfo &target, unsigned threads,
                                                       const RunnerOptions &runner) {
  if (!runner.script.empty())
    return openRunnerSession(target, threads, runner);
  if (target.memorySpace == KILN_MEMORY_HOST)
    return openHostSession(threads);
  return openCudaSession();
}

} // namespace kiln
