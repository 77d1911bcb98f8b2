// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Bench.h"

#include "compiler/driver/Untuned.h"
#include "compiler/frontend/NearestNames.h"
#include "compiler/tuner/Executor.h"
#include "compiler/tuner/LinkedObjects.h"
#include "compiler/tuner/TargetsToTune.h"
#include "kiln/chrome_trace.h"
#include "runtime/src/internal.h"
#include "runtime/src/selftest.h"
#include "tools/kiln/Options.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <memory>
#include <set>
#include <thread>

namespace kiln {

BenchCommand::BenchCommand(CLI::App &app, const CompileOptions &given)
    : bench(app.add_subcommand("bench", "time the entries and their kernels on this machine")), options(given) {
  bench
      ->add_option("--target", options.targets,
                   "instruction set; default: the first one of a library that this machine supports")
      ->expected(1)
      ->check(CLI::IsMember(targetNames()))
      ->capture_default_str();
  addTuningOptions(*bench, options.tuning, isUntuned);
  addLoweringOptions(*bench, options.lowering);
  bench
      ->add_option("--threads", threads,
                   "threads of a call; default: one for small models, whose calls take less than about a millisecond, "
                   "else the number of CPUs")
      ->check(CLI::Range(1u, 1024u));
  bench->add_option("--extent", extents, "NAME=VALUE: size of a dynamic dimension; default: its upper bound")
      ->check(checkExtent);
  bench->add_option("--entry", entries, "measure only these entries");
  bench->add_option("--seconds", seconds, "measuring time of an entry, half of it for its kernels")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  bench->add_option("--json", jsonFile, "also write the times to this file");
  bench->add_option("--trace", traceFile,
                    "write a trace of one call of each entry to this file, for Chrome and Perfetto");
}

namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double medianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.empty() ? 0 : *middle;
}

/// The times of a kernel over some calls of an entry.
struct KernelTime {
  std::set<std::string> layers;
  uint64_t calls = 0, flops = 0, bytes = 0; // per call of the entry
  double seconds = 0;                       // sum over these calls: the median over calls of the entry
};

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

/// Memory that is aligned as an arena requires.
class Aligned {
public:
  explicit Aligned(uint64_t bytes) : bytes(bytes), memory(bytes + KILN_ARENA_ALIGNMENT) {}
  char *data() {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (KILN_ARENA_ROUND(address) - address);
  }
  const uint64_t bytes;

private:
  std::vector<char> memory; // zeros, as at the start of a session
};

