// SPDX-License-Identifier: Apache-2.0
//
// Whole models with batch size 1: BERT-base, ViT-B/16, and a token after 511 others of GPT-2 small and of a Llama with
// 1.1 billion weights in bf16, whose bound is reading its weights and KV cache once.
#include "benchmarks/cuda/Library.h"

#include "bert_base.h"
#include "gpt2_writer.h"
#include "gpu_llama.h"
#include "vit_base.h"

namespace kiln::bench {

namespace {

GpuRun makeBert(Gpu &gpu) {
  constexpr int tokens = 128;
  static const auto functions = DeviceFunctions<bert_base_t>(KILN_BENCH_DEVICE_FUNCTIONS(bert_base));
  const auto model = std::make_shared<DeviceModel<bert_base_t>>(
      functions, std::vector<testing::WeightShape>{BERT_BASE_WEIGHTS(KILN_BENCH_DEVICE_WEIGHT)});
  const std::int32_t *ids = model->place(makeTokens("tokens", tokens, 30522)),
                     *segments = model->place(makeTokens("segments", tokens, 2)),
                     *lengths = model->place(std::vector<std::int32_t>{tokens});
  auto *hidden = static_cast<float *>(model->allocate(sizeof(float) * tokens * 768)),
       *pooled = static_cast<float *>(model->allocate(sizeof(float) * 768));
  return makeRun(model, gpu, BERT_BASE_FORWARD_ARENA_BYTES(1), hidden, std::size_t{tokens} * 768,
                 [=](const bert_base_t *handle, const kiln_call_t *call) {
                   return bert_base_forward(handle, call, 1, tokens, ids, segments, lengths, hidden, pooled);
                 });
}

GpuRun makeVit(Gpu &gpu) {
  static const auto functions = DeviceFunctions<vit_base_t>(KILN_BENCH_DEVICE_FUNCTIONS(vit_base));
  const auto model = std::make_shared<DeviceModel<vit_base_t>>(
      functions, std::vector<testing::WeightShape>{VIT_BASE_WEIGHTS(KILN_BENCH_DEVICE_WEIGHT)});
  const float *image = model->place(makeInput("image", std::size_t{3} * 224 * 224));
  auto *logits = static_cast<float *>(model->allocate(sizeof(float) * 1000));
  return makeRun(
      model, gpu, VIT_BASE_FORWARD_ARENA_BYTES(1), logits, 1000,
      [=](const vit_base_t *handle, const kiln_call_t *call) { return vit_base_forward(handle, call, image, logits); });
}

constexpr int context = 512; // tokens in the KV cache, including the decoded one
struct State {
  std::size_t offset, stride;
};
#define KILN_BENCH_STATE(name, type, copies, offset, stride, ...) {offset, stride},

/// Decodes one token after those in the KV cache; `width` is the number of key or value elements per token and layer.
/// Each call overwrites the cache's last row; the preceding rows stay.
template <class Element, class Handle, class Entry>
GpuRun makeDecode(std::shared_ptr<DeviceModel<Handle>> model, Gpu &gpu, std::size_t arenaBytes,
                  const State (&states)[2], std::size_t layers, std::size_t width, std::size_t vocabulary,
                  Entry decode) {
  const std::size_t each = (context - 1) * width;
  const std::int32_t *token = model->place(makeTokens("token", 1, int(vocabulary)));
  auto *logits = static_cast<Element *>(model->allocate(sizeof(Element) * vocabulary));
  const std::vector<Element> past = toElements<Element>(makeInput("past", 2 * layers * each));
  const kiln_call_t call = model->makeCall(gpu, arenaBytes);
  for (std::size_t i = 0; i < 2 * layers; ++i)
    model->copyTo(
        static_cast<char *>(call.arena) + states[i % 2].offset + i / 2 * states[i % 2].stride,
        std::vector<Element>(past.begin() + std::ptrdiff_t(i * each), past.begin() + std::ptrdiff_t((i + 1) * each)));
  return {[=] { model->check(decode(model->get(), &call, context, token, logits)); },
          [=] { return model->fetch(logits, vocabulary); }};
}

GpuRun makeGpt2Decode(Gpu &gpu) {
  static constexpr State states[] = {GPT2_WRITER_STATES(KILN_BENCH_STATE)};
  static const auto functions = DeviceFunctions<gpt2_writer_t>(KILN_BENCH_DEVICE_FUNCTIONS(gpt2_writer));
  return makeDecode<float>(
      std::make_shared<DeviceModel<gpt2_writer_t>>(
          functions, std::vector<testing::WeightShape>{GPT2_WRITER_WEIGHTS(KILN_BENCH_DEVICE_WEIGHT)}),
      gpu, GPT2_WRITER_DECODE_ARENA_BYTES(1), states, 12, 768, 50257, gpt2_writer_decode);
}

GpuRun makeLlamaDecode(Gpu &gpu) {
  static constexpr State states[] = {GPU_LLAMA_STATES(KILN_BENCH_STATE)};
  static const auto functions = DeviceFunctions<gpu_llama_t>(KILN_BENCH_DEVICE_FUNCTIONS(gpu_llama));
  return makeDecode<std::uint16_t>(
      std::make_shared<DeviceModel<gpu_llama_t>>(
          functions, std::vector<testing::WeightShape>{GPU_LLAMA_WEIGHTS(KILN_BENCH_DEVICE_WEIGHT)}),
      gpu, GPU_LLAMA_DECODE_ARENA_BYTES(1), states, 22, 256, 32000, gpu_llama_decode);
}

} // namespace

std::vector<GpuBenchmark> gpuModels() {
  // All weights except the unused table rows, and the KV caches.
  const double gpt2Bytes = 4.0 * (GPT2_WRITER_PARAMETERS - 1023.0 * 768 + 2.0 * 12 * context * 768),
               llamaBytes = 2.0 * (GPU_LLAMA_PARAMETERS - 31999.0 * 2048 + 2.0 * 22 * context * 256);
  // PyTorch's own Llama logits differ by 0.4 between bf16 and f32: with these weights the attention is uneven.
  constexpr double likeInBf16 = 0.5;
  return {
      {{"model/bert base, 128, f32", GpuUnit::Milliseconds, 0, 0, "model bert_base"}, makeBert},
      {{"model/vit b/16, f32", GpuUnit::Milliseconds, 0, 0, "model vit_base"}, makeVit},
      {{"model/gpt2 small decode, 512, f32", GpuUnit::Milliseconds, 0, gpt2Bytes, "model gpt2_decode"}, makeGpt2Decode},
      {{"model/llama 1b decode, 512, bf16", GpuUnit::Milliseconds, 0, llamaBytes, "model llama_decode", likeInBf16},
       makeLlamaDecode}};
}

} // namespace kiln::bench
