// SPDX-License-Identifier: Apache-2.0
//
// Attention with 12 heads of width 64, softmax(q k^T / 8) v: full, causal, and of a single query, as in each layer of a
// decoder, with keys and values that are read from main memory.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "attention.hpp"

namespace kiln::bench {

static constexpr int heads = 12, width = 64;

static void run(benchmark::State &state, const Threads &threads, int tokens, bool isCausal) {
  std::size_t count = static_cast<std::size_t>(tokens) * heads * width;
  // Larger queries make the attention weights uneven, as in a trained model.
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
  // The causal mask leaves n scores in row n, from 1 in the first row to all of them in the last.
  double products = isCausal ? 0.5 * tokens * (tokens + 1.0) : 1.0 * tokens * tokens;
  double flops = 4.0 * products * heads * width;
  compare(state, threads, {Unit::GigaflopsPerSecond, flops, flops}, std::move(contenders));
}

/// One call computes a single query in each of several layers, so many that their keys and values exceed the caches.
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

/// One call computes a single query with a window of 1024 keys in each of several layers. Their contexts overlap, but
/// not their windows, which together exceed the caches.
static void decodeWindow(benchmark::State &state, const Threads &threads, int context) {
  constexpr std::size_t layers = 11, window = 1024, row = heads * width;
  const std::size_t count = row * (static_cast<std::size_t>(context) + (layers - 1) * window);
  std::vector<float> q = makeInput("q", row), k = makeInput("k", count), v = makeInput("v", count), y(row * layers);
  static const auto model = makeModel<attention::Model>({});
  auto all = ours(threads, ATTENTION_WINDOW_ARENA_BYTES(threads.count()), y, [&](const kiln_call_t &call) {
    kiln_status_t status = KILN_OK;
    for (std::size_t layer = 0; layer < layers && status == KILN_OK; ++layer)
      status = attention_window(model->get(), &call, context, q.data(), k.data() + layer * window * row,
                                v.data() + layer * window * row, y.data() + layer * row);
    return status;
  });
  const double bytes = 2.0 * sizeof(float) * window * row * layers;
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
  for (int threads : {1, 2})
    for (int context : {1024, 32768})
      add("attention/decode 12x64, window 1024 of " + std::to_string(context), threads, 15,
          [=](benchmark::State &state, const Threads &pool) { decodeWindow(state, pool, context); });
}

} // namespace kiln::bench
