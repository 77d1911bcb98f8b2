// SPDX-License-Identifier: Apache-2.0
#include "tools/scale/Library.h"

#include "compiler/inspect/Words.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace kiln {

/// The backward part of a training step's time: two passes of three.
static constexpr double wayBack = 2.0 / 3;

namespace {

/// The sums over the steps of one call, for all ranks together.
struct Call {
  double kernels = 0, exchanges = 0, exchangedBytes = 0, operations = 0;
  double carriedBytes = 0;  // between layers; the maximum over loops
  double assignedBytes = 0; // bytes of weights

  void add(const InspectedStep &step, const Link &link, int64_t ranks);
};

/// Adds a step. Collectives have `operandBytes` bytes on each rank.
void Call::add(const InspectedStep &step, const Link &link, int64_t ranks) {
  const double bytes = step.operandBytes, others = double(ranks - 1);
  if (step.kind == "all_reduce") {
    exchanges += step.times * allReduce(link, bytes, ranks);
    exchangedBytes += step.times * ringBytes(bytes, ranks);
  } else if (step.kind == "all_gather") {
    exchanges += step.times * allGather(link, bytes, ranks);
    exchangedBytes += step.times * others * bytes;
  } else if (step.kind == "reduce_scatter" || step.kind == "exchange") { // the operand has one shard per rank
    exchanges += step.times * allGather(link, bytes / double(ranks), ranks);
    exchangedBytes += step.times * others * bytes / double(ranks);
  } else if (step.kind == "loop") {
    carriedBytes = std::max(carriedBytes, bytes);
  } else if (step.kind == "assign") { // operands are a weight and its new value
    assignedBytes += step.times * bytes / 2;
  }
}

Call countCall(const InspectedEntry &entry, int64_t ranks, const Cluster &cluster, const std::string &type) {
  Call call;
  const Link link = cluster.linkOf(1, ranks);
  for (const InspectedStep &step : entry.steps) {
    if (step.kernel.empty()) {
      call.add(step, link, ranks);
    } else {
      call.kernels += step.times * cluster.kernelSeconds(type, step.operations, step.bytes());
      call.operations += step.times * step.operations;
    }
  }
  return call;
}

} // namespace

static EntryCost predictEntry(const InspectedEntry &entry, const Inspection &inspection, const Cluster &cluster,
                              const Placement &placement) {
  const int64_t ranks = inspection.ranks, stride = ranks * placement.replicas;
  const Call call = countCall(entry, ranks, cluster, placement.type);
  const auto p = double(placement.stages), m = double(placement.microbatches);
  EntryCost cost;
  cost.name = entry.name;
  cost.kernels = m * call.kernels / p;
  cost.exchanges = m * call.exchanges / p;
  cost.exchangedBytes = m * call.exchangedBytes / p;
  const bool isTraining = call.assignedBytes > 0;
  if (placement.stages > 1)
    cost.sends = m * (isTraining ? 2 : 1) * double(placement.interleave) *
                 cluster.linkOf(stride, placement.stages).seconds(call.carriedBytes);
  const double busy = cost.kernels + cost.exchanges + cost.sends;
  cost.bubble = busy * Pipeline{placement.stages, placement.microbatches, placement.interleave}.bubble();
  if (isTraining && placement.replicas > 1) {
    const double sum = allReduce(cluster.linkOf(ranks, placement.replicas), call.assignedBytes / p, placement.replicas);
    cost.gradients = placement.overlaps ? exposed(sum, wayBack * busy / m, gradientBuckets) : sum;
  }
  cost.devices = ranks * placement.stages * placement.replicas;
  cost.calls = placement.microbatches * placement.replicas;
  cost.operations = call.operations * double(ranks * cost.calls);
  const auto underWay = double(std::min(placement.stages, placement.microbatches));
  const auto states = double(entry.stateBytes), arena = double(entry.arenaFixed + entry.arenaPerWorker);
  cost.memoryBytes = (double(inspection.packedBytes) + states + (arena - states) * underWay) / p;
  return cost;
}

llvm::Expected<std::vector<EntryCost>> predictLibrary(const Inspection &inspection, const Cluster &cluster,
                                                      const Placement &placement) {
  if (!cluster.device.peaks.count(placement.type)) {
    std::string known;
    for (const auto &[name, peak] : cluster.device.peaks)
      known += (known.empty() ? "" : ", ") + name;
    return llvm::createStringError(
        fmt::format("{} has no peak of {}; it has: {}", cluster.device.name, placement.type, known));
  }
  if (inspection.stages > 1)
    return llvm::createStringError(fmt::format(
        "scale: library of pipeline stages; expected one of all layers, got one of {} stages", inspection.stages));
  if (placement.interleave > 1 && placement.stages == 1)
    return llvm::createStringError("--interleave: too few pipeline stages; expected at least 2, got 1");
  std::vector<EntryCost> costs;
  for (const InspectedEntry &entry : inspection.entries)
    costs.push_back(predictEntry(entry, inspection, cluster, placement));
  return costs;
}

using Row = std::array<std::string, 9>;

static Row describeCost(const EntryCost &cost, const Cluster &cluster, const std::string &type) {
  const double all = cost.seconds();
  auto part = [&](double seconds) { return seconds > 0 ? fmt::format("{:.1f} %", 100 * seconds / all) : "-"; };
  const double peak = cluster.device.peaks.at(type) * double(cost.devices);
  return {cost.name,
          part(cost.kernels),
          part(cost.exchanges),
          part(cost.sends),
          part(cost.bubble),
          part(cost.gradients),
          describeSeconds(all),
          part(cost.operations / peak), // the time at the devices' peak
          describeBytes(cost.memoryBytes)};
}

/// Prints columns of minimal width. All but the first are right-aligned.
static std::string printRows(const std::vector<Row> &rows) {
  std::array<size_t, 9> widths{};
  for (const Row &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row &row : rows) {
    text += fmt::format("  {:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i)
      text += fmt::format("  {:>{}}", row[i], widths[i]);
    text += "\n";
  }
  return text;
}

std::string printCosts(const Inspection &inspection, const Cluster &cluster, const Placement &placement,
                       const std::vector<EntryCost> &costs) {
  std::vector<Row> rows{
      {"entry", "kernels", "exchanges", "sends", "stages wait", "gradients", "a step", "of the peak", "memory"}};
  bool fits = true;
  for (const EntryCost &cost : costs) {
    rows.push_back(describeCost(cost, cluster, placement.type));
    fits = fits && cost.memoryBytes <= cluster.device.memoryBytes;
  }
  const int64_t devices = inspection.ranks * placement.stages * placement.replicas;
  std::string text =
      fmt::format("{} on {} {}: ranks x stages x replicas are {} x {} x {}, {}\n", inspection.name, devices,
                  cluster.device.name, inspection.ranks, placement.stages, placement.replicas, placement.type);
  text += fmt::format("predicted shares of a step of {} sequential {} on each replica:\n", placement.microbatches,
                      placement.microbatches == 1 ? "call" : "calls");
  text += printRows(rows);
  if (!fits)
    text += fmt::format("does not fit: a device has {}\n", describeBytes(cluster.device.memoryBytes));
  if (placement.stages > 1)
    text += "assumed: stages have equal numbers of layers, and send the largest values that layers carry\n";
  return text;
}

} // namespace kiln
