// SPDX-License-Identifier: Apache-2.0
//
// Whole models, one call each, beside the peers' time for the model's linear layers alone: what a program that calls a
// library of contractions cannot get below. Each layer has weights of its own on both sides, so they come from memory
// as they do in use.
#include "benchmarks/peers/Peers.h"
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "bert_base.hpp"
#include "gpt2_small.hpp"
#include "transformer_base.hpp"

#include "models/specs/bert.h"
#include "models/specs/gpt2.h"
#include "models/specs/transformer.h"

namespace kiln::bench {

namespace {

/// `count` linear layers of these extents.
struct Layers {
  int count, rows, columns, depth;
};

/// A peer's ways to run all of them, each layer with data of its own.
std::vector<Contender> linearLayers(Peer &peer, const std::vector<Layers> &model) {
  struct Layer {
    std::vector<float> x, weight;
  };
  auto layers = std::make_shared<std::vector<std::unique_ptr<Layer>>>();
  std::vector<std::vector<std::function<void()>>> ways; // the steps of each
  for (const auto &[count, rows, columns, depth] : model)
    for (int i = 0; i < count; ++i) {
      const Layer &layer = *layers->emplace_back(std::make_unique<Layer>(
          Layer{makeInput("x", static_cast<std::size_t>(rows) * depth), makeWeight("layer.weight", {columns, depth})}));
      std::vector<Contender> steps = peer.contraction({rows, columns, depth, layer.x, layer.weight});
      ways.resize(steps.size());
      for (std::size_t way = 0; way < ways.size(); ++way)
        ways[way].push_back(std::move(steps[way].run));
    }
  std::vector<Contender> contenders;
  for (const auto &steps : ways)
    contenders.push_back({peer.name(),
                          [layers, steps] {
                            for (const auto &step : steps)
                              step();
                          },
                          {}});
  return contenders;
}

void compareModel(benchmark::State &state, const Threads &threads, double flops, Contender ours,
                  const std::vector<Layers> &layers) {
  std::vector<Contender> contenders{std::move(ours)};
  auto peers = installedPeers();
  for (const auto &peer : peers) {
    peer->setThreads(threads.count());
    for (Contender &way : linearLayers(*peer, layers))
      contenders.push_back(std::move(way));
  }
  compare(state, threads, {Unit::Milliseconds, 0, flops}, std::move(contenders));
}

void runGpt2(benchmark::State &state, const Threads &threads) {
  constexpr int tokens = 128, vocabulary = 50257;
  auto model = makeModel<gpt2_small::Model>({GPT2_SMALL_WEIGHTS(KILN_BENCH_WEIGHT)});
  std::vector<std::int32_t> ids = makeTokens("tokens", tokens, vocabulary);
  std::vector<float> logits(static_cast<std::size_t>(tokens) * vocabulary);
  Contender run = ours(threads, GPT2_SMALL_FORWARD_ARENA_BYTES(threads.count()), logits, [&](const kiln_call_t &call) {
    return gpt2_small_forward(model->get(), &call, tokens, ids.data(), logits.data());
  });
  compareModel(state, threads, static_cast<double>(flops<specs::Gpt2Small>({{"tokens", tokens}})), std::move(run),
               {{12, tokens, 2304, 768},
                {12, tokens, 768, 768},
                {12, tokens, 3072, 768},
                {12, tokens, 768, 3072},
                {1, tokens, vocabulary, 768}});
}

void runBert(benchmark::State &state, const Threads &threads) {
  constexpr int batch = 1, tokens = 128;
  auto model = makeModel<bert_base::Model>({BERT_BASE_WEIGHTS(KILN_BENCH_WEIGHT)});
  std::vector<std::int32_t> ids = makeTokens("tokens", tokens, 30522), segments(tokens, 0), lengths(batch, tokens);
  std::vector<float> hidden(static_cast<std::size_t>(tokens) * 768), pooled(768);
  Contender run = ours(threads, BERT_BASE_FORWARD_ARENA_BYTES(threads.count()), hidden, [&](const kiln_call_t &call) {
    return bert_base_forward(model->get(), &call, batch, tokens, ids.data(), segments.data(), lengths.data(),
                             hidden.data(), pooled.data());
  });
  compareModel(state, threads, static_cast<double>(flops<specs::BertBase>({{"batch", batch}, {"tokens", tokens}})),
               std::move(run),
               {{12, tokens, 2304, 768}, {12, tokens, 768, 768}, {12, tokens, 3072, 768}, {12, tokens, 768, 3072}});
}

void runTransformer(benchmark::State &state, const Threads &threads) {
  constexpr int tokens = 64, vocabulary = 37000;
  auto model = makeModel<transformer_base::Model>({TRANSFORMER_BASE_WEIGHTS(KILN_BENCH_WEIGHT)});
  std::vector<std::int32_t> source = makeTokens("source", tokens, vocabulary),
                            target = makeTokens("target", tokens, vocabulary);
  std::vector<float> logits(static_cast<std::size_t>(tokens) * vocabulary),
      memory(static_cast<std::size_t>(tokens) * 512);
  Contender run =
      ours(threads, TRANSFORMER_BASE_FORWARD_ARENA_BYTES(threads.count()), logits, [&](const kiln_call_t &call) {
        return transformer_base_forward(model->get(), &call, tokens, tokens, source.data(), target.data(),
                                        logits.data(), memory.data());
      });
  double work =
      static_cast<double>(flops<specs::TransformerBase>({{"source_tokens", tokens}, {"target_tokens", tokens}}));
  // Self-attention of both halves, cross-attention's queries, its keys and values, outputs, the two of each perceptron,
  // logits.
  compareModel(state, threads, work, std::move(run),
               {{12, tokens, 1536, 512},
                {6, tokens, 512, 512},
                {6, tokens, 1024, 512},
                {18, tokens, 512, 512},
                {12, tokens, 2048, 512},
                {12, tokens, 512, 2048},
                {1, tokens, vocabulary, 512}});
}

} // namespace

void registerAll() {
  for (int threads : {1, 2}) {
    add("model/gpt2 small, 128 tokens", threads, 9, runGpt2);
    add("model/bert base, 128 tokens", threads, 9, runBert);
    add("model/transformer base, 64 + 64", threads, 9, runTransformer);
  }
}

} // namespace kiln::bench
