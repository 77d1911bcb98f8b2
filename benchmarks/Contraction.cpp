// SPDX-License-Identifier: Apache-2.0
//
// y = x W^T at the sizes of a transformer of width 768; the weights are warm in the last-level cache, as in the peers'
// own benchmarks.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "contraction.hpp"

namespace kiln::bench {

namespace {

struct Shape {
  int rows, columns, depth;
  const char *weight;
  kiln_status_t (*call)(const contraction_t *, const kiln_call_t *, std::int64_t, const float *, float *);
  std::size_t (*arenaBytes)(int workers);
};

#define KILN_ENTRY(entry, ENTRY)                                                                                       \
  #entry ".weight", contraction_##entry, [](int workers) { return CONTRACTION_##ENTRY##_ARENA_BYTES(workers); }
constexpr Shape out(int rows) { return {rows, 768, 768, KILN_ENTRY(out, OUT)}; }
constexpr Shape up(int rows) { return {rows, 3072, 768, KILN_ENTRY(up, UP)}; }
constexpr Shape down(int rows) { return {rows, 768, 3072, KILN_ENTRY(down, DOWN)}; }
constexpr Shape qkv(int rows) { return {rows, 2304, 768, KILN_ENTRY(qkv, QKV)}; }
constexpr Shape head(int rows) { return {rows, 50257, 768, KILN_ENTRY(head, HEAD)}; }
#undef KILN_ENTRY

constexpr Shape shapes[] = {out(128), up(128),  down(128), qkv(128),  out(197), up(197), down(197),
                            qkv(197), out(512), up(512),   down(512), qkv(512), out(1),  up(1),
                            out(4),   up(4),    out(8),    up(8),     out(16),  up(16),  head(1)};

/// The smallest number of rows for the geometric mean; below it, reading the weights takes a significant part of the
/// time.
constexpr int gridRows = 128;

void run(benchmark::State &state, const Threads &threads, const Shape &shape) {
  static const auto model = makeModel<contraction::Model>({CONTRACTION_WEIGHTS(KILN_BENCH_WEIGHT)});
  std::vector<float> x = makeInput("x", static_cast<std::size_t>(shape.rows) * shape.depth);
  std::vector<float> y(static_cast<std::size_t>(shape.rows) * shape.columns);
  std::vector<float> weight = makeWeight(shape.weight, {shape.columns, shape.depth});

  std::vector<Contender> contenders;
  contenders.push_back(ours(threads, shape.arenaBytes(threads.count()), y, [&](const kiln_call_t &call) {
    return shape.call(model->get(), &call, shape.rows, x.data(), y.data());
  }));
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : peer->contraction({shape.rows, shape.columns, shape.depth, x, weight}))
      contenders.push_back(std::move(way));
  }
  double flops = 2.0 * shape.rows * shape.columns * shape.depth;
  compare(state, threads, {Unit::GigaflopsPerSecond, flops, flops, 4.0 * static_cast<double>(weight.size())},
          std::move(contenders));
  if (shape.rows >= gridRows)
    state.counters["grid"] = 1;
}

} // namespace

void registerAll() {
  for (int threads : {1, 2})
    for (const Shape &shape : shapes)
      add("contraction/" + std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + "x" +
              std::to_string(shape.depth),
          threads, threads == 1 || shape.rows < gridRows ? 31 : 15,
          [&shape](benchmark::State &state, const Threads &pool) { run(state, pool, shape); });
}

} // namespace kiln::bench
