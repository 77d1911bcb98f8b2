// SPDX-License-Identifier: Apache-2.0
//
// Attention without its projections: 12 heads of width 64 in f32 and tf32, and heads of width 64 and 128 in bf16, with
// a total width of 2048.
#include "benchmarks/cuda/Library.h"

#include "attention.h"
#include "attention_tf32.h"
#include "gpu_attention.h"

namespace kiln::bench {

namespace {

template <class Handle, class Element>
using Entry = kiln_status_t (*)(const Handle *, const kiln_call_t *, std::int64_t, const Element *, const Element *,
                                const Element *, Element *);

struct Shape {
  bool isCausal;
  int heads, width, tokens;
};

template <class Handle, class Element>
GpuRun makeAttention(Gpu &gpu, const std::shared_ptr<DeviceModel<Handle>> &model, const Shape &shape,
                     Entry<Handle, Element> entry, std::size_t arenaBytes) {
  const std::size_t count = std::size_t(shape.tokens) * std::size_t(shape.heads) * std::size_t(shape.width);
  auto place = [&](const char *name) -> const Element * {
    return model->place(toElements<Element>(makeInput(name, count)));
  };
  const Element *q = place("q"), *k = place("k"), *v = place("v");
  auto *y = static_cast<Element *>(model->allocate(count * sizeof(Element)));
  return makeRun(model, gpu, arenaBytes, y, count, [=](const Handle *handle, const kiln_call_t *call) {
    return entry(handle, call, shape.tokens, q, k, v, y);
  });
}

GpuCase caseOf(const Shape &shape, const char *type, double tolerance) {
  const std::string kind = shape.isCausal ? "causal" : "full", heads = std::to_string(shape.heads),
                    width = std::to_string(shape.width), tokens = std::to_string(shape.tokens);
  // The fraction of the scores that the mask leaves.
  const double share = shape.isCausal ? (shape.tokens + 1) / (2.0 * shape.tokens) : 1;
  return {"attention/" + kind + " " + heads + "x" + width + " " + tokens + " " + type, GpuUnit::Teraflops,
          share * 4.0 * shape.tokens * shape.tokens * shape.heads * shape.width,       0,
          "attention " + kind + " " + tokens + " " + heads + " " + width + " " + type, tolerance};
}

std::shared_ptr<DeviceModel<attention_t>> floatModel() {
  static const auto functions = DeviceFunctions<attention_t>(KILN_BENCH_DEVICE_FUNCTIONS(attention));
  static const auto model = std::make_shared<DeviceModel<attention_t>>(functions, std::vector<testing::WeightShape>());
  return model;
}

std::shared_ptr<DeviceModel<attention_tf32_t>> tf32Model() {
  static const auto functions = DeviceFunctions<attention_tf32_t>(KILN_BENCH_DEVICE_FUNCTIONS(attention_tf32));
  static const auto model =
      std::make_shared<DeviceModel<attention_tf32_t>>(functions, std::vector<testing::WeightShape>());
  return model;
}

std::shared_ptr<DeviceModel<gpu_attention_t>> shortModel() {
  static const auto functions = DeviceFunctions<gpu_attention_t>(KILN_BENCH_DEVICE_FUNCTIONS(gpu_attention));
  static const auto model =
      std::make_shared<DeviceModel<gpu_attention_t>>(functions, std::vector<testing::WeightShape>());
  return model;
}

} // namespace

std::vector<GpuBenchmark> gpuAttention() {
  std::vector<GpuBenchmark> all;
  auto addFloats = [&](const Shape &shape, auto entry, std::size_t arenaBytes) {
    all.push_back({caseOf(shape, "f32", 1e-4), [=](Gpu &gpu) {
                     return makeAttention<attention_t, float>(gpu, floatModel(), shape, entry, arenaBytes);
                   }});
  };
  auto addTf32 = [&](const Shape &shape, auto entry, std::size_t arenaBytes) {
    all.push_back({caseOf(shape, "tf32", 1e-2), [=](Gpu &gpu) {
                     return makeAttention<attention_tf32_t, float>(gpu, tf32Model(), shape, entry, arenaBytes);
                   }});
  };
  auto addShort = [&](const Shape &shape, auto entry, std::size_t arenaBytes) {
    all.push_back({caseOf(shape, "bf16", 2e-2), [=](Gpu &gpu) {
                     return makeAttention<gpu_attention_t, std::uint16_t>(gpu, shortModel(), shape, entry, arenaBytes);
                   }});
  };
  for (int tokens : {1024, 4096, 8192, 16384}) {
    addShort({false, 16, 128, tokens}, gpu_attention_full_128, GPU_ATTENTION_FULL_128_ARENA_BYTES(1));
    addShort({true, 16, 128, tokens}, gpu_attention_causal_128, GPU_ATTENTION_CAUSAL_128_ARENA_BYTES(1));
    addShort({false, 32, 64, tokens}, gpu_attention_full_64, GPU_ATTENTION_FULL_64_ARENA_BYTES(1));
    addShort({true, 32, 64, tokens}, gpu_attention_causal_64, GPU_ATTENTION_CAUSAL_64_ARENA_BYTES(1));
  }
  for (int tokens : {128, 512, 2048}) {
    addFloats({false, 12, 64, tokens}, attention_full, ATTENTION_FULL_ARENA_BYTES(1));
    addFloats({true, 12, 64, tokens}, attention_causal, ATTENTION_CAUSAL_ARENA_BYTES(1));
    addTf32({false, 12, 64, tokens}, attention_tf32_full, ATTENTION_TF32_FULL_ARENA_BYTES(1));
    addTf32({true, 12, 64, tokens}, attention_tf32_causal, ATTENTION_TF32_CAUSAL_ARENA_BYTES(1));
  }
  return all;
}

} // namespace kiln::bench
