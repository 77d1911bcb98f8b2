// SPDX-License-Identifier: Apache-2.0
//
// An LSTM layer 256 wide over 128 steps: its projections of all steps are one product, then each step reads a weight of
// 1 MiB.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "lstm.hpp"

#include "models/specs/lstm.h"

namespace kiln::bench {

static constexpr int steps = 128, width = 256;

static void run(benchmark::State &state, const Threads &threads, int batch) {
  std::vector<float> x = makeInput("x", std::size_t{steps} * batch * width), y(x.size());
  std::vector<float> h(std::size_t{width} * batch), c(h.size());
  static const auto model = makeModel<lstm::Model>({LSTM_WEIGHTS(KILN_BENCH_WEIGHT)});

  std::vector<Contender> contenders;
  contenders.push_back(ours(threads, LSTM_FORWARD_ARENA_BYTES(threads.count()), y, [&](const kiln_call_t &call) {
    return lstm_forward(model->get(), &call, steps, batch, x.data(), y.data(), h.data(), c.data());
  }));
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : peer->model(
             {"lstm_" + std::to_string(batch), {{"x", {steps, batch, width}, {}, x}}, {"y", {steps, batch, width}}}))
      contenders.push_back(std::move(way));
  }
  auto work = static_cast<double>(flops<specs::Lstm256>({{"steps", steps}, {"batch", batch}}));
  compare(state, threads, {Unit::Milliseconds, 0, work}, std::move(contenders));
}

void registerAll() {
  for (int threads : {1, 2})
    for (int batch : {1, 8})
      add("recurrent/lstm 256, 128 steps, batch " + std::to_string(batch), threads, 15,
          [=](benchmark::State &state, const Threads &pool) { run(state, pool, batch); });
}

} // namespace kiln::bench
