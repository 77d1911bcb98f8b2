// SPDX-License-Identifier: Apache-2.0
//
// The names of the manifest's fields are those that compiler/emit/Manifest.cpp writes.
#include "compiler/inspect/Inspection.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace kiln {

/// "f32[tokens, 768]" of an object with a type and a shape.
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
  return map && map.map("name", extent.name) && map.map("min", extent.min) && map.map("max", extent.max) &&
         map.mapOptional("least", extent.least);
}

bool fromJSON(const json::Value &value, InspectedStep &step, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("kind", step.kind) && map.map("layer", step.layer) && map.map("times", step.times) &&
         map.mapOptional("operands", step.operands) && map.mapOptional("kernel", step.kernel) &&
         map.mapOptional("results", step.results) && map.mapOptional("operations", step.operations) &&
         map.mapOptional("bytes_read", step.bytesRead) && map.mapOptional("bytes_written", step.bytesWritten) &&
         map.mapOptional("bytes", step.operandBytes);
}

bool fromJSON(const json::Value &value, InspectedBuffer &buffer, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("offset", buffer.offset) && map.map("bytes", buffer.bytes) && map.map("first", buffer.first) &&
         map.map("last", buffer.last) && map.map("values", buffer.values);
}

namespace {

struct Arena {
  int64_t fixed = 0, perWorker = 0;
};

bool fromJSON(const json::Value &value, Arena &arena, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("fixed", arena.fixed) && map.map("per_worker", arena.perWorker);
}

/// What a target says of an entry.
struct Plan {
  int64_t bytes = 0, lowerBound = 0;
  std::vector<InspectedStep> steps;
  std::vector<InspectedBuffer> buffers;
};

bool fromJSON(const json::Value &value, Plan &plan, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("plan_bytes", plan.bytes) && map.map("plan_lower_bound", plan.lowerBound) &&
         map.map("steps", plan.steps) && map.map("buffers", plan.buffers);
}

struct StoredWeight {
  std::string type;
  int64_t bytes = 0;
};

bool fromJSON(const json::Value &value, StoredWeight &weight, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("stored_type", weight.type) && map.map("stored_bytes", weight.bytes);
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
      !map.map("state_bytes", entry.stateBytes) || !map.mapOptional("batch_of", entry.batchOf))
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
         map.map("text_bytes", kernel.textBytes) && map.map("gain", kernel.gain) &&
         map.map("predicted_loss", kernel.predictedLoss);
}

bool fromJSON(const json::Value &value, InspectedWeight &weight, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", weight.name) && map.map("copies", weight.copies) && readType(value, weight.type, path);
}

namespace {

bool fromJSON(const json::Value &value, TargetSection &target, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("target", target.name) && map.map("packed_bytes", target.packedBytes) &&
         map.map("entries", target.entries) && map.map("kernels", target.kernels) && map.map("weights", target.weights);
}

/// A manifest, and its targets as they are: only the one that is shown is read.
struct Manifest {
  std::string name;
  int64_t parameters = 0, ranks = 1;
  std::vector<InspectedEntry> entries;
  std::vector<InspectedWeight> weights;
  std::vector<TargetSection> targets;
};

bool fromJSON(const json::Value &value, Manifest &manifest, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", manifest.name) && map.map("parameters", manifest.parameters) &&
         map.mapOptional("ranks", manifest.ranks) && map.map("entries", manifest.entries) &&
         map.map("weights", manifest.weights) && map.map("targets", manifest.targets);
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
  inspection.entries = std::move(manifest->entries);
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
  if (shown->entries.size() != inspection.entries.size() || shown->weights.size() != inspection.weights.size())
    return createStringError(
        formatv("\"{0}\" does not describe all entries and weights for {1}", file, shown->name).str());
  inspection.target = shown->name;
  inspection.packedBytes = shown->packedBytes;
  inspection.kernels = std::move(shown->kernels);
  for (auto [entry, plan] : zip_equal(inspection.entries, shown->entries)) {
    entry.planBytes = plan.bytes - entry.stateBytes;
    entry.planLowerBound = plan.lowerBound - entry.stateBytes;
    entry.steps = std::move(plan.steps);
    entry.buffers = std::move(plan.buffers);
  }
  for (auto [weight, stored] : zip_equal(inspection.weights, shown->weights)) {
    weight.stored = stored.type;
    weight.bytes = stored.bytes * weight.copies;
  }
  return inspection;
}

} // namespace kiln
