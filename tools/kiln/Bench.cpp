// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/Bench.h"

#include "compiler/dialect/NearestNames.h"
#include "compiler/driver/Untuned.h"
#include "compiler/tuner/Executor.h"
#include "compiler/tuner/TargetsToTune.h"
#include "kiln/chrome_trace.h"
#include "tools/kiln/BenchCalls.h"
#include "tools/kiln/Options.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <thread>

namespace kiln {

BenchCommand::BenchCommand(CLI::App &app, const CompileOptions &given)
    : bench(app.add_subcommand("bench", "time the entries and their kernels on this machine")), options(given) {
  bench
      ->add_option("--target", options.targets,
                   "instruction set; default: the first one of a library that this machine supports")
      ->expected(1)
      ->check(knownTarget())
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
  const double whole = std::max(times.seconds, inKernels); // which differ by rounding at most
  fmt::print("  {:>7} {:>10} {:>6} {:>9} {:>8}  kernel: layers\n", "share", "time", "calls", "GFLOP/s", "GB/s");
  for (const auto &[name, kernel] : order)
    fmt::print("  {:5.1f} % {:>10} {:6} {:9.1f} {:8.1f}  {}: {}\n", kernel->seconds / whole * 100,
               describeTime(kernel->seconds), kernel->calls, perSecond(kernel->flops, kernel->seconds),
               perSecond(kernel->bytes, kernel->seconds), name, fmt::join(kernel->layers, " "));
  fmt::print("  {:5.1f} % {:>10} between kernels\n", (1 - inKernels / whole) * 100, describeTime(whole - inKernels));
  fmt::print("  medians, without the overhead of tracing: {} kernels, {:.3g} ns each (a traced call: {}){}\n", calls,
             times.costOfANote * 1e9, describeTime(times.tracedSeconds),
             times.scale < 1 ? fmt::format("; times of kernels are multiplied by {:.3f} to add up", times.scale) : "");
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
