// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/BenchCalls.h"

#include "compiler/library/CustomFunctions.h"
#include "runtime/src/core/selftest.h"
#include "runtime/src/readers/files.h"

#include <algorithm>
#include <chrono>

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double medianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.empty() ? 0 : *middle;
}

/// Records the trace events of a call and adds them up afterwards. A record is only two time points, so that the
/// overhead of tracing is small and known.
class KernelTimes {
public:
  KernelTimes() {
    moments.reserve(1 << 16);
    // The apparent time of an empty kernel: from the first time point to the second.
    kiln_event_t nothing{};
    nothing.task = -1; // the event of a whole kernel, not of one of its tasks
    std::vector<double> empty;
    for (int i = 0; i < 1001; ++i) {
      begin(this, &nothing);
      end(this, &nothing);
      empty.push_back(moments.back().seconds());
      moments.clear();
    }
    cost = medianOf(std::move(empty));
  }

  const kiln_trace_t *trace() const { return &functions; }
  /// Returns the overhead per kernel, which is subtracted from the measured time.
  double costOfANote() const { return cost; }

  /// Must be called after each call of the entry.
  void endCall() {
    std::map<const char *, KernelTime> called; // names belong to the library: one pointer per name
    for (const Moment &moment : moments) {
      KernelTime &kernel = called[moment.kernel];
      kernel.seconds += std::max(0.0, moment.seconds() - cost);
      ++kernel.calls;
      kernel.flops += moment.flops;
      kernel.bytes += moment.bytes;
      kernel.layers.insert(moment.layer);
    }
    std::map<std::string, KernelTime> byName;
    for (auto &[name, kernel] : called) {
      KernelTime &of = byName[name];
      of.seconds += kernel.seconds, of.calls += kernel.calls, of.flops += kernel.flops, of.bytes += kernel.bytes;
      of.layers.merge(kernel.layers);
    }
    for (auto &[name, kernel] : byName) {
      all[name].push_back(kernel.seconds);
      kernels[name] = std::move(kernel);
    }
    moments.clear();
  }

  /// Returns the median time of each kernel. All calls of an entry do the same work.
  std::map<std::string, KernelTime> medians() const {
    std::map<std::string, KernelTime> result = kernels;
    for (auto &[name, kernel] : result)
      kernel.seconds = medianOf(all.at(name));
    return result;
  }

private:
  struct Moment {
    const char *kernel, *layer;
    uint64_t flops, bytes;
    Clock::time_point begin, end;
    double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
  };

  static void begin(void *self, const kiln_event_t *event) {
    if (event->task < 0)
      static_cast<KernelTimes *>(self)->started = Clock::now();
  }
  static void end(void *self, const kiln_event_t *event) {
    if (event->task >= 0) // a task on one of the executor's threads
      return;
    const Clock::time_point now = Clock::now();
    auto *times = static_cast<KernelTimes *>(self);
    times->moments.push_back({event->kernel, event->layer, event->flops, event->bytes, times->started, now});
  }

  Clock::time_point started;
  std::vector<Moment> moments; // moments of the current call
  double cost = 0;
  std::map<std::string, KernelTime> kernels; // kernels of the last call
  std::map<std::string, std::vector<double>> all;
  kiln_trace_t functions{this, begin, end};
};

/// Returns the time of a call.
llvm::Expected<double> timeCall(EntryCalls &calls, const kiln_trace_t *trace) {
  const Clock::time_point begin = Clock::now();
  if (llvm::Error error = calls.call(trace))
    return std::move(error);
  return secondsSince(begin);
}

/// Scales the kernels' times from the traced calls to those without tracing: a traced call may take longer than the
/// known overhead explains, and medians do not add up.
void scaleToCall(EntryTimes &times) {
  double inKernels = 0, whole = times.tracedSeconds;
  for (const auto &[name, kernel] : times.kernels) {
    inKernels += kernel.seconds;
    whole -= static_cast<double>(kernel.calls) * times.costOfANote;
  }
  whole = std::max(whole, inKernels);
  if (whole <= times.seconds)
    return;
  times.scale = times.seconds / whole;
  for (auto &[name, kernel] : times.kernels)
    kernel.seconds *= times.scale;
}

} // namespace

