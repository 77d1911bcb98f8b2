// SPDX-License-Identifier: Apache-2.0
//
// Norms and softmax, which are memory-bound and should take as long as a copy of the same number of bytes.
#include "benchmarks/cuda/Library.h"

#include "norm.h"

namespace kiln::bench {

namespace {

using NormHandle = norm_t;
using NormEntry = kiln_status_t (*)(const NormHandle *, const kiln_call_t *, std::int64_t, const float *, float *);
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

} // namespace

std::vector<GpuBenchmark> gpuRows() {
  std::vector<GpuBenchmark> all;
  for (int rows : {128, 4096, 16384}) {
    all.push_back(makeRows("layer_norm", rows, 768, norm_layer_norm, NORM_LAYER_NORM_ARENA_BYTES(1)));
    all.push_back(makeRows("softmax", rows, 512, norm_softmax, NORM_SOFTMAX_ARENA_BYTES(1)));
  }
  return all;
}

} // namespace kiln::bench
