// SPDX-License-Identifier: Apache-2.0
//
// Mixtures of experts: tokens that choose 2 of 16 experts, compared with all 16 experts for each token; the ratio is
// the time of all experts over ours. And one token, whose limit is to read the weights of its experts once.
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "experts.hpp"
#include "experts_dense.hpp"
#include "experts_int4.hpp"

#include <cmath>

namespace kiln::bench {

namespace {

/// Tokens that differ in their scores, so that they choose different experts.
std::vector<float> drawTokens(std::size_t count, std::size_t width) {
  std::vector<float> tokens(count * width);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i * i % 1009)));
  return tokens;
}

#define KILN_CALL(library, entry, arena, model, x, y)                                                                  \
  ours(threads, arena, {},                                                                                             \
       [&](const kiln_call_t &call) { return library##_##entry(model->get(), &call, (x).data(), (y).data()); })

void compareWithDense(benchmark::State &state, const Threads &threads) {
  static const auto model = makeModel<experts::Model>({EXPERTS_WEIGHTS(KILN_BENCH_WEIGHT)});
  static const auto all = makeModel<experts_dense::Model>({EXPERTS_DENSE_WEIGHTS(KILN_BENCH_WEIGHT)});
  const std::vector<float> x = drawTokens(24, 256);
  std::vector<float> y(x.size());
  std::vector<Contender> contenders{
      KILN_CALL(experts, prefill, EXPERTS_PREFILL_ARENA_BYTES(threads.count()), model, x, y),
      KILN_CALL(experts_dense, products, EXPERTS_DENSE_PRODUCTS_ARENA_BYTES(threads.count()), all, x, y),
      KILN_CALL(experts_dense, perceptron, EXPERTS_DENSE_PERCEPTRON_ARENA_BYTES(threads.count()), all, x, y)};
  contenders[1].name = "products";
  contenders[2].name = "perceptron";
  compare(state, threads, {Unit::Milliseconds, 0}, std::move(contenders));
}

void decodeFloats(benchmark::State &state, const Threads &threads) {
  static const auto model = makeModel<experts::Model>({EXPERTS_WEIGHTS(KILN_BENCH_WEIGHT)});
  const std::vector<float> x = drawTokens(1, 256);
  std::vector<float> y(x.size());
  Work work{Unit::Milliseconds, 0};
  work.bytesRead = 2.0 * 3 * 256 * 512 * sizeof(float);
  compare(state, threads, work, {KILN_CALL(experts, decode, EXPERTS_DECODE_ARENA_BYTES(threads.count()), model, x, y)});
}

void decodeInt4(benchmark::State &state, const Threads &threads) {
  static const auto model = makeModel<experts_int4::Model>({EXPERTS_INT4_WEIGHTS(KILN_BENCH_WEIGHT)});
  const std::vector<float> x = drawTokens(1, 2048);
  std::vector<float> y(x.size());
  Work work{Unit::Milliseconds, 0};
  work.bytesRead = 8.0 * 3 * 2048 * 768 * (0.5 + 2.0 / 32); // numbers, and a scale of f16 for each group of 32
  compare(state, threads, work,
          {KILN_CALL(experts_int4, decode, EXPERTS_INT4_DECODE_ARENA_BYTES(threads.count()), model, x, y)});
}

} // namespace

void registerAll() {
  for (int threads : {1, 2}) {
    add("experts/24 tokens, 2 of 16, 256x512", threads, 25, compareWithDense);
    add("experts/1 token, 2 of 16, 256x512", threads, 25, decodeFloats);
    add("experts/1 token, 8 of 2048x768, int4", threads, 9, decodeInt4);
  }
}

} // namespace kiln::bench
