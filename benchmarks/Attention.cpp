// SPDX-License-Identifier: Apache-2.0
//
// Attention of 12 heads of 64, softmax(q k^T / 8) v: of all rows, of those up to a row's own, and of one row, as a
// decoder does it in each of its layers, with keys and values that come from memory.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "attention.hpp"

namespace kiln::bench {

static constexpr int heads = 12, width = 64;

static void run(benchmark::State &state, const Threads &threads, int tokens, bool isCausal) {
  std::size_t count = static_cast<std::size_t>(tokens) * heads * width;
  // Larger queries make the weights differ, as they do in a trained model.
  std::vector<float> q = makeInput("q", count), k = makeInput("k", count), v = makeInput("v", count), y(count);
  for (float &value : q)
    value *= 4;
  static const auto model = makeModel<attention::Model>({});

  std::vector<Contender> contenders;
  std::size_t arena =
      isCausal ? ATTENTION_CAUSAL_ARENA_BYTES(threads.count()) : ATTENTION_FULL_ARENA_BYTES(threads.count());
  contenders.push_back(ours(threads, arena, y, [&](const kiln_call_t &call) {
    return (isCausal ? attention_causal : attention_full)(model->get(), &call, tokens, q.data(), k.data(), v.data(),
                                                          y.data());
  }));
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : peer->attention({tokens, heads, width, isCausal, q, k, v}))
      contenders.push_back(std::move(way));
  }
  // A causal row of n does n of the products of a full one, the first 1 and the last all of them.
  double products = isCausal ? 0.5 * tokens * (tokens + 1.0) : 1.0 * tokens * tokens;
  double flops = 4.0 * products * heads * width;
  compare(state, threads, {Unit::GigaflopsPerSecond, flops, flops}, std::move(contenders));
}

/// One call is a row in each of so many layers that their keys and values together do not stay in a cache.
static void decode(benchmark::State &state, const Threads &threads, int tokens) {
  constexpr std::size_t cached = 64 << 20;
  const std::size_t row = heads * width, count = row * static_cast<std::size_t>(tokens);
  const std::size_t layers = (cached + 2 * count * sizeof(float) - 1) / (2 * count * sizeof(float));
  std::vector<float> q = makeInput("q", row), k = makeInput("k", count * layers), v = makeInput("v", count * layers),
                     y(row * layers);
  static const auto model = makeModel<attention::Model>({});
  auto all = ours(threads, ATTENTION_DECODE_ARENA_BYTES(threads.count()), y, [&](const kiln_call_t &call) {
    kiln_status_t status = KILN_OK;
    for (std::size_t layer = 0; layer < layers && status == KILN_OK; ++layer)
      status = attention_decode(model->get(), &call, tokens, q.data(), k.data() + layer * count,
                                v.data() + layer * count, y.data() + layer * row);
    return status;
  });
  double bytes = 2.0 * sizeof(float) * static_cast<double>(count * layers);
  compare(state, threads, {Unit::GigabytesPerSecond, bytes, 0, bytes}, {std::move(all)});
}

void registerAll() {
  for (int threads : {1, 2})
    for (bool isCausal : {false, true})
      for (int tokens : {128, 512, 2048}) {
        int rounds = (threads == 1 ? 31 : 15) / (tokens > 512 ? 3 : 1);
        add(std::string(isCausal ? "attention/causal" : "attention/full") + " 12x64, " + std::to_string(tokens),
            threads, rounds, [=](benchmark::State &state, const Threads &pool) { run(state, pool, tokens, isCausal); });
      }
  for (int threads : {1, 2})
    for (int tokens : {512, 2048})
      add("attention/decode 12x64, " + std::to_string(tokens), threads, 15,
          [=](benchmark::State &state, const Threads &pool) { decode(state, pool, tokens); });
}

} // namespace kiln::bench