/// The model as a library in this process, with weights.
class LoadedModel {
public:
  static llvm::Expected<LoadedModel> load(const CompileReport &report) {
    std::vector<llvm::StringRef> objects;
    for (const ObjectFile &member : report.members)
      objects.push_back(member.bytes);
    llvm::Expected<LinkedObjects> linked = LinkedObjects::link(objects);
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

  kiln_status_t run(const kiln_call_t &call, uint32_t entry, const std::vector<int64_t> &extents,
                    const std::vector<void *> &arguments) const {
    return runEntry(handle.get(), &call, entry, extents.data(), arguments.data());
  }

  const kiln_entry_t &entry(uint32_t index) const { return descriptor->entries[index]; }

private:
  LoadedModel(const CompileReport &report, LinkedObjects objects) : report(report), linked(std::move(objects)) {}
  template <class Function> llvm::Expected<Function *> function(const char *name) {
    llvm::Expected<void *> address = linked.lookup(report.model.name + "_" + name);
    if (!address)
      return address.takeError();
    return reinterpret_cast<Function *>(*address);
  }

  const CompileReport &report;
  LinkedObjects linked;
  const kiln_descriptor_t *descriptor = nullptr;
  std::unique_ptr<kiln_model_t, decltype(&kiln_destroy)> handle{nullptr, nullptr};
  decltype(kiln_run) *runEntry = nullptr;
};

/// Calls of one entry with the same arguments.
class EntryCalls {
public:
  EntryCalls(const LoadedModel &model, uint32_t index, std::vector<int64_t> extents, uint64_t arenaBytes,
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

  /// Calls the entry. Fails with the library's message.
  llvm::Error call(const kiln_trace_t *trace = nullptr) {
    kiln_error_t error{};
    const kiln_call_t given{
        .arena = arena.data(), .arena_bytes = arena.bytes, .executor = executor, .error = &error, .trace = trace};
    const kiln_status_t status = model.run(given, index, extents, arguments);
    // Training on random numbers may diverge.
    return status && status != KILN_NOT_FINITE ? llvm::createStringError(error.message) : llvm::Error::success();
  }

private:
  const LoadedModel &model;
  const uint32_t index;
  const std::vector<int64_t> extents;
  std::deque<Aligned> buffers;
  std::vector<void *> arguments;
  Aligned arena;
  const kiln_executor_t *executor;
};

/// The measurements of an entry.
struct EntryTimes {
  std::string name, extents;
  double seconds = 0;                        // median of the calls
  double tracedSeconds = 0, costOfANote = 0; // median of the traced calls; overhead of tracing per kernel
  std::map<std::string, KernelTime> kernels;
};

/// Returns the time of a call.
llvm::Expected<double> timeCall(EntryCalls &calls, const kiln_trace_t *trace) {
  const Clock::time_point begin = Clock::now();
  if (llvm::Error error = calls.call(trace))
    return std::move(error);
  return secondsSince(begin);
}

/// Repeats calls until the time is over, at least three times. Plain and traced calls alternate, so that both run under
/// the same conditions.
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
  return times;
}

/// The work of a call, from its trace.
struct CallWork {
  uint64_t flops = 0, bytes = 0;
  /// Whether a call takes at most about a millisecond on one thread: then starting other threads would take as long as
  /// they save.
  bool isSmall() const { return flops <= 20'000'000 && bytes <= 8'000'000; }
};

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

/// Returns the time with three significant digits; in microseconds below a millisecond.
std::string describeTime(double seconds) {
  const bool isShort = seconds < 0.9995e-3, isLong = seconds >= 0.9995;
  const double value = seconds * (isShort ? 1e6 : isLong ? 1 : 1e3);
  const int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;
  return fmt::format("{:.{}f} {}", value, digits, isShort ? "us" : isLong ? "s" : "ms");
}

void print(const EntryTimes &times) {
  uint64_t flops = 0, calls = 0;
  double inKernels = 0;
  std::vector<std::pair<std::string, const KernelTime *>> order;
  for (const auto &[name, kernel] : times.kernels) {
    flops += kernel.flops;
    calls += kernel.calls;
    inKernels += kernel.seconds;
    order.emplace_back(name, &kernel);
  }
  llvm::sort(order, [](auto &a, auto &b) { return a.second->seconds > b.second->seconds; });
  const auto perSecond = [](uint64_t amount, double seconds) {
    return seconds > 0 ? static_cast<double>(amount) / seconds * 1e-9 : 0;
  };
  fmt::print("{} ({}): {}, {:.1f} GFLOP/s\n", times.name, times.extents, describeTime(times.seconds),
             perSecond(flops, times.seconds));
  // Medians do not add up: the kernels' sum may exceed the call's time.
  const double whole = std::max(times.seconds, inKernels);
  fmt::print("  {:>7} {:>10} {:>6} {:>9} {:>8}  kernel: layers\n", "share", "time", "calls", "GFLOP/s", "GB/s");
  for (const auto &[name, kernel] : order)
    fmt::print("  {:5.1f} % {:>10} {:6} {:9.1f} {:8.1f}  {}: {}\n", kernel->seconds / whole * 100,
               describeTime(kernel->seconds), kernel->calls, perSecond(kernel->flops, kernel->seconds),
               perSecond(kernel->bytes, kernel->seconds), name, fmt::join(kernel->layers, " "));
  fmt::print("  {:5.1f} % {:>10} between kernels\n", (1 - inKernels / whole) * 100, describeTime(whole - inKernels));
  fmt::print("  medians, without the overhead of tracing: {} kernels, {:.3g} ns each (a traced call: {})\n", calls,
             times.costOfANote * 1e9, describeTime(times.tracedSeconds));
}

llvm::json::Object toJson(const EntryTimes &times) {
  return llvm::json::Object{{"name", times.name}, {"extents", times.extents}, {"seconds", times.seconds}};
}

/// Adds a row for each kernel, in the form that `inspect --times` reads. Names are those of the manifest, without
/// `prefix`.
void addKernels(llvm::json::Array &rows, const EntryTimes &times, llvm::StringRef prefix) {
  for (const auto &[symbol, kernel] : times.kernels) {
    llvm::StringRef name = symbol;
    name.consume_front(prefix);
    rows.push_back(llvm::json::Object{{"entry", times.name},
                                      {"name", name.str()},
                                      {"layers", llvm::json::Array(kernel.layers)},
                                      {"calls", kernel.calls},
                                      {"seconds", kernel.seconds},
                                      {"flops", kernel.flops},
                                      {"bytes", kernel.bytes}});
  }
}

/// Returns the extents of a call: the given ones, else the upper bounds. Fails for a value outside of its bounds.
llvm::Expected<std::vector<int64_t>> extentsOf(const EntryInterface &entry, const GivenExtents &given) {
  std::vector<int64_t> values;
  for (const Symbol &symbol : entry.symbols) {
    auto found = given.find(symbol.name);
    values.push_back(found == given.end() ? symbol.max : found->second.front());
    if (values.back() < symbol.min || values.back() > symbol.max)
      return llvm::createStringError(fmt::format("{}: {} is out of range; expected one in [{}, {}], got {}", entry.name,
                                                 symbol.name, symbol.min, symbol.max, values.back()));
  }
  return values;
}

std::string describe(const EntryInterface &entry, const std::vector<int64_t> &values) {
  std::string text;
  for (auto [symbol, value] : llvm::zip_equal(entry.symbols, values))
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", symbol.name, value);
  return text;
}

/// Fails for the name of an extent or entry that the model does not have.
llvm::Error checkGiven(const ModelInterface &model, const GivenExtents &given,
                       const std::vector<std::string> &entries) {
  std::vector<std::string> symbols, timed;
  for (const Symbol &symbol : model.symbols)
    symbols.push_back(symbol.name);
  for (const EntryInterface &entry : model.entries)
    if (!entry.isBatch())
      timed.push_back(entry.name);
  for (const auto &[name, values] : given) {
    if (!llvm::is_contained(symbols, name))
      return llvm::createStringError(
          fmt::format("the model has no dimension \"{}\"{}", name, nearestNames(name, symbols)));
    if (values.size() > 1)
      return llvm::createStringError(
          fmt::format("--extent: several values of {}; expected one, got {}", name, values.size()));
  }
  for (const std::string &name : entries)
    if (!llvm::is_contained(timed, name))
      return llvm::createStringError(
          fmt::format("the model has no entry \"{}\" that can be timed{}", name, nearestNames(name, timed)));
  return llvm::Error::success();
}

} // namespace

