// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/CustomFunctions.h"
#include "compiler/library/Headers.h"
#include "compiler/library/Version.h"

#include "kiln/runtime.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace kiln {

static json::Array shapeJson(const std::vector<Dim> &shape) {
  json::Array result;
  for (const Dim &dim : shape)
    result.push_back(dim.fixed() ? json::Value(dim.offset) : json::Value(toString(dim)));
  return result;
}

static json::Array symbolsJson(const std::vector<Symbol> &symbols) {
  json::Array list;
  for (const Symbol &symbol : symbols) {
    json::Object described{{"name", symbol.name}, {"min", symbol.min}, {"max", symbol.max}};
    if (*symbol.least)
      described["least"] = symbol.least;
    list.push_back(std::move(described));
  }
  return list;
}

static json::Object entryJson(const ModelInterface &model, const std::vector<Variant> &variants, size_t index) {
  const EntryInterface &entry = model.entries[index];
  json::Array inputs, outputs;
  for (const ArgumentInterface &argument : entry.arguments)
    (argument.isOutput ? outputs : inputs)
        .push_back(json::Object{
            {"name", argument.name}, {"type", name_of(argument.element)}, {"shape", shapeJson(argument.shape)}});
  ArenaBytes arena = arenaBytes(variants, index);
  json::Object result{{"name", entry.name},
                      {"extents", symbolsJson(entry.symbols)},
                      {"inputs", std::move(inputs)},
                      {"outputs", std::move(outputs)},
                      {"arena_bytes", json::Object{{"fixed", arena.fixed}, {"per_worker", arena.perWorker}}},
                      {"state_bytes", entry.stateBytes}};
  if (entry.isBatch()) {
    result["batch_of"] = entry.single;
    result["extents_of_a_sequence"] = symbolsJson(entry.ownSymbols);
  }
  return result;
}

static json::Object kernelJson(const KernelSummary &kernel) {
  json::Object result{{"symbol", kernel.symbol},
                      {"name", kernel.function},
                      {"layers", json::Array(kernel.layers)},
                      {"strategy", kernel.strategy},
                      {"structure", kernel.key.structure},
                      {"shape", toString(kernel.key.shape)},
                      {"bounds", toString(kernel.key.bounds)},
                      {"schedule", toString(kernel.schedule)},
                      {"provenance", toString(kernel.choice.provenance)},
                      {"text_bytes", kernel.textBytes}};
  if (kernel.isFallback)
    result["for_fewer_instruction_sets"] = true;
  if (kernel.choice.loss)
    result["loss"] = std::round(*kernel.choice.loss * 1000) / 1000;
  if (!kernel.choice.donor.empty())
    result["transferred_from"] = kernel.choice.donor;
  if (kernel.choice.gain)
    result["gain"] = std::round(*kernel.choice.gain * 1000) / 1000;
  return result;
}

static json::Array stepsJson(const std::vector<ExecutionStep> &steps) {
  json::Array list;
  for (const ExecutionStep &step : steps) {
    json::Object described{{"kind", step.kind}, {"layer", step.layer}, {"times", step.times}};
    if (!step.operands.empty())
      described["operands"] = json::Array(step.operands);
    if (step.bytes > 0)
      described["bytes"] = step.bytes;
    if (!step.kernel.empty()) {
      described["kernel"] = step.kernel;
      described["results"] = json::Array(step.results);
      described["operations"] = step.work.operations;
      described["bytes_read"] = step.work.bytesRead;
      described["bytes_written"] = step.work.bytesWritten;
    }
    list.push_back(std::move(described));
  }
  return list;
}

static json::Array buffersJson(const std::vector<PlannedBuffer> &buffers) {
  json::Array list;
  for (const PlannedBuffer &buffer : buffers)
    list.push_back(json::Object{{"offset", buffer.offset},
                                {"bytes", buffer.bytes},
                                {"first", buffer.first},
                                {"last", buffer.last},
                                {"values", json::Array(buffer.values)}});
  return list;
}

