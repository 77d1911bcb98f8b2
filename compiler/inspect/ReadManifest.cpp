// SPDX-License-Identifier: Apache-2.0
//
// Reads the fields that compiler/library/Manifest.cpp writes.
#include "compiler/inspect/Inspection.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace kiln {

namespace {

/// The maximum number of bytes, elements or operations: the page's scripts represent integers exactly up to it.
constexpr int64_t largest = int64_t(1) << 53;

/// Count: a counted integer; Amount: a number computed from counts.
struct Count {
  int64_t value = 0;
};
struct Amount {
  double value = 0;
};

bool fromJSON(const json::Value &value, Count &count, json::Path path) {
  const std::optional<int64_t> number = value.getAsInteger();
  if (!number || *number < 0 || *number > largest) {
    path.report("expected an integer from 0 to 2^53");
    return false;
  }
  count.value = *number;
  return true;
}

bool fromJSON(const json::Value &value, Amount &amount, json::Path path) {
  const std::optional<double> number = value.getAsNumber();
  if (!number || !(*number >= 0 && *number <= 1e30)) { // so that products and sums are finite
    path.report("expected a number from 0 to 1e30");
    return false;
  }
  amount.value = *number;
  return true;
}

template <class Number, class T> bool mapAs(json::ObjectMapper &map, StringLiteral name, T &to) {
  Number read;
  if (!map.map(name, read))
    return false;
  to = read.value;
  return true;
}
bool mapCount(json::ObjectMapper &map, StringLiteral name, int64_t &to) { return mapAs<Count>(map, name, to); }
bool mapAmount(json::ObjectMapper &map, StringLiteral name, double &to) { return mapAs<Amount>(map, name, to); }

/// Reads an amount that is omitted if it is 0.
bool mapOptionalAmount(json::ObjectMapper &map, StringLiteral name, double &to) {
  std::optional<Amount> read;
  if (!map.mapOptional(name, read))
    return false;
  to = read ? read->value : 0;
  return true;
}

/// Reads a number of items that is omitted if it is one.
bool mapNumberOf(json::ObjectMapper &map, StringLiteral name, int64_t &to) {
  std::optional<Count> read;
  if (!map.mapOptional(name, read))
    return false;
  to = read ? std::max<int64_t>(read->value, 1) : 1;
  return true;
}

/// Reads an amount that is null if it is unknown.
bool mapNullable(json::ObjectMapper &map, StringLiteral name, std::optional<double> &to) {
  std::optional<Amount> read;
  if (!map.map(name, read))
    return false;
  if (read)
    to = read->value;
  return true;
}

} // namespace

/// Reads a type and a shape as text such as "f32[tokens, 768]".
static bool readType(const json::Value &value, std::string &type, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("type", type))
    return false;
  const json::Array *shape = value.getAsObject()->getArray("shape");
  if (!shape) {
    path.field("shape").report("expected array");
    return false;
  }
  std::vector<std::string> extents;
  for (const json::Value &extent : *shape)
    extents.push_back(extent.getAsString() ? extent.getAsString()->str() : formatv("{0}", extent).str());
  type += "[" + join(extents, ", ") + "]";
  return true;
}

bool fromJSON(const json::Value &value, InspectedTensor &tensor, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", tensor.name) && readType(value, tensor.type, path);
}

bool fromJSON(const json::Value &value, InspectedExtent &extent, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", extent.name) && mapCount(map, "min", extent.min) && mapCount(map, "max", extent.max) &&
         map.mapOptional("least", extent.least);
}

bool fromJSON(const json::Value &value, InspectedStep &step, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("kind", step.kind) && map.map("layer", step.layer) && mapAmount(map, "times", step.times) &&
         map.mapOptional("operands", step.operands) && map.mapOptional("kernel", step.kernel) &&
         map.mapOptional("results", step.results) && mapOptionalAmount(map, "operations", step.operations) &&
         mapOptionalAmount(map, "bytes_read", step.bytesRead) &&
         mapOptionalAmount(map, "bytes_written", step.bytesWritten) &&
         mapOptionalAmount(map, "bytes", step.operandBytes);
}

bool fromJSON(const json::Value &value, InspectedBuffer &buffer, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && mapCount(map, "offset", buffer.offset) && mapCount(map, "bytes", buffer.bytes) &&
         mapCount(map, "first", buffer.first) && mapCount(map, "last", buffer.last) && map.map("values", buffer.values);
}

namespace {

struct Arena {
  int64_t fixed = 0, perWorker = 0;
};

bool fromJSON(const json::Value &value, Arena &arena, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && mapCount(map, "fixed", arena.fixed) && mapCount(map, "per_worker", arena.perWorker);
}

/// The plan of an entry for a target.
struct Plan {
  std::string name; // name of the entry or, with pipeline stages, of its part for a stage role
  int64_t bytes = 0, lowerBound = 0;
  std::vector<InspectedStep> steps;
  std::vector<InspectedBuffer> buffers;
};

bool fromJSON(const json::Value &value, Plan &plan, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", plan.name) && mapCount(map, "plan_bytes", plan.bytes) &&
         mapCount(map, "plan_lower_bound", plan.lowerBound) && map.map("steps", plan.steps) &&
         map.map("buffers", plan.buffers);
}

struct StoredWeight {
  std::string type;
  int64_t bytes = 0;
};

bool fromJSON(const json::Value &value, StoredWeight &weight, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("stored_type", weight.type) && mapCount(map, "stored_bytes", weight.bytes);
}

struct TargetSection {
  std::string name;
  int64_t packedBytes = 0;
  std::vector<Plan> entries;
  std::vector<InspectedKernel> kernels;
  std::vector<StoredWeight> weights;
};

} // namespace

