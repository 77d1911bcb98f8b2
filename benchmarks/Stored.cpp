// SPDX-License-Identifier: Apache-2.0
//
// A token of GPT-2 small after 511 others with quantised weights, compared with our own f32; the ratio is the f32 time
// over the time with quantised weights, and the limit is to read the weights and the KV caches once. And eight
// sequences in a batched call, compared with eight calls.
#include "benchmarks/support/Library.h"
#include "benchmarks/support/Register.h"

#include "gpt2_bf16.hpp"
#include "gpt2_f16.hpp"
#include "gpt2_int4.hpp"
#include "gpt2_int4_int8.hpp"
#include "gpt2_int8.hpp"
#include "gpt2_int8_int8.hpp"
#include "gpt2_writer.hpp"

namespace kiln::bench {

namespace {

constexpr std::int64_t context = 512, vocabulary = 50257;
constexpr std::size_t sequences = 8;

/// A library's calls. States are zeros, for which the arithmetic takes as long as for other values.
struct Form {
  const char *name;
  std::size_t weightBytes, cacheBytes, stateBytes;
  std::size_t (*arenaBytes)(int workers), (*batchArenaBytes)(int workers);
  kiln_status_t (*decode)(const kiln_call_t &, const std::int32_t *token, float *logits);
  kiln_status_t (*decodeBatch)(const kiln_call_t &, const kiln_sequence_t *, const std::int32_t *tokens, float *logits);
};

#define KILN_FORM(library, LIBRARY, words)                                                                             \
  const auto &library##Model() {                                                                                       \
    static const auto model = makeModel<library::Model>({LIBRARY##_WEIGHTS(KILN_BENCH_WEIGHT)});                       \
    return *model;                                                                                                     \
  }                                                                                                                    \
  constexpr Form library##Form{                                                                                        \
      words,                                                                                                           \
      LIBRARY##_WEIGHT_BYTES,                                                                                          \
      context * LIBRARY##_STATE_BYTES_PER_ROW,                                                                         \
      LIBRARY##_STATE_BYTES,                                                                                           \
      [](int workers) { return LIBRARY##_DECODE_ARENA_BYTES(workers); },                                               \
      [](int workers) { return LIBRARY##_DECODE_BATCH_ARENA_BYTES(workers); },                                         \
      [](const kiln_call_t &call, const std::int32_t *token, float *logits) {                                          \
        return library##_decode(library##Model().get(), &call, context, token, logits);                                \
      },                                                                                                               \
      [](const kiln_call_t &call, const kiln_sequence_t *each, const std::int32_t *tokens, float *logits) {            \
        return library##_decode_batch(library##Model().get(), &call, sequences, each, tokens, logits);                 \
      }};
KILN_FORM(gpt2_writer, GPT2_WRITER, "f32")
KILN_FORM(gpt2_f16, GPT2_F16, "f16")
KILN_FORM(gpt2_bf16, GPT2_BF16, "bf16")
KILN_FORM(gpt2_int8, GPT2_INT8, "int8")
KILN_FORM(gpt2_int8_int8, GPT2_INT8_INT8, "int8, rows int8")
KILN_FORM(gpt2_int4, GPT2_INT4, "int4")
KILN_FORM(gpt2_int4_int8, GPT2_INT4_INT8, "int4, rows int8")
constexpr const Form *forms[] = {&gpt2_writerForm,    &gpt2_f16Form,  &gpt2_bf16Form,     &gpt2_int8Form,
                                 &gpt2_int8_int8Form, &gpt2_int4Form, &gpt2_int4_int8Form};

/// Tokens, the states of the sequences, and the buffer for logits.
struct Conversations {
  std::vector<std::int32_t> tokens = makeTokens("tokens", sequences, vocabulary);
  std::vector<float> logits = std::vector<float>(sequences * vocabulary);
  std::vector<Memory> memory;
  std::vector<kiln_sequence_t> each;

  explicit Conversations(const Form &form) {
    for (std::size_t i = 0; i < sequences; ++i)
      memory.emplace_back(form.stateBytes);
    for (Memory &states : memory)
      each.push_back({states.data(), &context});
  }
};

Contender one(const Threads &threads, const Form &form, Conversations &with) {
  return ours(threads, form.arenaBytes(threads.count()), {}, [&form, &with](const kiln_call_t &call) {
    return form.decode(call, with.tokens.data(), with.logits.data());
  });
}

void compareWithFloats(benchmark::State &state, const Threads &threads, const Form &form) {
  Conversations with(form);
  std::vector<Contender> contenders{one(threads, form, with)};
  if (&form != &gpt2_writerForm) {
    contenders.push_back(one(threads, gpt2_writerForm, with));
    contenders.back().name = "f32";
  }
  Work work{Unit::Milliseconds, 0};
  work.bytesRead = static_cast<double>(form.weightBytes + form.cacheBytes);
  compare(state, threads, work, std::move(contenders));
}

void compareWithCalls(benchmark::State &state, const Threads &threads, const Form &form) {
  Conversations with(form);
  Contender together = ours(threads, form.batchArenaBytes(threads.count()), {}, [&](const kiln_call_t &call) {
    return form.decodeBatch(call, with.each.data(), with.tokens.data(), with.logits.data());
  });
  Contender alone = one(threads, form, with);
  alone.name = "calls";
  alone.run = [run = alone.run] {
    for (std::size_t i = 0; i < sequences; ++i)
      run();
  };
  compare(state, threads, {Unit::Milliseconds, 0}, {together, alone});
}

} // namespace

void registerAll() {
  using Run = void (*)(benchmark::State &, const Threads &, const Form &);
  auto addRows = [](const std::string &title, int threads, Run run) {
    for (const Form *form : forms)
      add("stored/" + title + "/" + form->name, threads, 9,
          [form, run](benchmark::State &state, const Threads &pool) { run(state, pool, *form); });
  };
  for (int threads : {1, 2}) {
    addRows("gpt2 decode, 512", threads, compareWithFloats);
    addRows("gpt2 decode of 8", threads, compareWithCalls);
  }
}

} // namespace kiln::bench