static json::Object variantJson(const ModelInterface &model, const Variant &variant) {
  json::Array weights, kernels, entries;
  for (size_t i = 0; i < model.weights.size(); ++i) {
    const WeightPlacement &at = variant.placements[i];
    json::Object weight{{"name", model.weights[i].name},
                        {"offset", at.offset},
                        {"stride", at.stride},
                        {"tile", at.tile},
                        {"tiled_dimension", at.dim},
                        {"shift", at.shift},
                        {"stored_type", name_of(at.element)},
                        {"stored_bytes", storedBytes(model.weights[i], at)},
                        {"scales", at.scales}};
    if (at.group) {
      weight["group"] = at.group;
      weight["zeros"] = at.zeros;
    }
    weights.push_back(std::move(weight));
  }
  for (const KernelSummary &kernel : variant.kernels)
    kernels.push_back(kernelJson(kernel));
  for (const EntryCode &code : variant.entries) {
    json::Object entry{{"name", code.function},
                       {"plan_bytes", code.planBytes},
                       {"plan_lower_bound", code.planLowerBound},
                       {"scratch_bytes", code.scratchBytes},
                       {"task_bytes", code.taskBytes}};
    entry["steps"] = stepsJson(code.steps);
    entry["buffers"] = buffersJson(code.buffers);
    if (variant.isOnDevice())
      entry["staging_bytes"] = code.stagingBytes;
    entries.push_back(std::move(entry));
  }
  json::Object target{{"target", variant.target},
                      {"packed_bytes", variant.packedBytes},
                      {"entries", std::move(entries)},
                      {"kernels", std::move(kernels)},
                      {"weights", std::move(weights)}};
  if (model.parallel && model.parallel->stages > 1)
    target["packed_bytes_of_roles"] = json::Array(variant.packedBytesOf);
  return target;
}

static json::Object sliceJson(const WeightSlice &slice) {
  json::Array sections;
  for (const WeightSection &section : slice.sections)
    sections.push_back(json::Object{
        {"first", section.first}, {"extent", section.extent}, {"step", section.step}, {"group", section.group}});
  return json::Object{{"dimension", slice.dim}, {"of", slice.extent}, {"sections", std::move(sections)}};
}

/// Adds the part of a weight or a state that a process has to its row.
static void addLayout(json::Object &row, const TensorLayout &layout) {
  if (layout.slice)
    row["slice"] = sliceJson(*layout.slice);
  if (layout.allCopies)
    row["of_all_stages"] = layout.allCopies;
}

static void addLayout(json::Object &manifest, const ParallelLayout &layout) {
  if (layout.ranks > 1)
    manifest["ranks"] = layout.ranks;
  if (layout.stages > 1)
    manifest["stages"] = layout.stages, manifest["first_stages_of_roles"] = json::Array(layout.roles);
  if (layout.replicas > 1)
    manifest["replicas"] = layout.replicas;
}

std::string writeManifest(const ModelInterface &model, const std::vector<Variant> &variants) {
  json::Array entries, weights, targets;
  for (size_t i = 0; i < model.entries.size(); ++i)
    entries.push_back(entryJson(model, variants, i));
  for (auto [i, weight] : llvm::enumerate(model.weights)) {
    json::Object row{{"name", weight.name},
                     {"type", name_of(weight.element)},
                     {"shape", json::Array(weight.shape)},
                     {"copies", weight.copies}};
    if (weight.isVariable)
      row["variable"] = true;
    if (model.parallel)
      addLayout(row, model.parallel->weights[i]);
    weights.push_back(std::move(row));
  }
  json::Array states;
  for (auto [i, each] : llvm::enumerate(model.states))
    for (const StateInterface &state : nameStates({each})) {
      json::Object row{{"name", state.name},     {"type", name_of(state.element)}, {"shape", json::Array(state.shape)},
                       {"copies", state.copies}, {"offset", state.offset},         {"stride", state.stride}};
      if (state.room > 0)
        row["room"] = state.room;
      if (model.parallel && model.parallel->states[i].allCopies)
        row["of_all_stages"] = model.parallel->states[i].allCopies;
      states.push_back(std::move(row));
    }
  for (const Variant &variant : variants)
    targets.push_back(variantJson(model, variant));
  json::Object manifest{
      {"kiln_version", versionText()},  {"kiln_abi_version", KILN_ABI_VERSION},    {"name", model.name},
      {"parameters", model.parameters}, {"tuning_digest", tuningDigest(variants)}, {"entries", std::move(entries)},
      {"weights", std::move(weights)},  {"targets", std::move(targets)},           {"license", licenseOfLibraries}};
  if (model.parallel)
    addLayout(manifest, *model.parallel);
  if (model.embedsWeights)
    manifest["embeds_weights"] = true;
  if (model.hasSelfTest)
    manifest["has_selftest"] = true;
  json::Array functions;
  for (const CustomInterface &function : model.functions)
    if (function.isCalled)
      functions.push_back(customSymbol(model.name, function.name));
  if (!functions.empty())
    manifest["custom_functions"] = std::move(functions);
  if (!model.states.empty()) {
    manifest["state_bytes"] = model.stateBytes;
    manifest["states"] = std::move(states);
  }
  std::string text;
  raw_string_ostream out(text);
  out << formatv("{0:2}", json::Value(std::move(manifest))) << "\n";
  return text;
}

} // namespace kiln
