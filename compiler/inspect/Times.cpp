// SPDX-License-Identifier: Apache-2.0
#include "compiler/dialect/NearestNames.h"
#include "compiler/inspect/Inspection.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <map>

using namespace llvm;

namespace kiln {

static double sum(const InspectedEntry &entry, function_ref<double(const InspectedStep &)> of) {
  double all = 0;
  for (const InspectedStep &step : entry.steps)
    all += of(step);
  return all;
}

static double secondsInKernels(const InspectedEntry &entry) {
  return sum(entry, [](const InspectedStep &step) { return step.seconds.value_or(0); });
}

double InspectedEntry::operations() const {
  return sum(*this, [](const InspectedStep &step) { return step.times * step.operations; });
}
double InspectedEntry::bytes() const {
  return sum(*this, [](const InspectedStep &step) { return step.times * step.bytes(); });
}
double InspectedEntry::seconds() const {
  return isMeasured && measuredSeconds > 0 ? measuredSeconds : secondsInKernels(*this);
}

const InspectedKernel *Inspection::findKernel(StringRef kernel) const {
  auto found = find_if(kernels, [&](const InspectedKernel &known) { return known.name == kernel; });
  return found == kernels.end() ? nullptr : &*found;
}

static void shareOut(InspectedEntry &entry) {
  const double all = secondsInKernels(entry);
  for (InspectedStep &step : entry.steps)
    step.share = all > 0 ? step.seconds.value_or(0) / all : 0;
}

/// Returns the lower bound of one execution's time: the maximum of the times for operations and bytes.
static double leastSeconds(const InspectedStep &step, const PeakRates &rates) {
  return std::max(step.operations / rates.operations, step.bytes() / rates.bytes);
}

void predictTimes(Inspection &inspection, const PeakRates &rates) {
  inspection.rates = rates;
  for (InspectedEntry &entry : inspection.entries) {
    for (InspectedStep &step : entry.steps)
      if (!step.kernel.empty())
        step.seconds = step.times * leastSeconds(step, rates);
    shareOut(entry);
  }
}

namespace {

struct MeasuredKernel {
  std::string entry, name;
  double seconds = 0;
};

bool fromJSON(const json::Value &value, MeasuredKernel &kernel, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("entry", kernel.entry) && map.map("name", kernel.name) && map.map("seconds", kernel.seconds);
}

struct MeasuredEntry {
  std::string name, extents; // "tokens=64, rows=2"
  double seconds = 0;
};

bool fromJSON(const json::Value &value, MeasuredEntry &entry, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", entry.name) && map.mapOptional("extents", entry.extents) &&
         map.mapOptional("seconds", entry.seconds);
}

struct MeasuredTimes {
  std::vector<MeasuredEntry> entries;
  std::vector<MeasuredKernel> kernels;
};

bool fromJSON(const json::Value &value, MeasuredTimes &times, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("kernels", times.kernels) && map.mapOptional("entries", times.entries);
}

Expected<MeasuredTimes> parseTimes(StringRef text, StringRef file) {
  Expected<MeasuredTimes> times = json::parse<MeasuredTimes>(text, "times");
  if (!times)
    return createStringError(formatv("\"{0}\" is no table of times: {1}", file, toString(times.takeError())).str());
  return times;
}

} // namespace

/// Returns the kernel in an entry's steps to which a measured kernel corresponds: the same one, or the one that it is a
/// shape-specialised variant of.
static std::optional<std::string> findCalled(const std::map<std::string, double> &calls, const std::string &kernel) {
  for (const auto &[name, count] : calls)
    if (kernel == name || StringRef(kernel).starts_with(name + "_rows"))
      return name;
  return std::nullopt;
}

/// Distributes a kernel's measured time over its calls, in proportion to their predicted times, or to their number if
/// these are unknown.
static Error takeTimesOf(InspectedEntry &entry, const std::map<std::string, double> &measured, StringRef file) {
  std::map<std::string, double> predicted, calls, seconds;
  for (const InspectedStep &step : entry.steps)
    if (!step.kernel.empty()) {
      predicted[step.kernel] += step.seconds.value_or(0);
      calls[step.kernel] += step.times;
    }
  for (const auto &[kernel, time] : measured) {
    std::optional<std::string> called = findCalled(calls, kernel);
    if (!called) {
      std::vector<std::string> names;
      for (const auto &[name, count] : calls)
        names.push_back(name);
      return createStringError(formatv("\"{0}\": entry \"{1}\" calls no kernel \"{2}\"{3}", file, entry.name, kernel,
                                       nearestNames(kernel, names))
                                   .str());
    }
    seconds[*called] += time;
  }
  for (InspectedStep &step : entry.steps) {
    if (step.kernel.empty())
      continue;
    auto found = seconds.find(step.kernel);
    if (found == seconds.end())
      return createStringError(
          formatv("\"{0}\": kernel without a time; expected one for each kernel of entry \"{1}\", got none for \"{2}\"",
                  file, entry.name, step.kernel)
              .str());
    const double all = predicted[step.kernel];
    step.seconds = found->second * (all > 0 ? *step.seconds / all : step.times / calls[step.kernel]);
  }
  entry.isMeasured = true;
  shareOut(entry);
  return Error::success();
}

Expected<std::map<std::string, int64_t>> extentsOfTimes(StringRef text, StringRef file) {
  Expected<MeasuredTimes> times = parseTimes(text, file);
  if (!times)
    return times.takeError();
  std::map<std::string, int64_t> extents;
  for (const MeasuredEntry &entry : times->entries) {
    SmallVector<StringRef> all;
    StringRef(entry.extents).split(all, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef each : all) {
      auto [name, text] = each.trim().split('=');
      int64_t value = 0;
      if (name.empty() || text.getAsInteger(10, value))
        return createStringError(
            formatv("\"{0}\": dimensions of entry \"{1}\": wrong form; expected NAME=VALUE, got \"{2}\"", file,
                    entry.name, each.trim())
                .str());
      if (auto [known, isNew] = extents.try_emplace(name.str(), value); !isNew && known->second != value)
        return createStringError(
            formatv("\"{0}\": dimension \"{1}\" of entry \"{2}\": several sizes; expected {3} as of others, got {4}",
                    file, name, entry.name, known->second, value)
                .str());
    }
  }
  return extents;
}

Error takeTimes(Inspection &inspection, StringRef text, StringRef file) {
  Expected<MeasuredTimes> times = parseTimes(text, file);
  if (!times)
    return times.takeError();
  std::map<std::string, std::map<std::string, double>> measured;
  for (const MeasuredKernel &kernel : times->kernels)
    measured[kernel.entry][kernel.name] += kernel.seconds;
  for (const auto &[name, kernels] : measured) {
    auto entry = find_if(inspection.entries, [&, &name = name](const InspectedEntry &e) { return e.name == name; });
    if (entry == inspection.entries.end()) {
      std::vector<std::string> names;
      for (const InspectedEntry &known : inspection.entries)
        names.push_back(known.name);
      return createStringError(
          formatv("\"{0}\": the library has no entry \"{1}\"{2}", file, name, nearestNames(name, names)).str());
    }
    if (Error error = takeTimesOf(*entry, kernels, file))
      return error;
    for (const MeasuredEntry &known : times->entries)
      if (known.name == name) {
        entry->measuredAt = known.extents;
        entry->measuredSeconds = known.seconds;
      }
  }
  return Error::success();
}

} // namespace kiln
