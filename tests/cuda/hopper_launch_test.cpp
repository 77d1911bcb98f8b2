// SPDX-License-Identifier: Apache-2.0
//
// A GEMM with a TMA variant for capability 9.0 in the run time, on the driver of tools/fake-cuda: which of its two
// variants a call launches, and that both give the same results.
#include "KernelLibrary.h"
#include "NumberFormats.h"
#include "ProductKernel.h"
#include "cuda/cuda_model.h"
#include "tools/fake-cuda/driver/control.h"
#include <set>

extern "C" const kiln_descriptor_t kiln_descriptor = {}; // a program's own model, which this program lacks

namespace kiln::testing {
namespace {

using Stub = int (*)(kiln_worker_t *, int32_t m, int32_t k, int32_t n, const void *x, const void *w, const void *y);
Stub stub = nullptr;

int runBody(const kiln_frame_t *frame) {
  const int64_t *e = frame->extents;
  void *const *a = frame->arguments;
  return stub(frame->worker, int32_t(e[0]), int32_t(e[1]), int32_t(e[2]), a[0], a[1], a[2]);
}

constexpr int64_t most = 40000; // bound of each dimension

/// Returns x [m, k] by w [n, k], both f16, with at most `columns` columns.
std::string productText(int64_t columns) {
  KernelText text({{1, most}, {1, most}, {1, columns}});
  Value x = text.argument(text.type({"s0", "s1"}, "f16")), w = text.argument(text.type({"s2", "s1"}, "f16"));
  const std::string to = " : f16 to f32\n";
  return text.finish(
      {text.reduce("ppr", {x, w}, text.type({"s0", "s2"}), {"a, c", "b, c", "a, b"}, "0.0 : f32",
                   "%p = arith.extf %x0" + to + "%q = arith.extf %x1" + to +
                       "%m = arith.mulf %p, %q : f32\n%s = arith.addf %y0, %m : f32\nlinalg.yield %s : f32")});
}

/// The machine. The defaults meet all requirements of the TMA variant.
struct Machine {
  const char *devices = "9.0";
  int version = 12040;
  const char *absent = "";
  const char *library = KILN_FAKE_CUDA;
};

/// The fake driver of the machine.
class Driver {
public:
  explicit Driver(const Machine &machine) : library(dlopen(machine.library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
    EXPECT_TRUE(library) << dlerror();
    setenv("KILN_CUDA_DRIVER", machine.library, 1);
    get<decltype(kiln_fake_cuda_reset)>("kiln_fake_cuda_reset")(nullptr);
    EXPECT_EQ(get<decltype(kiln_fake_cuda_set_devices)>("kiln_fake_cuda_set_devices")(machine.devices), 0);
    get<decltype(kiln_fake_cuda_set_driver_version)>("kiln_fake_cuda_set_driver_version")(machine.version);
    get<decltype(kiln_fake_cuda_set_absent)>("kiln_fake_cuda_set_absent")(machine.absent);
  }
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;
  ~Driver() {
    kiln_fake_cuda_leaks_t leaks;
    get<decltype(kiln_fake_cuda_reset)>("kiln_fake_cuda_reset")(&leaks);
    EXPECT_EQ(leaks.modules + leaks.allocations + leaks.streams + leaks.primary_references, 0U);
    unsetenv("KILN_CUDA_DRIVER");
    dlclose(library);
  }
  template <class Function> Function *get(const char *name) const {
    return reinterpret_cast<Function *>(dlsym(library, name));
  }

  /// Returns the block sizes of the launches, and records their largest number of blocks and their cluster sizes.
  std::set<unsigned> threads() const {
    std::set<unsigned> result;
    kiln_fake_cuda_call_t call;
    auto *next = get<decltype(kiln_fake_cuda_call)>("kiln_fake_cuda_call");
    for (size_t i = 0; next(i, &call) == 0; ++i)
      if (*call.kernel) {
        result.insert(call.block[0]);
        blocks = std::max(blocks, call.grid[0]);
        clusters.insert(call.cluster[0]);
      }
    return result;
  }
  mutable unsigned blocks = 0;
  mutable std::set<unsigned> clusters; // blocks per cluster

private:
  void *library;
};

/// A model whose entry is the GEMM.
class ProductModel {
public:
  explicit ProductModel(int64_t columns = most, const ScheduleConfig *config = nullptr)
      : library(compileObject(productText(columns), config).object) {
    stub = library.get<Stub>("stub");
    library.get<decltype(&kiln_cuda_launch)>("launch") = kiln_cuda_launch;
    library.get<decltype(&kiln_cuda_launch_tma)>("launch_tma") = kiln_cuda_launch_tma;
    module = library.get<const kiln_cuda_module_t *>("module");
    variant.target = "cuda";
    variant.memory_space = KILN_MEMORY_DEVICE;
    variant.bodies = &body;
    variant.backend = &kiln_cuda_backend;
    variant.modules = &module;
    variant.module_count = 1;
    const kiln_cpu_t cpu = kiln_cpu_detect();
    const kiln_options_t options = {.device = KILN_CUDA};
    EXPECT_EQ(kiln_model_create(&descriptor, &cpu, &options, &model, &error), KILN_OK) << error.message;
  }
  ProductModel(const ProductModel &) = delete;
  ProductModel &operator=(const ProductModel &) = delete;
  ~ProductModel() { kiln_destroy(model); }