int BenchCommand::run(const Graph &graph) {
  std::vector<TargetHere> here = findTargets(options.targets, {}, [](const std::string &) {});
  if (here.empty())
    return fail(llvm::createStringError(
        fmt::format("this machine does not run {}; name a target with --target", fmt::join(options.targets, ", "))));
  options.targets = {here.front().target->name().str()};
  options.form = EmitForm::Memory;
  options.tuning.command += flagsOf(options.lowering);
  findTuningFile(options.tuning, options.name, isUntuned);
  mlir::FailureOr<CompileReport> report = compileModel(graph, options, llvm::errs());
  if (failed(report))
    return 1;
  const GivenExtents given = toExtents(extents);
  if (llvm::Error wrong = checkGiven(report->model, given, entries))
    return fail(std::move(wrong));
  llvm::Expected<LoadedModel> model = LoadedModel::load(*report);
  if (!model)
    return fail(model.takeError());

  struct Timed {
    uint32_t index;
    std::vector<int64_t> extents;
  };
  std::vector<Timed> timed;
  for (size_t i = 0; i < report->model.entries.size(); ++i) {
    const EntryInterface &entry = report->model.entries[i];
    if (entry.isBatch() || (!entries.empty() && !llvm::is_contained(entries, entry.name)))
      continue;
    llvm::Expected<std::vector<int64_t>> values = extentsOf(entry, given);
    if (!values)
      return fail(values.takeError());
    timed.push_back({static_cast<uint32_t>(i), std::move(*values)});
  }
  const auto callsOf = [&](const Timed &of, const kiln_executor_t *executor) {
    const ArenaBytes arena = arenaBytes(report->variants, of.index);
    const uint64_t workers = executor ? executor->workers : 1;
    return std::make_unique<EntryCalls>(*model, of.index, of.extents, arena.fixed + workers * arena.perWorker,
                                        executor);
  };
  bool isSmall = threads == 0;
  if (report->variants.front().isOnDevice())
    threads = 1, isSmall = false;
  for (size_t i = 0; isSmall && i < timed.size(); ++i) {
    llvm::Expected<CallWork> work = measureWork(*callsOf(timed[i], nullptr));
    if (!work)
      return fail(work.takeError());
    isSmall = work->isSmall();
  }
  if (threads == 0)
    threads = isSmall ? 1 : std::max(1u, std::thread::hardware_concurrency());

  const Executor executor(threads);
  fmt::print("{} on {}, {} thread{}{}\n", report->model.name, toString(here.front().machine), executor.workers(),
             executor.workers() == 1 ? "" : "s", isSmall ? ", as calls are short (--threads for more)" : "");
  fmt::print("{}\n", describeTuning(report->variants, options.tuning));
  std::vector<kiln_chrome_moment_t> moments(traceFile.empty() ? 0 : 1 << 18);
  kiln_chrome_trace_t trace;
  kiln_chrome_trace_begin(&trace, moments.data(), moments.size());
  llvm::json::Array all, kernels;
  std::string prefix = report->model.name + "_" + options.targets.front() + "_";
  std::replace(prefix.begin(), prefix.end(), '-', '_');
  for (const Timed &of : timed) {
    const EntryInterface &entry = report->model.entries[of.index];
    const std::unique_ptr<EntryCalls> calls = callsOf(of, executor.get());
    llvm::Expected<EntryTimes> times = measure(*calls, seconds);
    if (!times)
      return fail(times.takeError());
    times->name = entry.name;
    times->extents = describe(entry, of.extents);
    print(*times);
    all.push_back(toJson(*times));
    addKernels(kernels, *times, prefix);
    if (!traceFile.empty())
      if (llvm::Error error = calls->call(&trace.trace))
        return fail(std::move(error));
  }
  if (!traceFile.empty() && kiln_chrome_trace_write(&trace, traceFile.c_str()) != 0)
    return fail(llvm::createStringError(fmt::format("cannot write \"{}\"", traceFile)));
  if (jsonFile.empty())
    return 0;
  std::error_code code;
  llvm::raw_fd_ostream out(jsonFile, code);
  if (code)
    return fail(llvm::createStringError(fmt::format("cannot write \"{}\": {}", jsonFile, code.message())));
  out << llvm::formatv("{0:2}", llvm::json::Value(llvm::json::Object{{"model", report->model.name},
                                                                     {"target", options.targets.front()},
                                                                     {"threads", executor.workers()},
                                                                     {"entries", std::move(all)},
                                                                     {"kernels", std::move(kernels)}}))
      << "\n";
  return 0;
}

} // namespace kiln
