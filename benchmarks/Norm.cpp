// SPDX-License-Identifier: Apache-2.0
//
// Norms, softmax, GELU, a gate of two tensors and an embedding look-up, in the caches and in main memory: each reads
// and writes every element once, so the limit is a copy of the same number of bytes.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "norm.hpp"

namespace kiln::bench {

namespace {

struct Inputs {
  std::vector<float> x, z;
  std::vector<std::int32_t> tokens;
};

struct Case {
  const char *name;
  int rows, columns;
  int streams; // number of tensors of rows x columns that are read or written
  kiln_status_t (*call)(const norm_t *, const kiln_call_t *, std::int64_t rows, const Inputs &, float *y);
  std::size_t (*arenaBytes)(int workers);
  std::vector<Contender> (*ways)(Peer &, const Rows &, std::span<const float> weight, std::span<const float> bias);
};

std::vector<Contender> layerNorm(Peer &peer, const Rows &rows, std::span<const float> weight,
                                 std::span<const float> bias) {
  return peer.layerNorm(rows, weight, bias);
}
std::vector<Contender> rmsNorm(Peer &peer, const Rows &rows, std::span<const float>, std::span<const float>) {
  static const std::vector<float> weight =
      makeWeight("rms.weight", {rows.columns}); // all cases have the same number of columns
  return peer.rmsNorm(rows, weight);
}
std::vector<Contender> softmax(Peer &peer, const Rows &rows, std::span<const float>, std::span<const float>) {
  return peer.softmax(rows);
}
std::vector<Contender> gelu(Peer &peer, const Rows &rows, std::span<const float>, std::span<const float>) {
  return peer.gelu(rows);
}
std::vector<Contender> none(Peer &, const Rows &, std::span<const float>, std::span<const float>) { return {}; }

#define KILN_ENTRY(entry, ENTRY, ...)                                                                                  \
  [](const norm_t *model, const kiln_call_t *call, std::int64_t rows, const Inputs &in, float *y) {                    \
    return norm_##entry(model, call, rows, __VA_ARGS__, y);                                                            \
  },                                                                                                                   \
      [](int workers) { return NORM_##ENTRY##_ARENA_BYTES(workers); }
constexpr Case cases[] = {
    {"layer_norm", 128, 768, 2, KILN_ENTRY(layer_norm, LAYER_NORM, in.x.data()), layerNorm},
    {"layer_norm", 16384, 768, 2, KILN_ENTRY(layer_norm, LAYER_NORM, in.x.data()), layerNorm},
    {"rms_norm", 128, 768, 2, KILN_ENTRY(rms_norm, RMS_NORM, in.x.data()), rmsNorm},
    {"rms_norm", 16384, 768, 2, KILN_ENTRY(rms_norm, RMS_NORM, in.x.data()), rmsNorm},
    {"softmax", 512, 512, 2, KILN_ENTRY(softmax, SOFTMAX, in.x.data()), softmax},
    {"softmax", 16384, 512, 2, KILN_ENTRY(softmax, SOFTMAX, in.x.data()), softmax},
    {"gelu", 128, 3072, 2, KILN_ENTRY(gelu, GELU, in.x.data()), gelu},
    {"gelu", 4096, 3072, 2, KILN_ENTRY(gelu, GELU, in.x.data()), gelu},
    {"gate", 128, 3072, 3, KILN_ENTRY(gate, GATE, in.x.data(), in.z.data()), none},
    {"gate", 4096, 3072, 3, KILN_ENTRY(gate, GATE, in.x.data(), in.z.data()), none},
    {"embedding", 128, 768, 2, KILN_ENTRY(embedding, EMBEDDING, in.tokens.data()), none},
    {"embedding", 16384, 768, 2, KILN_ENTRY(embedding, EMBEDDING, in.tokens.data()), none},
};
#undef KILN_ENTRY

void run(benchmark::State &state, const Threads &threads, const Case &c) {
  static const auto model = makeModel<norm::Model>({NORM_WEIGHTS(KILN_BENCH_WEIGHT)});
  std::size_t count = static_cast<std::size_t>(c.rows) * c.columns;
  Inputs inputs{makeInput("x", count), makeInput("z", count), {}};
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(c.rows); ++i)
    inputs.tokens.push_back(static_cast<std::int32_t>(i * 7919u % 30522u)); // distant rows
  std::vector<float> y(count);
  std::vector<float> weight = makeWeight("norm.weight", {c.columns}), bias = makeWeight("norm.bias", {c.columns});

  std::vector<Contender> contenders;
  contenders.push_back(ours(threads, c.arenaBytes(threads.count()), y, [&](const kiln_call_t &call) {
    return c.call(model->get(), &call, c.rows, inputs, y.data());
  }));
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : c.ways(*peer, {c.rows, c.columns, inputs.x}, weight, bias))
      contenders.push_back(std::move(way));
  }
  double bytes = 4.0 * c.streams * static_cast<double>(count);
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