  /// Tensors begin `offset` bytes after the start of their allocations.
  void check(int64_t m, int64_t n, int64_t k, size_t offset = 0);

  std::string image() {
    const void *image = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(kiln_cuda_image(model, &image, &bytes, &error), KILN_OK) << error.message;
    return {static_cast<const char *>(image), bytes};
  }
  void load(const std::string &image) {
    EXPECT_EQ(kiln_load_cuda_image(model, image.data(), image.size(), &error), KILN_OK) << error.message;
  }
  double assemblySeconds() const { return kiln_cuda_assembly_seconds(model); }

private:
  char *allocate(size_t bytes) {
    void *memory = nullptr;
    EXPECT_EQ(kiln_allocate_memory(model, bytes, &memory, &error), KILN_OK) << error.message;
    return static_cast<char *>(memory);
  }

  KernelLibrary library;
  const kiln_cuda_module_t *module = nullptr;
  kiln_body_t body = {runBody, 64, 0, 0, 0};
  static constexpr kiln_extent_t of(int symbol) { return {0, 1, 0, {symbol, -1, -1, -1}}; }
  kiln_symbol_t symbols[3] = {{"m", 1, most, 0, 0}, {"k", 1, most, 0, 0}, {"n", 1, most, 0, 0}};
  kiln_argument_t arguments[3] = {{"x", KILN_F16, 2, {of(0), of(1)}, 0, 0, 0, {}},
                                  {"w", KILN_F16, 2, {of(2), of(1)}, 0, 0, 0, {}},
                                  {"y", KILN_F32, 2, {of(0), of(2)}, 1, 0, 0, {}}};
  kiln_entry_t entry = {"product", symbols, arguments, 3, 3, nullptr, 0, 0, 0, 0, 0};
  kiln_variant_t variant = {};
  kiln_descriptor_t descriptor = {KILN_ABI_VERSION, 0, 1, 1, "product", nullptr, &entry, &variant, nullptr, 0};
  kiln_model_t *model = nullptr;
  kiln_error_t error = {};
};

void ProductModel::check(int64_t m, int64_t n, int64_t k, size_t offset) {
  const Tensor x = randomIntegers({m, k}, -8, 9), w = randomIntegers({n, k}, -8, 9);
  std::vector<char *> allocated;
  std::vector<void *> places;
  for (const Tensor *tensor : {&x, &w}) {
    std::vector<uint16_t> values;
    for (double value : tensor->values)
      values.push_back(ptx::toF16(float(value)));
    allocated.push_back(allocate(2 * values.size() + offset));
    places.push_back(allocated.back() + offset);
    EXPECT_EQ(kiln_copy_to_memory(model, places.back(), values.data(), 2 * values.size(), &error), KILN_OK);
  }
  std::vector<float> y(size_t(m * n));
  allocated.push_back(allocate(4 * y.size()));
  places.push_back(allocated.back());
  char *arena = allocate(256);
  kiln_call_t call = {};
  call.arena = arena, call.arena_bytes = 256;
  call.error = &error;
  call.memory = KILN_DEVICE_POINTERS;
  const int64_t extents[] = {m, k, n};
  ASSERT_EQ(kiln_run(model, &call, 0, extents, places.data()), KILN_OK) << error.message;
  ASSERT_EQ(kiln_copy_from_memory(model, y.data(), places.back(), 4 * y.size(), &error), KILN_OK) << error.message;
  for (int64_t i = 0; i < m * n; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < k; ++c)
      sum += x.values[i / n * k + c] * w.values[i % n * k + c];
    ASSERT_EQ(y[i], sum) << i;
  }
  allocated.push_back(arena);
  for (char *memory : allocated)
    kiln_release_memory(model, memory);
}

constexpr unsigned tmaThreads = 384, plainThreads = 256;

/// Runs two GEMMs with this K and expects launches with blocks of `threads` threads.
void expectThreads(unsigned threads, const Machine &machine, int64_t k = 72, size_t offset = 0) {
  Driver driver(machine);
  {
    ProductModel model;
    model.check(130, 264, k, offset);
    model.check(40, 8, k, offset);
  }
  EXPECT_EQ(driver.threads(), std::set{threads});
}

TEST(CudaHopperLaunch, TakesCopiesOfTensorsWhereTheyAre) { expectThreads(tmaThreads, {}); }

/// Runs two GEMMs with this K with kernels that another model has assembled.
void expectThreadsOfImage(unsigned threads, const Machine &machine, int64_t k) {
  Driver driver(machine);
  std::string image;
  {
    ProductModel model;
    image = model.image();
    EXPECT_GT(model.assemblySeconds(), 0);
  }
  {
    ProductModel model;
    model.load(image);
    model.check(130, 264, k);
    model.check(40, 8, k);
    EXPECT_EQ(model.assemblySeconds(), 0);
  }
  EXPECT_EQ(driver.threads(), std::set{threads});
}

TEST(CudaHopperLaunch, AnImageHasBothForms) {
  expectThreadsOfImage(tmaThreads, {}, 72);
  expectThreadsOfImage(plainThreads, {}, 70);
}

TEST(CudaHopperLaunch, AnImageHasOneFormWhereThereIsNoOther) {
  expectThreadsOfImage(plainThreads, {.devices = "8.0"}, 72);
  expectThreadsOfImage(plainThreads, {.absent = "cuTensorMapEncodeTiled"}, 72);
  expectThreadsOfImage(plainThreads, {.version = 11080}, 72);
}

TEST(CudaHopperLaunch, TakesTheOtherFormOfOtherTensors) {
  expectThreads(plainThreads, {}, 72, 2);
  expectThreads(plainThreads, {}, 70);
}

TEST(CudaHopperLaunch, TakesTheOtherFormOnOtherGpus) {
  for (const char *devices : {"8.0", "8.9", "10.0"})
    expectThreads(plainThreads, {.devices = devices});
}

TEST(CudaHopperLaunch, TakesTheOtherFormWithDriversThatLackIt) {
  expectThreads(plainThreads, {.absent = "cuTensorMapEncodeTiled"});
  expectThreads(plainThreads, {.library = KILN_FAKE_CUDA_OLD}); // has no such symbol
  expectThreads(plainThreads, {.version = 11080});              // supports only an older PTX version
}

TEST(CudaHopperLaunch, HasNoMoreBlocksThanMultiprocessors) {
  const ScheduleConfig config{{"wgmma_bm", 128}, {"wgmma_bn", 64}, {"wgmma_groups", 2}, {"wgmma_split", 1}};
  Driver driver(Machine{});
  {
    ProductModel model(64, &config);
    model.check(17000, 8, 8); // 133 row tiles
  }
  EXPECT_EQ(driver.threads(), std::set{tmaThreads});
  EXPECT_EQ(driver.blocks, 132U);
}

TEST(CudaHopperLaunch, LaunchesClusters) {
  const ScheduleConfig config{
      {"wgmma_cluster", 2}, {"wgmma_split", 1}, {"wgmma_bm", 64}, {"wgmma_bn", 64}, {"wgmma_groups", 1}};
  Driver driver(Machine{});
  {
    ProductModel model(64, &config);
    model.check(100, 8, 72);
    EXPECT_EQ(driver.threads(), std::set{256U});
    EXPECT_EQ(driver.blocks, 2U);
    model.check(130, 64, 72); // three row tiles, for two clusters
    driver.threads();
    EXPECT_EQ(driver.blocks, 4U);
    model.check(64 * 133, 8, 8);
  }
  driver.threads();
  EXPECT_EQ(driver.blocks, 132U);
  EXPECT_EQ(driver.clusters, std::set{2U});
}

TEST(CudaHopperLaunch, LaunchesBlocksThatShareK) {
  const ScheduleConfig config{{"wgmma_split", 4}, {"wgmma_bm", 64}, {"wgmma_bn", 64}, {"wgmma_groups", 1}};
  Driver driver(Machine{});
  {
    ProductModel model(64, &config);
    model.check(100, 8, 584);
    EXPECT_EQ(driver.threads(), std::set{256U});
    EXPECT_EQ(driver.blocks, 8U);
    model.check(64 * 34, 8, 72); // one tile more than clusters
  }
  driver.threads();
  EXPECT_EQ(driver.blocks, 132U);
  EXPECT_EQ(driver.clusters, std::set{4U});
}

} // namespace
} // namespace kiln::testing