bool fromJSON(const json::Value &value, InspectedEntry &entry, json::Path path) {
  json::ObjectMapper map(value, path);
  Arena arena;
  if (!map || !map.map("name", entry.name) || !map.map("extents", entry.extents) || !map.map("inputs", entry.inputs) ||
      !map.map("outputs", entry.outputs) || !map.map("arena_bytes", arena) ||
      !mapCount(map, "state_bytes", entry.stateBytes) || !map.mapOptional("batch_of", entry.batchOf))
    return false;
  entry.arenaFixed = arena.fixed;
  entry.arenaPerWorker = arena.perWorker;
  return true;
}

bool fromJSON(const json::Value &value, InspectedKernel &kernel, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", kernel.name) && map.map("symbol", kernel.symbol) &&
         map.map("strategy", kernel.strategy) && map.map("schedule", kernel.schedule) &&
         map.map("provenance", kernel.provenance) && map.mapOptional("transferred_from", kernel.donor) &&
         map.map("shape", kernel.shape) && map.map("bounds", kernel.bounds) && map.map("layers", kernel.layers) &&
         mapCount(map, "text_bytes", kernel.textBytes) && mapNullable(map, "gain", kernel.gain) &&
         mapNullable(map, "loss", kernel.loss);
}

bool fromJSON(const json::Value &value, InspectedWeight &weight, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", weight.name) && mapCount(map, "copies", weight.copies) &&
         readType(value, weight.type, path);
}

namespace {

bool fromJSON(const json::Value &value, TargetSection &target, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("target", target.name) && mapCount(map, "packed_bytes", target.packedBytes) &&
         map.map("entries", target.entries) && map.map("kernels", target.kernels) && map.map("weights", target.weights);
}

/// A manifest. Its targets are kept as JSON, since only the one that is shown is parsed.
struct Manifest {
  std::string name;
  int64_t parameters = 0, ranks = 1, stages = 1;
  std::vector<InspectedEntry> entries;
  std::vector<InspectedWeight> weights;
  std::vector<TargetSection> targets;
};

bool fromJSON(const json::Value &value, Manifest &manifest, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", manifest.name) && mapCount(map, "parameters", manifest.parameters) &&
         mapNumberOf(map, "ranks", manifest.ranks) && mapNumberOf(map, "stages", manifest.stages) &&
         map.map("entries", manifest.entries) && map.map("weights", manifest.weights) &&
         map.map("targets", manifest.targets);
}

Expected<Manifest> parse(StringRef text, StringRef file) {
  Expected<Manifest> manifest = json::parse<Manifest>(text, "manifest");
  if (!manifest)
    return createStringError(
        formatv("\"{0}\" is no manifest of this version of Kiln: {1}", file, toString(manifest.takeError())).str());
  return manifest;
}

} // namespace

Expected<std::vector<std::string>> readTargets(StringRef text, StringRef file) {
  Expected<Manifest> manifest = parse(text, file);
  if (!manifest)
    return manifest.takeError();
  std::vector<std::string> names;
  for (const TargetSection &target : manifest->targets)
    names.push_back(target.name);
  return names;
}

Expected<Inspection> readManifest(StringRef text, StringRef file, StringRef target) {
  Expected<Manifest> manifest = parse(text, file);
  if (!manifest)
    return manifest.takeError();
  Inspection inspection;
  inspection.name = manifest->name;
  inspection.parameters = manifest->parameters;
  inspection.ranks = manifest->ranks;
  inspection.stages = manifest->stages;
  inspection.weights = std::move(manifest->weights);
  TargetSection *shown = nullptr;
  for (TargetSection &section : manifest->targets) {
    inspection.targets.push_back(section.name);
    if (!shown && (target.empty() || target == section.name))
      shown = &section;
  }
  if (!shown)
    return createStringError(
        formatv("\"{0}\" has no target \"{1}\"; it has: {2}", file, target, join(inspection.targets, ", ")).str());
  // With pipeline stages, a target has all entries for each role in sequence.
  do
    append_range(inspection.entries, manifest->entries);
  while (manifest->stages > 1 && !manifest->entries.empty() && inspection.entries.size() < shown->entries.size());
  if (shown->entries.size() != inspection.entries.size() || shown->weights.size() != inspection.weights.size())
    return createStringError(
        formatv("\"{0}\" does not describe all entries and weights for {1}", file, shown->name).str());
  inspection.target = shown->name;
  inspection.packedBytes = shown->packedBytes;
  inspection.kernels = std::move(shown->kernels);
  for (auto [entry, plan] : zip_equal(inspection.entries, shown->entries)) {
    if (plan.lowerBound < entry.stateBytes || plan.bytes < plan.lowerBound)
      return createStringError(
          formatv("\"{0}\": entry {1}: plan is too small; expected at least its {2} bytes of states "
                  "and its lower bound, got {3} with a bound of {4}",
                  file, plan.name, entry.stateBytes, plan.bytes, plan.lowerBound)
              .str());
    entry.name = plan.name;
    entry.planBytes = plan.bytes - entry.stateBytes;
    entry.planLowerBound = plan.lowerBound - entry.stateBytes;
    entry.steps = std::move(plan.steps);
    entry.buffers = std::move(plan.buffers);
  }
  for (auto [weight, stored] : zip_equal(inspection.weights, shown->weights)) {
    weight.stored = stored.type;
    if (MulOverflow(stored.bytes, weight.copies, weight.bytes) || weight.bytes > largest)
      return createStringError(
          formatv("\"{0}\": weight {1}: too large; expected at most 2^53 bytes, got {2} copies of {3}", file,
                  weight.name, weight.copies, stored.bytes)
              .str());
  }
  return inspection;
}

} // namespace kiln
