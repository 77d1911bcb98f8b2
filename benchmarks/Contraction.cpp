// SPDX-License-Identifier: Apache-2.0
//
// y = x W^T at the sizes of a transformer of width 768; the weights are warm in the last cache, as in the peers' own
// benchmarks.
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
constexpr Shape shapes[] = {
    {128, 768, 768, KILN_ENTRY(out, OUT)},    {128, 3072, 768, KILN_ENTRY(up, UP)},
    {128, 768, 3072, KILN_ENTRY(down, DOWN)}, {512, 2304, 768, KILN_ENTRY(qkv, QKV)},
    {197, 768, 768, KILN_ENTRY(out, OUT)},    {1, 768, 768, KILN_ENTRY(out, OUT)},
};
#undef KILN_ENTRY

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
}

} // namespace

void registerAll() {
  for (int threads : {1, 2})
    for (const Shape &shape : shapes)
      add("contraction/" + std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + "x" +
              std::to_string(shape.depth),
          threads, threads == 1 ? 31 : 15,
          [&shape](benchmark::State &state, const Threads &pool) { run(state, pool, shape); });
}

} // namespace kiln::bench
