// SPDX-License-Identifier: Apache-2.0
//
// The machine's limits: fused multiply-adds, and memory reads and copies in buffers larger than any cache.
#include "benchmarks/support/Compare.h"
#include "benchmarks/support/Register.h"

namespace kiln::bench {

static constexpr std::size_t largeBytes = std::size_t{512} << 20;

static void addLimit(const std::string &name, int threads, Unit unit, Probe (*make)(const Threads &)) {
  add(name, threads, 31, [=](benchmark::State &state, const Threads &pool) {
    Probe probe = make(pool);
    compare(state, pool, {unit, probe.amount}, {{"ours", probe.run, {}}});
  });
}

void registerAll() {
  for (int threads : {1, 2}) {
    addLimit(std::string("limit/fma ") + probeIsa(), threads, Unit::GigaflopsPerSecond, makeFmaProbe);
    addLimit("limit/read 512 MiB", threads, Unit::GigabytesPerSecond,
             [](const Threads &pool) { return makeReadProbe(pool, largeBytes); });
    addLimit("limit/copy 512 MiB", threads, Unit::GigabytesPerSecond,
             [](const Threads &pool) { return makeCopyProbe(pool, largeBytes); });
  }
}

} // namespace kiln::bench
