// SPDX-License-Identifier: Apache-2.0
//
// Layer norm, softmax and GELU over rows, once in the caches and once in memory: each reads and writes every number
// once, so a copy of as many bytes is the limit.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "norm.hpp"

namespace kiln::bench {

namespace {

struct Case {
  const char *name;
  int rows, columns;
  kiln_status_t (*call)(const norm_t *, const kiln_call_t *, std::int64_t, const float *, float *);
  std::size_t (*arenaBytes)(int workers);
  std::vector<Contender> (*ways)(Peer &, const Rows &, std::span<const float> weight, std::span<const float> bias);
};

std::vector<Contender> layerNorm(Peer &peer, const Rows &rows, std::span<const float> weight,
                                 std::span<const float> bias) {
  return peer.layerNorm(rows, weight, bias);
}
std::vector<Contender> softmax(Peer &peer, const Rows &rows, std::span<const float>, std::span<const float>) {
  return peer.softmax(rows);
}
std::vector<Contender> gelu(Peer &peer, const Rows &rows, std::span<const float>, std::span<const float>) {
  return peer.gelu(rows);
}

#define KILN_ENTRY(entry, ENTRY) norm_##entry, [](int workers) { return NORM_##ENTRY##_ARENA_BYTES(workers); }
constexpr Case cases[] = {
    {"layer_norm", 128, 768, KILN_ENTRY(layer_norm, LAYER_NORM), layerNorm},
    {"layer_norm", 16384, 768, KILN_ENTRY(layer_norm, LAYER_NORM), layerNorm},
    {"softmax", 512, 512, KILN_ENTRY(softmax, SOFTMAX), softmax},
    {"softmax", 16384, 512, KILN_ENTRY(softmax, SOFTMAX), softmax},
    {"gelu", 128, 3072, KILN_ENTRY(gelu, GELU), gelu},
    {"gelu", 4096, 3072, KILN_ENTRY(gelu, GELU), gelu},
};
#undef KILN_ENTRY

void run(benchmark::State &state, const Threads &threads, const Case &c) {
  static const auto model = makeModel<norm::Model>({NORM_WEIGHTS(KILN_BENCH_WEIGHT)});
  std::size_t count = static_cast<std::size_t>(c.rows) * c.columns;
  std::vector<float> x = makeInput("x", count), y(count);
  std::vector<float> weight = makeWeight("norm.weight", {c.columns}), bias = makeWeight("norm.bias", {c.columns});

  std::vector<Contender> contenders;
  contenders.push_back(ours(threads, c.arenaBytes(threads.count()), y, [&](const kiln_call_t &call) {
    return c.call(model->get(), &call, c.rows, x.data(), y.data());
  }));
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : c.ways(*peer, {c.rows, c.columns, x}, weight, bias))
      contenders.push_back(std::move(way));
  }
  double bytes = 8.0 * static_cast<double>(count);
  compare(state, threads, {Unit::GigabytesPerSecond, bytes, 0, 0, bytes}, std::move(contenders));
}

} // namespace

void registerAll() {
  for (int threads : {1, 2})
    for (const Case &c : cases)
      add(std::string(c.name) + "/" + std::to_string(c.rows) + "x" + std::to_string(c.columns), threads,
          threads == 1 ? 31 : 15, [&c](benchmark::State &state, const Threads &pool) { run(state, pool, c); });
}

} // namespace kiln::bench
