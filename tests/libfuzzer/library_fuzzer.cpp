// SPDX-License-Identifier: Apache-2.0
// Calls of two libraries, as they are shipped: for any arguments each call returns a permitted status, no call accesses
// memory outside of its buffers, and correct calls give the same bits each time.
#include "batches.h"
#include "calls.h"
#include "small.h"
#include "weights.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>

using namespace kiln_fuzz;
using kiln::testing::WeightImage;
using kiln::testing::WeightShape;

namespace {

#define KILN_FUZZ_WEIGHT(name, type, copies, ...) {name, copies, {__VA_ARGS__}, #type},
const WeightImage smallWeights(std::vector<WeightShape>{SMALL_WEIGHTS(KILN_FUZZ_WEIGHT)}),
    batchesWeights(std::vector<WeightShape>{BATCHES_WEIGHTS(KILN_FUZZ_WEIGHT)});

const small_t *makeSmall(bool isBound) {
  small_t *model = nullptr;
  require(small_create(nullptr, &model, nullptr) == KILN_OK, "a model");
  require(!isBound || !small_bind_weights_from_memory(model, smallWeights.data(), smallWeights.size(), nullptr),
          "weights");
  return model;
}

const batches_t *makeBatches() {
  batches_t *model = nullptr;
  require(batches_create(nullptr, &model, nullptr) == KILN_OK, "a model");
  require(!batches_bind_weights_from_memory(model, batchesWeights.data(), batchesWeights.size(), nullptr), "weights");
  return model;
}

template <class T> T *as(const GuardedMemory &memory) { return reinterpret_cast<T *>(memory.data()); }

/// Calls an entry with two dimensions, indices and lengths.
void callSmall(Choices &choices) {
  static const small_t *bound = makeSmall(true), *bare = makeSmall(false);
  Call call(choices, [](size_t workers) { return SMALL_FORWARD_ARENA_BYTES(workers); });
  const int64_t batch = call.extent(SMALL_FORWARD_BATCH_MIN, SMALL_FORWARD_BATCH_MAX),
                tokens = call.extent(SMALL_FORWARD_TOKENS_MIN, SMALL_FORWARD_TOKENS_MAX);
  // For a dimension out of range the call reads no more than for the smallest one.
  const auto rows = static_cast<size_t>(batch >= 1 && batch <= SMALL_FORWARD_BATCH_MAX ? batch : 1),
             columns = static_cast<size_t>(tokens >= 1 && tokens <= SMALL_FORWARD_TOKENS_MAX ? tokens : 1);
  GuardedMemory words(rows * columns * 4, call.guard), lengths(rows * 4, call.guard),
      logits(rows * columns * 11 * 4, call.guard);
  call.fillIndices(as<int32_t>(words), rows * columns, 0, 11);
  call.fillIndices(as<int32_t>(lengths), rows, 0, static_cast<int32_t>(columns) + 1);
  const small_t *model = call.pointer(bound);
  if (model && choices.isWrong()) {
    call.allow(KILN_WEIGHTS_NOT_BOUND);
    model = bare;
  }
  const auto *given = call.pointer(as<const int32_t>(words)), *lengthsGiven = call.pointer(as<const int32_t>(lengths));
  float *results = call.pointer(as<float>(logits));
  call.check(small_forward(model, call.given(), batch, tokens, given, lengthsGiven, results), {&logits},
             {0, batch, tokens});
}

/// Calls a batched entry, where each sequence has its own state and dimensions.
void callBatch(Choices &choices) {
  static const batches_t *bound = makeBatches();
  constexpr size_t most = BATCHES_PREFILL_BATCH_SEQUENCES_MAX;
  Call call(choices, [](size_t workers) { return BATCHES_PREFILL_BATCH_ARENA_BYTES(workers); });
  const int64_t asked = call.extent(1, most);
  const auto count = static_cast<size_t>(asked >= 1 && asked <= int64_t{most} ? asked : 1);
  std::array<kiln_sequence_t, most> sequences = {};
  std::array<std::array<int64_t, 2>, most> extents;
  std::vector<std::unique_ptr<GuardedMemory>> states;
  std::vector<int64_t> key = {1, asked};
  int64_t rows = 0;
  for (size_t i = 0; i < count; ++i) {
    // As many rows as there is room for, and any number of previous rows.
    extents[i][0] = call.extent(1, 3);
    if (extents[i][0] > 3 && extents[i][0] <= BATCHES_PREFILL_TOKENS_MAX)
      extents[i][0] = 0;
    extents[i][1] = call.extent(3, BATCHES_PREFILL_CONTEXT_MAX);
    if (extents[i][1] == 2)
      extents[i][1] = 0;
    states.push_back(std::make_unique<GuardedMemory>(BATCHES_STATE_BYTES, call.guard));
    std::memset(states[i]->data(), 0, BATCHES_STATE_BYTES);
    char *state = call.pointer(as<char>(*states[i]));
    if (state && choices.isWrong()) {
      call.allow(KILN_ARENA_MISALIGNED);
      state += 1 + choices.below(63);
    } else if (state && i > 0 && choices.isWrong()) {
      call.allow(KILN_INVALID_ARGUMENT); // another sequence's state
      state = as<char>(*states[choices.next() % i]);
    }
    sequences[i] = {state, call.pointer(extents[i].data())};
    rows += std::clamp<int64_t>(extents[i][0], 1, 3);
    key.insert(key.end(), extents[i].begin(), extents[i].end());
  }
  GuardedMemory tokens(static_cast<size_t>(rows) * 4, call.guard), logits(count * 61 * 4, call.guard),
      hidden(static_cast<size_t>(rows) * 48 * 4, call.guard);
  call.fillIndices(as<int32_t>(tokens), static_cast<size_t>(rows), 0, 61);
  const batches_t *model = call.pointer(bound);
  const kiln_sequence_t *sequencesGiven = call.pointer(sequences.data());
  const int32_t *given = call.pointer(as<const int32_t>(tokens));
  float *logitsGiven = call.pointer(as<float>(logits)), *hiddenGiven = call.pointer(as<float>(hidden));
  call.check(batches_prefill_batch(model, call.given(), static_cast<size_t>(asked), sequencesGiven, given, logitsGiven,
                                   hiddenGiven),
             {&logits, &hidden}, std::move(key));
  for (const auto &state : states)
    require(state->isIntact(), "states outside of which nothing is written");
}

/// Accesses rows of weights, by names and numbers that are correct or not.
void callWeights(Choices &choices) {
  static auto *model = const_cast<small_t *>(makeSmall(true));
  static const char *const names[] = {"words.weight", "layers.1.norm1.bias", "layers.2.norm1.bias", "", "layers.{}.x"};
  static const uint64_t numbers[] = {0, 1, 8, 11, 12, 1ull << 32, UINT64_MAX};
  const char *name = choices.isWrong() ? nullptr : names[choices.below(std::size(names))];
  const uint64_t row = numbers[choices.below(std::size(numbers))], rows = numbers[choices.below(std::size(numbers))];
  const uint64_t extent = name == names[0] ? 11 : name == names[1] ? 8 : 0, width = name == names[0] ? 8 : 1;
  const bool isRight = extent > 0 && row <= extent && rows <= extent - row;
  GuardedMemory values(isRight ? rows * width * 4 : 0, choices.below(2) ? Guard::front : Guard::back);
  kiln_error_t error;
  require((small_read_weight(model, name, row, rows, values.data(), &error) == KILN_OK) == isRight, "rows that exist");
  require(values.isIntact(), "values outside of which nothing is written");
  require((small_write_weight(model, name, row, rows, values.data(), &error) == KILN_OK) == isRight, "rows that exist");
  require((error.status == KILN_OK) == isRight, "words with a failure, and no others");
}

/// Binds a weight file with some bytes changed: the model keeps its weights, or has all of the file's.
void callBind(Choices &choices) {
  static auto *model = const_cast<small_t *>(makeSmall(true));
  std::string image(static_cast<const char *>(smallWeights.data()), smallWeights.size());
  for (uint32_t changes = choices.below(8); changes > 0; --changes) {
    const size_t at = choices.next() | static_cast<size_t>(choices.next()) << 8;
    image[at % image.size()] = static_cast<char>(choices.next());
  }
  image.resize(image.size() - (choices.isWrong() ? choices.next() : 0));
  GuardedMemory memory(image.size(), Guard::back);
  std::memcpy(memory.data(), image.data(), image.size());
  kiln_error_t error;
  const kiln_status_t status = small_bind_weights_from_memory(model, memory.data(), memory.size(), &error);
  require(status == error.status && (status == KILN_OK) == (*error.message == 0),
          "words with a failure, and no others");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Choices choices(data, size);
  constexpr void (*calls[])(Choices &) = {callSmall, callBatch, callWeights, callBind};
  calls[choices.below(std::size(calls))](choices);
  return 0;
}
