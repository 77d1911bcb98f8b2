// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Words.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace kiln {

/// Formats the value in the largest unit of which it has at least one; each unit is `step` times the previous one.
static std::string describe(double value, double step, llvm::ArrayRef<const char *> units) {
  size_t unit = 0;
  for (; unit + 1 < units.size() && value >= step; ++unit)
    value /= step;
  const int digits = value >= 100 || value == std::floor(value) ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, digits, units[unit]);
}

std::string describeBytes(double bytes) { return describe(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB"}); }
std::string describeOperations(double operations) {
  return describe(operations, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"});
}
std::string describeSeconds(double seconds) { return describe(seconds * 1e9, 1000, {"ns", "us", "ms", "s"}); }

using Row = std::vector<std::string>;

/// Prints columns of minimal width. Columns with `right` are right-aligned; the last column is not padded.
static std::string printTable(llvm::ArrayRef<Row> rows, llvm::StringRef indent, const std::vector<bool> &right) {
  std::vector<size_t> widths(right.size());
  for (const Row &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row &row : rows) {
    std::string line = indent.str();
    for (size_t i = 0; i < row.size(); ++i)
      line += right[i] ? fmt::format("{:>{}}  ", row[i], widths[i]) : fmt::format("{:<{}}  ", row[i], widths[i]);
    text += llvm::StringRef(line).rtrim().str() + "\n";
  }
  return text;
}

static std::string printTensors(const std::vector<InspectedTensor> &tensors) {
  std::vector<std::string> texts;
  for (const InspectedTensor &tensor : tensors)
    texts.push_back(tensor.name + " " + tensor.type);
  return fmt::format("{}", fmt::join(texts, ", "));
}

namespace {

/// All calls of a kernel in one call of an entry.
struct KernelCalls {
  const InspectedStep *first = nullptr;
  double times = 0, operations = 0, bytes = 0, seconds = 0, share = 0;
};

} // namespace

/// Returns the kernels in the order of their first calls, then by share.
static std::vector<KernelCalls> callsOf(const InspectedEntry &entry) {
  std::vector<KernelCalls> calls;
  std::map<std::string, size_t> numbers;
  for (const InspectedStep &step : entry.steps) {
    if (step.kernel.empty())
      continue;
    auto [number, isNew] = numbers.try_emplace(step.kernel, calls.size());
    if (isNew)
      calls.push_back({&step});
    KernelCalls &kernel = calls[number->second];
    kernel.times += step.times;
    kernel.operations += step.times * step.operations;
    kernel.bytes += step.times * step.bytes();
    kernel.seconds += step.seconds.value_or(0);
    kernel.share += step.share;
  }
  llvm::stable_sort(calls, [](const KernelCalls &a, const KernelCalls &b) { return a.share > b.share; });
  return calls;
}

static std::string printCalls(const InspectedEntry &entry) {
  const bool hasTimes = entry.seconds() > 0;
  std::vector<Row> rows{
      {hasTimes ? entry.isMeasured ? "measured" : "predicted" : "", "", "kernel", "calls", "result", "work", "memory"}};
  for (const KernelCalls &kernel : callsOf(entry))
    rows.push_back({hasTimes ? fmt::format("{:.1f} %", kernel.share * 100) : "",
                    hasTimes ? describeSeconds(kernel.seconds) : "", kernel.first->kernel,
                    fmt::format("{:.0f}", kernel.times), fmt::format("{}", fmt::join(kernel.first->results, ", ")),
                    describeOperations(kernel.operations), describeBytes(kernel.bytes)});
  return printTable(rows, "    ", {true, true, false, true, false, true, true});
}

static std::string largestOf(const InspectedEntry &entry) {
  std::string text;
  for (const InspectedExtent &extent : entry.extents)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", extent.name, extent.max);
  return text;
}

static std::string printEntry(const InspectedEntry &entry) {
  std::string text =
      fmt::format("\n{}({}) -> {}\n", entry.name, printTensors(entry.inputs), printTensors(entry.outputs));
  if (!entry.batchOf.empty())
    text += fmt::format("  batched entry: {} for several sequences\n", entry.batchOf);
  for (const InspectedExtent &extent : entry.extents)
    text += fmt::format("  {}: {} to {}{}\n", extent.name, extent.min, extent.max,
                        extent.least.empty() ? "" : ", at least " + extent.least);
  text +=
      fmt::format("  arena: {}, and {} per worker; memory plan {}, lower bound {}, buffers {}{}\n",
                  describeBytes(double(entry.arenaFixed)), describeBytes(double(entry.arenaPerWorker)),
                  describeBytes(double(entry.planBytes)), describeBytes(double(entry.planLowerBound)),
                  entry.buffers.size(), entry.stateBytes ? "; states " + describeBytes(double(entry.stateBytes)) : "");
  const std::string listed = entry.listedAt.empty() ? largestOf(entry) : entry.listedAt;
  const bool isElsewhere =
      entry.seconds() > 0 && entry.isMeasured && !entry.measuredAt.empty() && entry.measuredAt != listed;
  text += fmt::format("  a call at {}: {}, {} read and written{}{}\n",
                      entry.listedAt.empty() ? "the largest extents" : entry.listedAt,
                      describeOperations(entry.operations()), describeBytes(entry.bytes()),
                      entry.seconds() > 0 ? fmt::format(", {} {}", describeSeconds(entry.seconds()),
                                                        entry.isMeasured ? "measured" : "predicted")
                                          : "",
                      isElsewhere ? " at " + entry.measuredAt : "");
  return text + printCalls(entry);
}

static std::string printWeights(const Inspection &inspection) {
  std::vector<const InspectedWeight *> weights;
  double all = 0;
  for (const InspectedWeight &weight : inspection.weights) {
    weights.push_back(&weight);
    all += double(weight.bytes);
  }
  llvm::stable_sort(weights, [](const auto *a, const auto *b) { return a->bytes > b->bytes; });
  std::vector<Row> rows;
  for (const InspectedWeight *weight : weights)
    rows.push_back({fmt::format("{:.1f} %", all > 0 ? 100 * double(weight->bytes) / all : 0),
                    describeBytes(double(weight->bytes)),
                    fmt::format("{} {}{} as {}", weight->name, weight->type,
                                weight->copies > 1 ? fmt::format(" x {}", weight->copies) : "", weight->stored)});
  return fmt::format("\nweights: {}\n", describeBytes(all)) + printTable(rows, "    ", {true, true, false});
}

static std::string describeChoice(const InspectedKernel &kernel) {
  std::string text = kernel.provenance;
  if (!kernel.donor.empty())
    text += " from " + kernel.donor;
  if (kernel.gain && *kernel.gain > 1)
    text += fmt::format(", {:.2f} times as fast as the default", *kernel.gain);
  else if (kernel.loss)
    text += fmt::format(", loss {:.1f} %", *kernel.loss * 100);
  return text;
}

static std::string printKernels(const Inspection &inspection) {
  std::vector<Row> rows;
  int64_t bytes = 0;
  for (const InspectedKernel &kernel : inspection.kernels) {
    rows.push_back({kernel.name, kernel.strategy, kernel.shape + " " + kernel.bounds,
                    describeBytes(double(kernel.textBytes)), kernel.schedule + "; " + describeChoice(kernel)});
    bytes += kernel.textBytes;
  }
  const auto measured = llvm::count_if(inspection.kernels, [](const auto &k) { return k.provenance == "exact"; });
  std::string symbols;
  if (!inspection.kernels.empty()) {
    llvm::StringRef prefix = inspection.kernels.front().symbol;
    prefix.consume_back(inspection.kernels.front().name);
    symbols = fmt::format(", symbols {}NAME", prefix.str());
  }
  return fmt::format("\nkernels for {}: {}, {} of code{}\n", inspection.target, inspection.kernels.size(),
                     describeBytes(double(bytes)), symbols) +
         (measured > 0 ? fmt::format("    schedules: {} of {} measured\n", measured, inspection.kernels.size())
                       : "    schedules: none measured, all from the analytic model; \"kiln tune\" measures them\n") +
         printTable(rows, "    ", {false, false, false, true, false});
}

std::string printWords(const Inspection &inspection) {
  std::string text =
      fmt::format("{}: {} parameters, {} of packed weights; for {}\n", inspection.name, inspection.parameters,
                  describeBytes(double(inspection.packedBytes)), fmt::join(inspection.targets, ", "));
  if (inspection.rates)
    text += fmt::format("predictions for {}: {}/s, {}/s copied, {}\n", inspection.target,
                        describeOperations(inspection.rates->operations), describeBytes(inspection.rates->bytes),
                        inspection.rates->source);
  else
    text += fmt::format("no predictions: this machine does not run {}; --flops and --bandwidth set its rates\n",
                        inspection.target);
  for (const InspectedEntry &entry : inspection.entries)
    text += printEntry(entry);
  return text + printWeights(inspection) + printKernels(inspection);
}

} // namespace kiln
