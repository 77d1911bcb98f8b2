// SPDX-License-Identifier: Apache-2.0
#include "tools/scale/Collectives.h"

#include <algorithm>
#include <cmath>

namespace kiln {

double ringBytes(double bytes, int64_t ranks) { return 2 * bytes * double(ranks - 1) / double(ranks); }

double ringAllReduce(const Link &link, double bytes, int64_t ranks) {
  return 2 * double(ranks - 1) * link.seconds(bytes / double(ranks));
}

double treeAllReduce(const Link &link, double bytes, int64_t ranks) {
  return std::ceil(std::log2(double(ranks))) * link.seconds(bytes);
}

double allReduce(const Link &link, double bytes, int64_t ranks) {
  return std::min(ringAllReduce(link, bytes, ranks), treeAllReduce(link, bytes, ranks));
}

double allGather(const Link &link, double bytes, int64_t ranks) { return double(ranks - 1) * link.seconds(bytes); }

double Pipeline::bubble() const { return double(stages - 1) / double(interleave * microbatches); }

double Pipeline::seconds(double stageSeconds) const { return double(microbatches) * stageSeconds * (1 + bubble()); }

double exposed(double communication, double window, int64_t buckets) {
  return std::max(communication - window, communication / double(buckets));
}

} // namespace kiln
