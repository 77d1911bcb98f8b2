// SPDX-License-Identifier: Apache-2.0
//
// Continues a sequence of tokens with GPT-2 small on an NVIDIA GPU: gpt2_cuda_demo [CHECKPOINT | random [TOKEN ...]].
// Weights, KV cache and logits stay in the GPU's memory; each step sends a token to the GPU and copies back a row of
// logits, from which the next token is sampled here. Without a GPU it reports this, and the same calls run on the CPU.
#include "checkpoint.h"
#include "gpt2_writer.h"
#include "support/random_weights.h"
#include "support/sampler.h"
#include "support/session.h"

#include <algorithm>
#include <chrono>

namespace {

/// A model with a session: memory on the model's device, for its arena and for the tensors of its calls.
class Writer {
public:
  explicit Writer(const std::vector<std::byte> &weights) {
    create();
    check(gpt2_writer_bind_weights_from_memory(model, weights.data(), weights.size(), &error));
    call.arena_bytes = std::max(GPT2_WRITER_PREFILL_ARENA_BYTES(1), GPT2_WRITER_DECODE_ARENA_BYTES(1));
    call.arena = allocate(call.arena_bytes);
    call.error = &error;
    call.memory = isOnGpu() ? KILN_DEVICE_POINTERS : KILN_HOST_POINTERS; // call.stream is null: the model's own
    check(gpt2_writer_begin_session(model, call.arena, &error));         // with an empty context
    ids = static_cast<std::int32_t *>(allocate(GPT2_WRITER_PREFILL_TOKENS_MAX * sizeof(std::int32_t)));
    logits = static_cast<float *>(allocate(row.size() * sizeof(float)));
  }
  ~Writer() {
    for (void *memory : {call.arena, static_cast<void *>(ids), static_cast<void *>(logits)})
      gpt2_writer_release_memory(model, memory);
    gpt2_writer_destroy(model);
  }
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  bool isOnGpu() const { return gpt2_writer_device(model) == KILN_CUDA; }

  /// Returns the logits after these tokens, the last ones of a text of `context`.
  std::span<const float> read(std::span<const std::int32_t> tokens, std::int64_t context) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    check(gpt2_writer_copy_to_memory(model, ids, tokens.data(), tokens.size_bytes(), &error));
    check(count == 1 ? gpt2_writer_decode(model, &call, context, ids, logits)
                     : gpt2_writer_prefill(model, &call, count, context, ids, logits));
    // On a GPU the call returns with its work in the stream; the copy waits for it.
    check(gpt2_writer_copy_from_memory(model, row.data(), logits, row.size() * sizeof(float), &error));
    return row;
  }

private:
  void create() {
    kiln_options_t options{};
    options.device = KILN_CUDA;
    options.flags = KILN_LOAD_KERNELS_AT_CREATE; // no kernel is assembled during generation
    kiln_status_t status = gpt2_writer_create_on(&options, &model, &error);
    if (status == KILN_NO_DEVICE) {
      std::fprintf(stderr, "%s; running on the CPU\n", error.message);
      options = {};
      options.device = KILN_CPU;
      status = gpt2_writer_create_on(&options, &model, &error);
    }
    check(status);
  }
  void *allocate(std::size_t bytes) {
    void *memory = nullptr;
    check(gpt2_writer_allocate_memory(model, bytes, &memory, &error));
    return memory;
  }
  /// Stops the program if the status is a failure.
  void check(kiln_status_t status) const {
    if (status != KILN_OK)
      support::stop(std::string(error.message) + ": " + gpt2_writer_status_text(status));
  }
  /// Returns the number of rows of the embedding table.
  static std::size_t vocabulary() {
    for (const support::Weight &weight : {GPT2_WRITER_WEIGHTS(SUPPORT_WEIGHT)})
      if (weight.name == "wte.weight")
        return static_cast<std::size_t>(weight.shape[0]);
    return 0;
  }

  kiln_error_t error{};
  gpt2_writer_t *model = nullptr;
  kiln_call_t call{};
  std::int32_t *ids = nullptr; // on the GPU
  float *logits = nullptr;     // on the GPU
  std::vector<float> row = std::vector<float>(vocabulary());
};

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

int main(int argc, char **argv) try {
  const bool isRandom = argc <= 1 || std::string(argv[1]) == "random";
  std::vector<std::int32_t> tokens;
  for (int i = 2; i < argc; ++i)
    tokens.push_back(static_cast<std::int32_t>(std::strtol(argv[i], nullptr, 10)));
  if (tokens.empty())
    tokens = {464, 7850, 286, 4881, 318}; // "The capital of France is"
  const std::size_t first = tokens.size();
  if (first > GPT2_WRITER_PREFILL_TOKENS_MAX || first >= GPT2_WRITER_DECODE_CONTEXT_MAX)
    support::stop("prompt: too many tokens; expected fewer than the context, got " + std::to_string(first));
  const std::size_t wanted = std::min<std::size_t>(first + 32, GPT2_WRITER_DECODE_CONTEXT_MAX);

  Writer writer(isRandom ? support::random_weights({GPT2_WRITER_WEIGHTS(SUPPORT_WEIGHT)}, 1)
                         : support::load_checkpoint(argv[1], specs::gpt2_checkpoint));
  support::Sampler draw({.temperature = 0.8, .top_k = 40, .top_p = 1, .seed = 1});
  auto start = std::chrono::steady_clock::now();
  tokens.push_back(draw(writer.read(tokens, static_cast<std::int64_t>(first))));
  const double prefill = secondsSince(start);
  start = std::chrono::steady_clock::now();
  while (tokens.size() < wanted)
    tokens.push_back(draw(writer.read({&tokens.back(), 1}, static_cast<std::int64_t>(tokens.size()))));
  const double decode = secondsSince(start);

  for (std::int32_t token : tokens)
    std::printf("%d ", token);
  std::printf("\non %s: %zu tokens read in %.1f ms, then %.1f tokens per second\n",
              writer.isOnGpu() ? "the GPU" : "the CPU", first, prefill * 1e3,
              static_cast<double>(wanted - first - 1) / decode);
} catch (const std::exception &error) {
  support::stop(error.what());
}
