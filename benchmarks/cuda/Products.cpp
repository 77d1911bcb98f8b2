// SPDX-License-Identifier: Apache-2.0
//
// y = x W^T at the sizes of BERT-base, GPT-2 small and Llama 8B, from one row to 4096.
#include "benchmarks/cuda/Library.h"

#include "gpu_products.h"

namespace kiln::bench {

namespace {

using Handle = gpu_products_t;

struct Product {
  const char *weight, *of;
  int columns, depth;
  kiln_status_t (*call)(const Handle *, const kiln_call_t *, std::int64_t, const float *, float *);
  std::size_t arenaBytes;
};

#define KILN_BENCH_ENTRY(entry, ENTRY) gpu_products_##entry, GPU_PRODUCTS_##ENTRY##_ARENA_BYTES(1)
const Product products[] = {
    {"out", "bert", 768, 768, KILN_BENCH_ENTRY(out, OUT)},
    {"qkv", "gpt2", 2304, 768, KILN_BENCH_ENTRY(qkv, QKV)},
    {"up", "bert", 3072, 768, KILN_BENCH_ENTRY(up, UP)},
    {"down", "bert", 768, 3072, KILN_BENCH_ENTRY(down, DOWN)},
    {"wide", "llama", 4096, 4096, KILN_BENCH_ENTRY(wide, WIDE)},
    {"wide_up", "llama", 14336, 4096, KILN_BENCH_ENTRY(wide_up, WIDE_UP)},
    {"wide_down", "llama", 4096, 14336, KILN_BENCH_ENTRY(wide_down, WIDE_DOWN)},
};
#undef KILN_BENCH_ENTRY

constexpr int rowCounts[] = {1, 4, 16, 128, 512, 4096};

GpuRun makeProduct(Gpu &gpu, const Product &product, int rows) {
  static const auto functions = DeviceFunctions<Handle>(KILN_BENCH_DEVICE_FUNCTIONS(gpu_products));
  static const auto model = std::make_shared<DeviceModel<Handle>>(
      functions, std::vector<testing::WeightShape>{GPU_PRODUCTS_WEIGHTS(KILN_BENCH_DEVICE_WEIGHT)});
  const std::size_t count = std::size_t(rows) * std::size_t(product.columns);
  const float *x = model->place(makeInput("x", std::size_t(rows) * std::size_t(product.depth)));
  auto *y = static_cast<float *>(model->allocate(count * sizeof(float)));
  return makeRun(
      model, gpu, product.arenaBytes, y, count,
      [=, &product](const Handle *handle, const kiln_call_t *call) { return product.call(handle, call, rows, x, y); });
}

} // namespace

std::vector<GpuBenchmark> gpuProducts() {
  std::vector<GpuBenchmark> all;
  for (const Product &product : products)
    for (int rows : rowCounts) {
      const std::string shape =
          std::to_string(rows) + " " + std::to_string(product.columns) + " " + std::to_string(product.depth);
      std::string name = "product/" + std::string(product.of) + " " + shape;
      GpuCase of{name + " f32", GpuUnit::Teraflops, 2.0 * rows * product.columns * product.depth, 0,
                 "product " + shape + " " + product.weight + ".weight"};
      if (rows < 16) // weights are read once
        of.bytes = 4.0 * (double(product.columns) * product.depth + double(rows) * (product.columns + product.depth));
      all.push_back({of, [&product, rows](Gpu &gpu) { return makeProduct(gpu, product, rows); }});
    }
  return all;
}

} // namespace kiln::bench