llvm::Expected<LoadedModel> LoadedModel::load(const CompileReport &report) {
  std::vector<llvm::StringRef> objects;
  for (const ObjectFile &member : report.members)
    objects.push_back(member.bytes);
  // Functions of the program are not here: calls of them do nothing, so that everything else is measured.
  std::vector<std::string> names;
  for (const CustomInterface &function : report.model.functions)
    names.push_back(customSymbol(report.model.name, function.name));
  std::vector<std::pair<llvm::StringRef, void *>> absent;
  for (const std::string &name : names)
    absent.emplace_back(name, reinterpret_cast<void *>(+[] {}));
  llvm::Expected<LinkedObjects> linked = LinkedObjects::link(objects, absent);
  if (!linked)
    return linked.takeError();
  LoadedModel model(report, std::move(*linked));
  auto createOn = model.function<decltype(kiln_create_on)>("create_on");
  auto bind = model.function<decltype(kiln_bind_counter)>("bind_counter");
  auto run = model.function<decltype(kiln_run)>("run");
  auto destroy = model.function<decltype(kiln_destroy)>("destroy");
  llvm::Expected<void *> descriptor = model.linked.lookup(report.model.name + "_descriptor");
  if (llvm::Error missing = llvm::joinErrors(
          llvm::joinErrors(createOn.takeError(), bind.takeError()),
          llvm::joinErrors(run.takeError(), llvm::joinErrors(destroy.takeError(), descriptor.takeError()))))
    return std::move(missing);
  model.descriptor = static_cast<const kiln_descriptor_t *>(*descriptor);
  kiln_options_t options{};
  kiln_error_t error{};
  kiln_model_t *made = nullptr;
  kiln_status_t status = (*createOn)(&options, &made, &error);
  model.handle = {made, *destroy};
  if (!status)
    status = (*bind)(made, &error);
  if (status)
    return llvm::createStringError(error.message);
  model.runEntry = *run;
  return std::move(model);
}

EntryCalls::EntryCalls(const LoadedModel &model, uint32_t index, std::vector<int64_t> extents, uint64_t arenaBytes,
                       const kiln_executor_t *executor)
    : model(model), index(index), extents(std::move(extents)), arena(arenaBytes), executor(executor) {
  const kiln_entry_t &entry = model.entry(index);
  for (uint32_t i = 0; i < entry.argument_count; ++i) {
    const kiln_argument_t &argument = entry.arguments[i];
    const auto elements = static_cast<uint64_t>(kiln_argument_elements(&argument, this->extents.data()));
    Aligned &memory = buffers.emplace_back(kiln_safetensors_stored_bytes(argument.dtype, elements));
    if (!argument.is_output)
      kiln_counter_fill(&argument, this->extents.data(), /*seed=*/1, memory.data(), elements);
    arguments.push_back(memory.data());
  }
}

llvm::Error EntryCalls::call(const kiln_trace_t *trace) {
  kiln_error_t error{};
  const kiln_call_t given{
      .arena = arena.data(), .arena_bytes = arena.bytes, .executor = executor, .error = &error, .trace = trace};
  const kiln_status_t status = model.run(given, index, extents, arguments);
  // Training on random numbers may diverge.
  return status && status != KILN_NOT_FINITE ? llvm::createStringError(error.message) : llvm::Error::success();
}

llvm::Expected<EntryTimes> measure(EntryCalls &calls, double seconds) {
  EntryTimes times;
  if (llvm::Error error = calls.call()) // warm up pages and caches
    return std::move(error);
  KernelTimes kernels;
  std::vector<double> plain, traced;
  for (double spent = 0; spent < seconds || plain.size() < 3;) {
    llvm::Expected<double> first = timeCall(calls, nullptr);
    if (!first)
      return first.takeError();
    llvm::Expected<double> second = timeCall(calls, kernels.trace());
    if (!second)
      return second.takeError();
    kernels.endCall();
    plain.push_back(*first);
    traced.push_back(*second);
    spent += *first + *second;
  }
  times.seconds = medianOf(std::move(plain));
  times.tracedSeconds = medianOf(std::move(traced));
  times.costOfANote = kernels.costOfANote();
  times.kernels = kernels.medians();
  scaleToCall(times);
  return times;
}

llvm::Expected<CallWork> measureWork(EntryCalls &calls) {
  KernelTimes kernels;
  if (llvm::Error error = calls.call(kernels.trace()))
    return std::move(error);
  kernels.endCall();
  CallWork work;
  for (const auto &[name, kernel] : kernels.medians())
    work.flops += kernel.flops, work.bytes += kernel.bytes;
  return work;
}

} // namespace kiln
