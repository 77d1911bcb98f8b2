// SPDX-License-Identifier: Apache-2.0
//
// y = x W^T at the sizes of BERT-base, GPT-2 small and Llama 8B, from one row to 4096 rows, and 8192 x 8192 x 8192.
#include "benchmarks/cuda/Library.h"

#include "gpu_products.h"
#include "gpu_products_bf16.h"
#include "gpu_products_tf32.h"

namespace kiln::bench {

namespace {

template <class Handle, class Element> struct Product {
  const char *weight, *of;
  int columns, depth;
  kiln_status_t (*call)(const Handle *, const kiln_call_t *, std::int64_t, const Element *, Element *);
  std::size_t arenaBytes;
  std::vector<int> rows;
};

const std::vector<int> fewToMany = {1, 4, 16, 128, 512, 4096};

/// The GEMMs of a library with one element type.
template <class Handle, class Element> struct Products {
  const char *type;
  double tolerance; // relative to the largest value
  DeviceFunctions<Handle> functions;
  std::vector<testing::WeightShape> weights;
  std::vector<Product<Handle, Element>> products;
  std::shared_ptr<DeviceModel<Handle>> model; // created by the first run

  GpuRun makeRun(Gpu &gpu, const Product<Handle, Element> &product, int rows) {
    if (!model)
      model = std::make_shared<DeviceModel<Handle>>(functions, weights);
    const std::size_t count = std::size_t(rows) * std::size_t(product.columns);
    const Element *x =
        model->place(toElements<Element>(makeInput("x", std::size_t(rows) * std::size_t(product.depth))));
    auto *y = static_cast<Element *>(model->allocate(count * sizeof(Element)));
    return bench::makeRun(model, gpu, product.arenaBytes, y, count, [=](const Handle *handle, const kiln_call_t *call) {
      return product.call(handle, call, rows, x, y);
    });
  }
};

#define KILN_BENCH_PRODUCT(name, NAME, entry, ENTRY, weight, of, columns, depth, rows)                                 \
  {#weight, of, columns, depth, name##_##entry, NAME##_##ENTRY##_ARENA_BYTES(1), rows}
#define KILN_BENCH_PRODUCTS(name, NAME, Element, type, tolerance)                                                      \
  Products<name##_t, Element> {                                                                                        \
    type, tolerance, KILN_BENCH_DEVICE_FUNCTIONS(name), {NAME##_WEIGHTS(KILN_BENCH_DEVICE_WEIGHT)},                    \
        {                                                                                                              \
            KILN_BENCH_PRODUCT(name, NAME, out, OUT, out, "bert", 768, 768, fewToMany),                                \
            KILN_BENCH_PRODUCT(name, NAME, qkv, QKV, qkv, "gpt2", 2304, 768, fewToMany),                               \
            KILN_BENCH_PRODUCT(name, NAME, ragged, RAGGED, qkv, "gpt2", 2304, 768, {1024}),                            \
            KILN_BENCH_PRODUCT(name, NAME, up, UP, up, "bert", 3072, 768, fewToMany),                                  \
            KILN_BENCH_PRODUCT(name, NAME, down, DOWN, down, "bert", 768, 3072, fewToMany),                            \
            KILN_BENCH_PRODUCT(name, NAME, wide, WIDE, wide, "llama", 4096, 4096, fewToMany),                          \
            KILN_BENCH_PRODUCT(name, NAME, wide_up, WIDE_UP, wide_up, "llama", 14336, 4096, fewToMany),                \
            KILN_BENCH_PRODUCT(name, NAME, wide_down, WIDE_DOWN, wide_down, "llama", 4096, 14336, fewToMany),          \
            KILN_BENCH_PRODUCT(name, NAME, square, SQUARE, square, "square", 8192, 8192, {8192}),                      \
        },                                                                                                             \
        nullptr                                                                                                        \
  }

template <class Handle, class Element>
void add(std::vector<GpuBenchmark> &all, const std::shared_ptr<Products<Handle, Element>> &products) {
  for (const Product<Handle, Element> &product : products->products)
    for (int rows : product.rows) {
      const double columns = product.columns, depth = product.depth;
      const std::string shape =
          std::to_string(rows) + " " + std::to_string(product.columns) + " " + std::to_string(product.depth);
      GpuCase of{"product/" + std::string(product.of) + " " + shape + " " + products->type,
                 GpuUnit::Teraflops,
                 2.0 * rows * columns * depth,
                 0,
                 "product " + shape + " " + product.weight + ".weight " + products->type,
                 products->tolerance};
      if (rows < 16) // memory-bound: the weights are read once
        of.bytes = sizeof(Element) * (columns * depth + rows * (columns + depth));
      all.push_back({of, [=, &product](Gpu &gpu) { return products->makeRun(gpu, product, rows); }});
    }
}

} // namespace

std::vector<GpuBenchmark> gpuProducts() {
  std::vector<GpuBenchmark> all;
  auto addAll = [&](auto products) { add(all, std::make_shared<decltype(products)>(std::move(products))); };
  addAll(KILN_BENCH_PRODUCTS(gpu_products_bf16, GPU_PRODUCTS_BF16, std::uint16_t, "bf16", 1e-2));
  addAll(KILN_BENCH_PRODUCTS(gpu_products_tf32, GPU_PRODUCTS_TF32, float, "tf32", 1e-2));
  addAll(KILN_BENCH_PRODUCTS(gpu_products, GPU_PRODUCTS, float, "f32", 1e-4));
  return all;
}

} // namespace kiln::bench
