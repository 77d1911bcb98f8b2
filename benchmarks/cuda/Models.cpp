// SPDX-License-Identifier: Apache-2.0
//
// Whole models of one sequence or image: BERT-base, ViT-B/16, and a token of GPT-2 small behind 511 others, which is
// bound by reading its weights and cache once.
#include "benchmarks/cuda/Library.h"

#include "bert_base.h"
#include "gpt2_writer.h"
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

constexpr int context = 512, width = 768, layers = 12;

/// The cache's last row is written again by each call; the rows before it stay.
GpuRun makeDecode(Gpu &gpu) {
  struct State {
    std::size_t offset, stride;
  };
#define KILN_BENCH_STATE(name, type, copies, offset, stride, ...) {offset, stride},
  constexpr State states[] = {GPT2_WRITER_STATES(KILN_BENCH_STATE)};
#undef KILN_BENCH_STATE
  constexpr std::size_t each = std::size_t{context - 1} * width, vocabulary = 50257;
  static const auto functions = DeviceFunctions<gpt2_writer_t>(KILN_BENCH_DEVICE_FUNCTIONS(gpt2_writer));
  const auto model = std::make_shared<DeviceModel<gpt2_writer_t>>(
      functions, std::vector<testing::WeightShape>{GPT2_WRITER_WEIGHTS(KILN_BENCH_DEVICE_WEIGHT)});
  const std::int32_t *token = model->place(makeTokens("token", 1, int(vocabulary)));
  auto *logits = static_cast<float *>(model->allocate(sizeof(float) * vocabulary));
  const std::vector<float> past = makeInput("past", 2 * layers * each);
  const kiln_call_t call = model->makeCall(gpu, GPT2_WRITER_DECODE_ARENA_BYTES(1));
  for (std::size_t i = 0; i < std::size_t{2 * layers}; ++i)
    model->copyTo(
        static_cast<char *>(call.arena) + states[i % 2].offset + i / 2 * states[i % 2].stride,
        std::vector<float>(past.begin() + std::ptrdiff_t(i * each), past.begin() + std::ptrdiff_t((i + 1) * each)));
  return {[=] { model->check(gpt2_writer_decode(model->get(), &call, context, token, logits)); },
          [=] { return model->fetch(logits, vocabulary); }};
}

} // namespace

std::vector<GpuBenchmark> gpuModels() {
  // Every weight but the tables' other rows, and the cache.
  const double decodeBytes = 4.0 * (GPT2_WRITER_PARAMETERS - 1023.0 * width + 2.0 * layers * context * width);
  return {
      {{"model/bert base, 128, f32", GpuUnit::Milliseconds, 0, 0, "model bert_base"}, makeBert},
      {{"model/vit b/16, f32", GpuUnit::Milliseconds, 0, 0, "model vit_base"}, makeVit},
      {{"model/gpt2 small decode, 512, f32", GpuUnit::Milliseconds, 0, decodeBytes, "model gpt2_decode"}, makeDecode}};
}

} // namespace kiln::bench
