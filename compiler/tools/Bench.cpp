// SPDX-License-Identifier: Apache-2.0
#include "compiler/tools/Bench.h"

#include "compiler/tools/Options.h"
#include "compiler/tuner/Executor.h"
#include "compiler/tuner/LinkedObjects.h"
#include "compiler/tuner/TargetsToTune.h"
#include "kiln/chrome_trace.h"
#include "runtime/src/internal.h"
#include "runtime/src/selftest.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <set>
#include <thread>

namespace kiln {

BenchCommand::BenchCommand(CLI::App &app, const CompileOptions &given)
    : bench(app.add_subcommand("bench", "time the entries and their kernels on this machine")), options(given),
      threads(std::max(1u, std::thread::hardware_concurrency())) {
  options.targets.clear();
  bench->add_option("--target", options.targets, "the instruction set; the best that this CPU runs if not given")
      ->expected(1)
      ->check(CLI::IsMember(targetNames()));
  bench->add_option("--tuning", options.tuning.file, "file of measurements that schedules are chosen by");
  addLoweringOptions(*bench, options.lowering);
  bench->add_option("--threads", threads, "threads that a call has")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  bench->add_option("--extent", extents, "NAME=VALUE: a run-time extent; its bound if not given")->check(checkExtent);
  bench->add_option("--entry", entries, "only these entries");
  bench->add_option("--seconds", seconds, "time for an entry, half of it for its kernels")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  bench->add_option("--json", jsonFile, "write the times to this file, too");
  bench->add_option("--trace", traceFile, "write a call of each entry to this file, for Chrome and Perfetto");
}

namespace {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// The times of a kernel over some calls of an entry.
struct KernelTime {
  std::set<std::string> layers;
  uint64_t calls = 0, flops = 0, bytes = 0;
  double seconds = 0;
};

/// Adds up what a trace tells.
class KernelTimes {
public:
  const kiln_trace_t *trace() const { return &functions; }
  std::map<std::string, KernelTime> kernels;

private:
  static void begin(void *self, const kiln_event_t *event) {
    if (event->task < 0)
      static_cast<KernelTimes *>(self)->started = Clock::now();
  }
  static void end(void *self, const kiln_event_t *event) {
    if (event->task >= 0) // of the executor's threads
      return;
    auto *times = static_cast<KernelTimes *>(self);
    const double seconds = secondsSince(times->started);
    KernelTime &kernel = times->kernels[event->kernel];
    kernel.seconds += seconds;
    ++kernel.calls;
    kernel.flops += event->flops;
    kernel.bytes += event->bytes;
    kernel.layers.insert(event->layer);
  }

  Clock::time_point started;
  kiln_trace_t functions{this, begin, end};
};

/// Memory whose beginning is aligned as an arena's.
class Aligned {
public:
  explicit Aligned(uint64_t bytes) : bytes(bytes), memory(bytes + KILN_ARENA_ALIGNMENT) {}
  char *data() {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (KILN_ARENA_ROUND(address) - address);
  }
  const uint64_t bytes;

private:
  std::vector<char> memory; // zeros: states begin so
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

