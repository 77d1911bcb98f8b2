// SPDX-License-Identifier: Apache-2.0
//
// Whole models, one call each.
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

void compareModel(benchmark::State &state, const Threads &threads, double flops, Contender ours) {
  compare(state, threads, {Unit::Milliseconds, 0, flops}, {std::move(ours)});
}

void runGpt2(benchmark::State &state, const Threads &threads) {
  constexpr int tokens = 128, vocabulary = 50257;
  auto model = makeModel<gpt2_small::Model>({GPT2_SMALL_WEIGHTS(KILN_BENCH_WEIGHT)});
  std::vector<std::int32_t> ids = makeTokens("tokens", tokens, vocabulary);
  std::vector<float> logits(static_cast<std::size_t>(tokens) * vocabulary);
  Contender run = ours(threads, GPT2_SMALL_FORWARD_ARENA_BYTES(threads.count()), logits, [&](const kiln_call_t &call) {
    return gpt2_small_forward(model->get(), &call, tokens, ids.data(), logits.data());
  });
  compareModel(state, threads, static_cast<double>(flops<specs::Gpt2Small>({{"tokens", tokens}})), std::move(run));
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
               std::move(run));
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
  compareModel(state, threads, work, std::move(run));
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
