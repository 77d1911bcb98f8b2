// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/TargetsToTune.h"

#include "compiler/jobs/Jobs.h"
#include "compiler/object/ThisMachine.h"
#include "compiler/tuner/CudaDevice.h"
#include "compiler/tuner/measurement.h"
#include "runtime/src/os/cpu.h"

#include <fmt/format.h>

namespace kiln {

llvm::Expected<Machine> findMachine(const TargetInfo &target) {
  if (!isForThisMachine(target.hostTriple))
    return llvm::createStringError("this machine cannot run it");
  if (target.memorySpace == KILN_MEMORY_DEVICE)
    return findGpu(target.name);
  const kiln_cpu_t cpu = kiln_cpu_detect();
  if (target.features & ~kiln_cpu_features(&cpu))
    return llvm::createStringError("this CPU cannot run it");
  return detectMachine(target.name);
}

/// Returns "CPUS MACHINE" of the runner's machine. Runs in a child process.
static llvm::Expected<std::string> askMachine(const TargetInfo &target, const RunnerOptions &options) {
  llvm::Expected<std::unique_ptr<Runner>> runner = startMeasurementProgram(options, target, {}, {});
  if (!runner)
    return runner.takeError();
  Messages &messages = (*runner)->messages();
  messages.put(KILN_MEASURE_CPUS);
  messages.send();
  const auto cpus = static_cast<int64_t>(messages.number());
  const Machine machine = detectMachine(target.name, cpus, cpuFolder, [&](const std::string &path) {
    messages.put(KILN_MEASURE_FILE);
    messages.put(path.data(), path.size());
    messages.send();
    const std::vector<char> text = messages.bytes();
    return std::string(text.begin(), text.end());
  });
  if (llvm::Error error = (*runner)->check())
    return error;
  return fmt::format("{} {}", cpus, toString(machine));
}

static llvm::Expected<TargetHere> findThere(const Target &target, const RunnerOptions &runner) {
  static constexpr double mostSeconds = 120;
  if (target.info().memorySpace != KILN_MEMORY_HOST)
    return llvm::createStringError("a runner is for CPUs");
  const JobResult asked = runJob({[&] { return askMachine(target.info(), runner); }, {}}, {mostSeconds, 0});
  if (asked.outcome != JobOutcome::Done)
    return llvm::createStringError(asked.error);
  auto [cpus, text] = llvm::StringRef(asked.bytes).split(' ');
  TargetHere there{&target, {}, 1};
  std::optional<Machine> machine = parseMachine(text);
  if (!machine || cpus.getAsInteger(10, there.threads))
    return llvm::createStringError("the program tells of no machine that can be");
  there.machine = std::move(*machine);
  return there;
}

static llvm::Expected<TargetHere> findHere(const Target &target) {
  llvm::Expected<Machine> machine = findMachine(target.info());
  if (!machine)
    return machine.takeError();
  return TargetHere{&target, std::move(*machine), unsigned(availableCpus().size())};
}

std::vector<TargetHere> findTargets(const std::vector<std::string> &names, const RunnerOptions &runner,
                                    const std::function<void(const std::string &)> &note) {
  std::vector<TargetHere> targets;
  for (const std::string &name : names) {
    const Target &target = *findTarget(name);
    if (llvm::Expected<TargetHere> found = runner.script.empty() ? findHere(target) : findThere(target, runner))
      targets.push_back(std::move(*found));
    else
      note(fmt::format("leaving out {}: {}", name, llvm::toString(found.takeError())));
  }
  return targets;
}

} // namespace kiln