  /// Fails with the library's words.
  llvm::Error call(const kiln_trace_t *trace = nullptr) {
    kiln_error_t error{};
    const kiln_call_t given{
        .arena = arena.data(), .arena_bytes = arena.bytes, .executor = executor, .error = &error, .trace = trace};
    const kiln_status_t status = model.run(given, index, extents, arguments);
    // Weights that are trained on random numbers may end anywhere.
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

/// What was measured of an entry.
struct EntryTimes {
  std::string name, extents;
  double seconds = 0; // the median of calls
  uint64_t tracedCalls = 0;
  double tracedSeconds = 0; // of all of them
  std::map<std::string, KernelTime> kernels;
};

/// Calls until the time is over, at least thrice; the time of each.
llvm::Expected<std::vector<double>> repeat(EntryCalls &calls, double seconds, const kiln_trace_t *trace) {
  std::vector<double> times;
  for (double spent = 0; spent < seconds || times.size() < 3; spent += times.back()) {
    const Clock::time_point begin = Clock::now();
    if (llvm::Error error = calls.call(trace))
      return std::move(error);
    times.push_back(secondsSince(begin));
  }
  return times;
}

llvm::Expected<EntryTimes> measure(EntryCalls &calls, double seconds) {
  EntryTimes times;
  if (llvm::Error error = calls.call()) // pages and caches
    return std::move(error);
  llvm::Expected<std::vector<double>> plain = repeat(calls, seconds / 2, nullptr);
  if (!plain)
    return plain.takeError();
  std::nth_element(plain->begin(), plain->begin() + plain->size() / 2, plain->end());
  times.seconds = (*plain)[plain->size() / 2];
  KernelTimes kernels;
  llvm::Expected<std::vector<double>> traced = repeat(calls, seconds / 2, kernels.trace());
  if (!traced)
    return traced.takeError();
  times.tracedCalls = traced->size();
  times.tracedSeconds = std::accumulate(traced->begin(), traced->end(), 0.0);
  times.kernels = std::move(kernels.kernels);
  return times;
}

void print(const EntryTimes &times) {
  uint64_t flops = 0;
  double inKernels = 0;
  std::vector<std::pair<std::string, const KernelTime *>> order;
  for (const auto &[name, kernel] : times.kernels) {
    flops += kernel.flops;
    inKernels += kernel.seconds;
    order.emplace_back(name, &kernel);
  }
  llvm::sort(order, [](auto &a, auto &b) { return a.second->seconds > b.second->seconds; });
  const auto calls = static_cast<double>(times.tracedCalls);
  fmt::print("{} ({}): {:.4g} ms, {:.1f} GFLOP/s\n", times.name, times.extents, times.seconds * 1e3,
             static_cast<double>(flops) / calls / times.seconds * 1e-9);
  fmt::print("  {:>7} {:>10} {:>6} {:>9} {:>8}  kernel: layers\n", "share", "ms", "calls", "GFLOP/s", "GB/s");
  for (const auto &[name, kernel] : order)
    fmt::print("  {:5.1f} % {:10.4f} {:6} {:9.1f} {:8.1f}  {}: {}\n", kernel->seconds / times.tracedSeconds * 100,
               kernel->seconds / calls * 1e3, kernel->calls / times.tracedCalls,
               static_cast<double>(kernel->flops) / kernel->seconds * 1e-9,
               static_cast<double>(kernel->bytes) / kernel->seconds * 1e-9, name, fmt::join(kernel->layers, " "));
  fmt::print("  {:5.1f} % between kernels\n", (1 - inKernels / times.tracedSeconds) * 100);
}

llvm::json::Object toJson(const EntryTimes &times) {
  return llvm::json::Object{{"name", times.name}, {"extents", times.extents}, {"seconds", times.seconds}};
}

/// A row for each kernel, as `inspect --times` reads them. Names are those of the manifest: without `prefix`.
void addKernels(llvm::json::Array &rows, const EntryTimes &times, llvm::StringRef prefix) {
  const auto calls = static_cast<double>(times.tracedCalls);
  for (const auto &[symbol, kernel] : times.kernels) {
    llvm::StringRef name = symbol;
    name.consume_front(prefix);
    rows.push_back(llvm::json::Object{{"entry", times.name},
                                      {"name", name.str()},
                                      {"layers", llvm::json::Array(kernel.layers)},
                                      {"calls", kernel.calls / times.tracedCalls},
                                      {"seconds", kernel.seconds / calls},
                                      {"flops", kernel.flops / times.tracedCalls},
                                      {"bytes", kernel.bytes / times.tracedCalls}});
  }
}

/// The extents of a call: those given, else the bounds. Fails for one that the entry does not take.
llvm::Expected<std::vector<int64_t>> extentsOf(const EntryInterface &entry, const GivenExtents &given) {
  std::vector<int64_t> values;
  for (const Symbol &symbol : entry.symbols) {
    auto found = given.find(symbol.name);
    values.push_back(found == given.end() ? symbol.max : found->second.front());
    if (values.back() < symbol.min || values.back() > symbol.max)
      return llvm::createStringError(fmt::format("{} requires {} in [{}, {}], got {}", entry.name, symbol.name,
                                                 symbol.min, symbol.max, values.back()));
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
  for (const auto &[name, values] : given) {
    if (llvm::none_of(model.symbols, [&](const Symbol &symbol) { return symbol.name == name; }))
      return llvm::createStringError(fmt::format("the model has no extent \"{}\"", name));
    if (values.size() > 1)
      return llvm::createStringError(fmt::format("--extent requires one value of {}, got {}", name, values.size()));
  }
  for (const std::string &name : entries)
    if (llvm::none_of(model.entries,
                      [&](const EntryInterface &entry) { return entry.name == name && !entry.isBatch(); }))
      return llvm::createStringError(fmt::format("the model has no entry \"{}\" that can be timed", name));
  return llvm::Error::success();
}

} // namespace

int BenchCommand::run(const Graph &graph) {
  std::vector<TargetHere> here = findTargets(options.targets, {}, [](const std::string &) {});
  if (here.empty())
    return fail(llvm::createStringError(options.targets.empty()
                                            ? "this machine runs no target"
                                            : fmt::format("this machine does not run {}", options.targets.front())));
  options.targets = {here.front().target->name().str()};
  options.form = EmitForm::Memory;
  mlir::FailureOr<CompileReport> report = compileModel(graph, options, llvm::errs());
  if (failed(report))
    return 1;
  const GivenExtents given = toExtents(extents);
  if (llvm::Error wrong = checkGiven(report->model, given, entries))
    return fail(std::move(wrong));
  llvm::Expected<LoadedModel> model = LoadedModel::load(*report);
  if (!model)
    return fail(model.takeError());

  const Executor executor(report->variants.front().isOnDevice() ? 1 : threads);
  fmt::print("{} on {}, {} thread{}\n", report->model.name, toString(here.front().machine), executor.workers(),
             executor.workers() == 1 ? "" : "s");
  std::vector<kiln_chrome_moment_t> moments(traceFile.empty() ? 0 : 1 << 18);
  kiln_chrome_trace_t trace;
  kiln_chrome_trace_begin(&trace, moments.data(), moments.size());
  llvm::json::Array all, kernels;
  std::string prefix = report->model.name + "_" + options.targets.front() + "_";
  std::replace(prefix.begin(), prefix.end(), '-', '_');
  for (size_t i = 0; i < report->model.entries.size(); ++i) {
    const EntryInterface &entry = report->model.entries[i];
    if (entry.isBatch() || (!entries.empty() && !llvm::is_contained(entries, entry.name)))
      continue;
    llvm::Expected<std::vector<int64_t>> values = extentsOf(entry, given);
    if (!values)
      return fail(values.takeError());
    const ArenaBytes arena = arenaBytes(report->variants, i);
    EntryCalls calls(*model, static_cast<uint32_t>(i), *values, arena.fixed + executor.workers() * arena.perWorker,
                     executor.get());
    llvm::Expected<EntryTimes> times = measure(calls, seconds);
    if (!times)
      return fail(times.takeError());
    times->name = entry.name;
    times->extents = describe(entry, *values);
    print(*times);
    all.push_back(toJson(*times));
    addKernels(kernels, *times, prefix);
    if (!traceFile.empty())
      if (llvm::Error error = calls.call(&trace.trace))
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
