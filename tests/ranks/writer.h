// SPDX-License-Identifier: Apache-2.0
//
// A session of a library that decodes, in one process or in one of several ranks.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/runtime.h"

namespace kiln::test {

/// The size of the mark that precedes states in an arena and the optimiser state of a training, and that tells whether
/// a session was begun.
[[maybe_unused]] constexpr size_t markBytes = 64;

/// The functions and constants of a library that decodes.
#define WRITER(name, NAME)                                                                                             \
  struct name {                                                                                                        \
    using Model = name##_t;                                                                                            \
    static constexpr auto create = name##_create_on;                                                                   \
    static constexpr auto destroy = name##_destroy;                                                                    \
    static constexpr auto bind = name##_bind_weights;                                                                  \
    static constexpr auto prefill = name##_prefill;                                                                    \
    static constexpr auto begin = name##_begin_session;                                                                \
    static constexpr auto decode = name##_decode;                                                                      \
    static constexpr auto decodeBatch = name##_decode_batch;                                                           \
    static constexpr size_t arenaBytes =                                                                               \
        NAME##_PREFILL_ARENA_BYTES(1) + NAME##_DECODE_ARENA_BYTES(1) + NAME##_DECODE_BATCH_ARENA_BYTES(1);             \
    [[maybe_unused]] static constexpr size_t stateBytes = NAME##_STATE_BYTES, weightBytes = NAME##_WEIGHT_BYTES;       \
  }

struct Memory {
  explicit Memory(size_t bytes) : bytes(bytes), data(std::aligned_alloc(KILN_ARENA_ALIGNMENT, bytes)) {
    std::memset(data, 0xFF, bytes); // NaN
  }
  ~Memory() { std::free(data); }
  Memory(const Memory &) = delete;
  size_t bytes;
  void *data;
};

/// Returns the logits of a session, in one process or in one of several ranks and stages: of a prompt of 37 tokens, of
/// three following tokens, and of two more in a batch with another sequence, which begins with the second token.
template <class Api>
std::vector<float> write(const std::string &weights, const std::vector<int32_t> &tokens, size_t vocabulary,
                         const kiln_communicator_t *communicator = nullptr,
                         const kiln_communicator_t *stages = nullptr) {
  kiln_error_t error{};
  kiln_options_t options{};
  if (communicator) {
    options.rank = communicator->rank;
    options.ranks = communicator->size;
  }
  if (stages) {
    options.stage = stages->rank;
    options.stages = stages->size;
  }
  typename Api::Model *made = nullptr;
  auto check = [&](kiln_status_t status) {
    if (status)
      throw std::runtime_error(error.message);
  };
  check(Api::create(&options, &made, &error));
  const std::unique_ptr<typename Api::Model, void (*)(typename Api::Model *)> model(made, Api::destroy);
  check(Api::bind(made, weights.c_str(), &error));
  const Memory arena(Api::arenaBytes / 64 * 64), others(Api::arenaBytes / 64 * 64);
  for (const Memory *memory : {&arena, &others})
    check(Api::begin(made, memory->data, &error));
  kiln_call_t call{arena.data, arena.bytes, nullptr, &error};
  call.communicator = communicator;
  call.stages = stages;
  constexpr int64_t prompt = 37;
  std::vector<float> logits(7 * vocabulary, NAN);
  float *next = logits.data();
  check(Api::prefill(made, &call, prompt, prompt, tokens.data(), next));
  for (int64_t at = prompt; at < prompt + 3; ++at)
    check(Api::decode(made, &call, at + 1, &tokens[at], next += vocabulary));
  // The other sequence has two tokens. The first is its prompt.
  kiln_call_t other = call;
  other.arena = others.data;
  check(Api::prefill(made, &other, 1, 1, &tokens[1], next += vocabulary));
  const Memory shared(Api::arenaBytes / 64 * 64);
  kiln_call_t both = call;
  both.arena = shared.data;
  const int64_t contexts[2] = {prompt + 4, 2};
  const kiln_sequence_t sequences[2] = {{arena.data, &contexts[0]}, {others.data, &contexts[1]}};
  const int32_t pair[2] = {tokens[prompt + 3], tokens[2]};
  check(Api::decodeBatch(made, &both, 2, sequences, pair, next + vocabulary));
  return logits;
}

/// Returns the largest difference relative to the largest wanted number, or infinity if a number is not finite.
inline double distance(const std::vector<float> &got, const std::vector<float> &wanted) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!std::isfinite(got[i]))
      return INFINITY;
    largest = std::fmax(largest, std::fabs(wanted[i]));
    difference = std::fmax(difference, std::fabs(wanted[i] - got[i]));
  }
  return difference / largest;
}

} // namespace kiln::test
