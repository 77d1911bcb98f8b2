// SPDX-License-Identifier: Apache-2.0
#include "tools/scale/Cluster.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <cassert>

using namespace llvm;

namespace kiln {

double Cluster::kernelSeconds(const std::string &type, double operations, double bytes) const {
  auto peak = device.peaks.find(type);
  assert(peak != device.peaks.end() && "the type is checked before");
  return std::max(operations / (peak->second * device.fraction),
                  bytes / (device.memoryBandwidth * device.memoryFraction));
}

Link Cluster::linkOf(int64_t stride, int64_t size) const {
  if (stride * size <= devicesInNode)
    return node;
  const int64_t inNode = std::max<int64_t>(1, devicesInNode / stride);
  const double share = network.bandwidth * double(inNode) / double(devicesInNode);
  return {network.latency, inNode > 1 ? std::min(share, node.bandwidth) : share};
}

bool fromJSON(const json::Value &value, Link &link, json::Path path) {
  json::ObjectMapper map(value, path);
  double fraction = 1;
  if (!map || !map.map("latency", link.latency) || !map.map("bandwidth", link.bandwidth) ||
      !map.mapOptional("fraction", fraction))
    return false;
  if (link.latency < 0 || link.bandwidth <= 0 || fraction <= 0 || fraction > 1) {
    path.report(
        "link: value is out of range; expected a latency of at least 0, a bandwidth above 0 and a fraction in (0, 1]");
    return false;
  }
  link.bandwidth *= fraction;
  return true;
}

bool fromJSON(const json::Value &value, Device &device, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("name", device.name) || !map.map("peaks", device.peaks) ||
      !map.map("fraction", device.fraction) || !map.map("memory_bytes", device.memoryBytes) ||
      !map.map("memory_bandwidth", device.memoryBandwidth) || !map.map("memory_fraction", device.memoryFraction))
    return false;
  const bool hasPeaks = !device.peaks.empty() && std::all_of(device.peaks.begin(), device.peaks.end(),
                                                             [](auto &peak) { return peak.second > 0; });
  if (!hasPeaks || device.fraction <= 0 || device.fraction > 1 || device.memoryBytes <= 0 ||
      device.memoryBandwidth <= 0 || device.memoryFraction <= 0 || device.memoryFraction > 1) {
    path.report("device: value is out of range; expected peaks and memory above 0, and fractions in (0, 1]");
    return false;
  }
  return true;
}

bool fromJSON(const json::Value &value, Cluster &cluster, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("name", cluster.name) || !map.map("source", cluster.source) ||
      !map.map("device", cluster.device) || !map.map("devices_in_node", cluster.devicesInNode) ||
      !map.map("node", cluster.node) || !map.map("network", cluster.network))
    return false;
  if (cluster.devicesInNode < 1) {
    path.field("devices_in_node").report("too few devices; expected at least 1");
    return false;
  }
  return true;
}

Expected<Cluster> readCluster(StringRef text, StringRef file) {
  Expected<Cluster> cluster = json::parse<Cluster>(text, "machine");
  if (!cluster)
    return createStringError(formatv("\"{0}\" describes no machine: {1}", file, toString(cluster.takeError())).str());
  return cluster;
}

Expected<Cluster> loadCluster(const std::string &path) {
  auto file = MemoryBuffer::getFile(path);
  if (!file)
    return createStringError(formatv("cannot read \"{0}\": {1}", path, file.getError().message()).str());
  return readCluster((*file)->getBuffer(), path);
}

} // namespace kiln
