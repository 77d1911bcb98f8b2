// SPDX-License-Identifier: Apache-2.0
//
// Self-attention of 12 heads of 64 without a mask: softmax(q k^T / 8) v.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "attention.hpp"

namespace kiln::bench {

static constexpr int heads = 12, width = 64;

static void run(benchmark::State &state, const Threads &threads, int tokens) {
  std::size_t count = static_cast<std::size_t>(tokens) * heads * width;
  // Larger queries make the weights differ, as they do in a trained model.
  std::vector<float> q = makeInput("q", count), k = makeInput("k", count), v = makeInput("v", count), y(count);
  for (float &value : q)
    value *= 4;
  static const auto model = makeModel<attention::Model>({});

  std::vector<Contender> contenders;
  contenders.push_back(ours(threads, ATTENTION_FORWARD_ARENA_BYTES(threads.count()), y, [&](const kiln_call_t &call) {
    return attention_forward(model->get(), &call, tokens, q.data(), k.data(), v.data(), y.data());
  }));
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : peer->attention({tokens, heads, width, q, k, v}))
      contenders.push_back(std::move(way));
  }
  double flops = 4.0 * tokens * tokens * heads * width;
  compare(state, threads, {Unit::GigaflopsPerSecond, flops, flops}, std::move(contenders));
}

void registerAll() {
  for (int threads : {1, 2})
    for (int tokens : {128, 512})
      add("attention/12x64 tokens " + std::to_string(tokens), threads, threads == 1 ? 31 : 15,
          [tokens](benchmark::State &state, const Threads &pool) { run(state, pool, tokens); });
}

} // namespace kiln::bench
