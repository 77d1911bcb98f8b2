// SPDX-License-Identifier: Apache-2.0
//
// Norms and softmax, which move bytes and should take what a copy of as many takes; and attention of 12 heads of 64.
#include "benchmarks/cuda/Library.h"

#include "attention.h"
#include "norm.h"

namespace kiln::bench {

namespace {

using NormHandle = norm_t;
using NormEntry = kiln_status_t (*)(const NormHandle *, const kiln_call_t *, std::int64_t, const float *, float *);
using AttentionEntry = kiln_status_t (*)(const attention_t *, const kiln_call_t *, std::int64_t, const float *,
                                         const float *, const float *, float *);

std::shared_ptr<DeviceModel<NormHandle>> normModel() {
  static const auto functions = DeviceFunctions<NormHandle>(KILN_BENCH_DEVICE_FUNCTIONS(norm));
  static const auto model = std::make_shared<DeviceModel<NormHandle>>(
      functions, std::vector<testing::WeightShape>{NORM_WEIGHTS(KILN_BENCH_DEVICE_WEIGHT)});
  return model;
}

GpuBenchmark makeRows(const std::string &name, int rows, int columns, NormEntry entry, std::size_t arenaBytes) {
  const std::size_t count = std::size_t(rows) * std::size_t(columns);
  const std::string shape = std::to_string(rows) + " " + std::to_string(columns);
  return {{name + "/" + shape + " f32", GpuUnit::GigabytesPerSecond, 0, 8.0 * double(count), name + " " + shape},
          [=](Gpu &gpu) {
            const auto model = normModel();
            const float *x = model->place(makeInput("x", count));
            auto *y = static_cast<float *>(model->allocate(count * sizeof(float)));
            return makeRun(model, gpu, arenaBytes, y, count, [=](const NormHandle *handle, const kiln_call_t *call) {
              return entry(handle, call, rows, x, y);
            });
          }};
}

GpuBenchmark makeAttention(const std::string &kind, int tokens, AttentionEntry entry, std::size_t arenaBytes,
                           double share) {
  const std::size_t count = std::size_t(tokens) * 768;
  const double operations = share * 4.0 * tokens * tokens * 768;
  return {{"attention/" + kind + " 12x64 " + std::to_string(tokens) + " f32", GpuUnit::Teraflops, operations, 0,
           "attention " + kind + " " + std::to_string(tokens) + " 12"},
          [=](Gpu &gpu) {
            static const auto functions = DeviceFunctions<attention_t>(KILN_BENCH_DEVICE_FUNCTIONS(attention));
            static const auto model =
                std::make_shared<DeviceModel<attention_t>>(functions, std::vector<testing::WeightShape>());
            const float *q = model->place(makeInput("q", count)), *k = model->place(makeInput("k", count)),
                        *v = model->place(makeInput("v", count));
            auto *y = static_cast<float *>(model->allocate(count * sizeof(float)));
            return makeRun(model, gpu, arenaBytes, y, count, [=](const attention_t *handle, const kiln_call_t *call) {
              return entry(handle, call, tokens, q, k, v, y);
            });
          }};
}

} // namespace

std::vector<GpuBenchmark> gpuRows() {
  std::vector<GpuBenchmark> all;
  for (int rows : {128, 4096, 16384}) {
    all.push_back(makeRows("layer_norm", rows, 768, norm_layer_norm, NORM_LAYER_NORM_ARENA_BYTES(1)));
    all.push_back(makeRows("softmax", rows, 512, norm_softmax, NORM_SOFTMAX_ARENA_BYTES(1)));
  }
  return all;
}

std::vector<GpuBenchmark> gpuAttention() {
  std::vector<GpuBenchmark> all;
  for (int tokens : {128, 512, 2048}) {
    all.push_back(makeAttention("full", tokens, attention_full, ATTENTION_FULL_ARENA_BYTES(1), 1));
    // Those that the mask leaves.
    all.push_back(makeAttention("causal", tokens, attention_causal, ATTENTION_CAUSAL_ARENA_BYTES(1),
                                (tokens + 1) / (2.0 * tokens)));
  }
  return all;
}

} // namespace kiln::bench
