// SPDX-License-Identifier: Apache-2.0
// Weights and memory of a model, on a GPU and, where the interface is the same, on the CPU; and launch parameters.
#include "cuda_fixture.h"

namespace {

using namespace kiln_test;

using CudaMemory = CudaStub;

TEST_F(CudaMemory, BindingAgainReplacesAndFailingDoesNot) {
  CudaModel made(data);
  std::vector<float> rows;
  const std::string image = cudaImage(100);
  for (const char *function : {"cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize"}) {
    const int alive = stub->alive();
    failAt(function, 0, 999);
    EXPECT_EQ(kiln_bind_weights_from_memory(made.model, image.data(), image.size(), &made.error), KILN_DEVICE_ERROR);
    EXPECT_EQ(stub->alive(), alive);
  }
  ASSERT_EQ(made.run({2}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows({2}, 0));
  const int alive = stub->alive();
  ASSERT_EQ(kiln_bind_weights_from_memory(made.model, image.data(), image.size(), &made.error), KILN_OK);
  EXPECT_EQ(stub->alive(), alive);
  ASSERT_EQ(made.run({2}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows({2}, 1, 100));
}

TEST_F(CudaMemory, EntriesNeedWeights) {
  CudaModel made(data, {}, false);
  std::vector<float> rows;
  made.call.error = &made.error;
  EXPECT_EQ(made.run({0}, rows), KILN_WEIGHTS_NOT_BOUND);
}

// A packed file is read from the device in pieces, and is copied to the device from a memory map.
TEST_F(CudaMemory, PackedFiles) {
  const TemporaryFile file("");
  CudaModel from(data, {}, false), to(data);
  const std::string image = cudaImage(100);
  ASSERT_EQ(kiln_bind_weights_from_memory(from.model, image.data(), image.size(), &from.error), KILN_OK);
  for (const char *function : {"cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"}) {
    failAt(function, 0, 999);
    EXPECT_EQ(kiln_save_packed(from.model, file.path(), &from.error), KILN_DEVICE_ERROR) << from.error.message;
    EXPECT_EQ(kiln_bind_packed(to.model, file.path(), &to.error), KILN_FILE_MALFORMED) << "it is as empty as it was";
  }
  ASSERT_EQ(kiln_save_packed(from.model, file.path(), &from.error), KILN_OK) << from.error.message;
  std::vector<float> rows;
  const int alive = stub->alive();
  for (const char *function : {"cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize"}) {
    failAt(function, 0, 999);
    EXPECT_EQ(kiln_bind_packed(to.model, file.path(), &to.error), KILN_DEVICE_ERROR);
    EXPECT_EQ(stub->alive(), alive);
  }
  ASSERT_EQ(to.run({2}, rows), KILN_OK) << to.error.message;
  EXPECT_EQ(rows, cudaRows({2}, 0)) << "the weights that it had";
  const int loaded = stub->alive();
  ASSERT_EQ(kiln_bind_packed(to.model, file.path(), &to.error), KILN_OK) << to.error.message;
  EXPECT_EQ(stub->alive(), loaded);
  ASSERT_EQ(to.run({2}, rows), KILN_OK) << to.error.message;
  EXPECT_EQ(rows, cudaRows({2}, 1, 100));
  EXPECT_STREQ(kiln_target(to.model), "cuda");
  // The CPU variant is a different target.
  const kiln_options_t options = {.device = KILN_CPU};
  CudaModel host(data, options, false);
  EXPECT_EQ(kiln_bind_packed(host.model, file.path(), &host.error), KILN_FILE_MISMATCH);
  EXPECT_EQ(host.error.message, file.words() + "packed file: built for another target; expected x86-64-v2, got cuda");
}

/// Reads and writes rows of the table, which is stored as its placement says.
void expectRowsOfWeights(const CudaDescriptor &data) {
  CudaModel made(data);
  std::vector<float> table = cudaTable(), read(table.size());
  ASSERT_EQ(kiln_read_weight(made.model, "table", 0, CudaRows, read.data(), &made.error), KILN_OK)
      << made.error.message;
  EXPECT_EQ(read, table);
  const std::vector<float> two(2 * CudaWidth, -3);
  ASSERT_EQ(kiln_write_weight(made.model, "table", 3, 2, two.data(), &made.error), KILN_OK) << made.error.message;
  std::copy(two.begin(), two.end(), table.begin() + 3 * CudaWidth);
  ASSERT_EQ(kiln_read_weight(made.model, "table", 0, CudaRows, read.data(), nullptr), KILN_OK);
  EXPECT_EQ(read, table);
  std::fill(read.begin(), read.end(), 0);
  ASSERT_EQ(kiln_read_weight(made.model, "table", 2, 2, read.data(), nullptr), KILN_OK);
  EXPECT_TRUE(std::equal(read.begin(), read.begin() + 2 * CudaWidth, table.begin() + 2 * CudaWidth));
  EXPECT_EQ(read[2 * CudaWidth], 0);
  EXPECT_EQ(kiln_write_weight(made.model, "table", 4, 2, two.data(), nullptr), KILN_EXTENT_OUT_OF_RANGE);
}

TEST_F(CudaMemory, RowsOfWeights) {
  expectRowsOfWeights(data);
  // The table follows another weight in the packed copy, and is tiled, which the target cuda does not use today.
  kiln_placement_t placement = makePlacement(64, 0, 0, 0, 3);
  for (uint32_t tile : {0, 4}) {
    placement.tile = tile;
    data.variants[0].placements = &placement;
    data.variants[0].packed_bytes = 64 + 8 * CudaWidth * sizeof(float);
    expectRowsOfWeights(data);
  }
}

TEST_F(CudaMemory, FailuresOfRowsHaveWords) {
  CudaModel made(data);
  std::vector<float> table = cudaTable();
  failAt("cuMemcpyDtoHAsync_v2", 0, 999);
  EXPECT_EQ(kiln_read_weight(made.model, "table", 0, 1, table.data(), &made.error), KILN_DEVICE_ERROR);
  EXPECT_STREQ(made.error.message,
               "cuMemcpyDtoHAsync_v2: call failed; expected success, got CUDA_ERROR_UNKNOWN (999): unknown error");
}

// A session is the bytes of an arena: zeroing begins it, a copy forks it.
TEST_F(CudaMemory, SessionsForkWithoutTheDriversInterface) {
  CudaModel made(data);
  std::vector<float> rows;
  ASSERT_EQ(made.run({1}, rows), KILN_OK) << made.error.message;
  void *fork = made.allocate(CudaArenaBytes);
  ASSERT_EQ(kiln_copy_memory(made.model, fork, made.call.arena, CudaStateBytes, &made.error), KILN_OK);
  for (int call = 1; call < 3; ++call) {
    ASSERT_EQ(made.run({1}, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(rows, cudaRows({1}, call));
  }
  made.call.arena = fork;
  ASSERT_EQ(made.run({1}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows({1}, 1));
}

/// Checks the properties that do not depend on where the memory is.
void expectMemory(kiln_model_t *model) {
  const char text[] = "words";
  char read[sizeof text] = "";
  kiln_error_t error;
  void *one = nullptr, *two = nullptr, *none = nullptr;
  ASSERT_EQ(kiln_allocate_memory(model, sizeof text, &one, &error), KILN_OK) << error.message;
  ASSERT_EQ(kiln_allocate_memory(model, sizeof text, &two, &error), KILN_OK) << error.message;
  ASSERT_EQ(kiln_allocate_memory(model, 0, &none, &error), KILN_OK) << error.message;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(one) % KILN_ARENA_ALIGNMENT, 0u);
  EXPECT_EQ(kiln_copy_to_memory(model, one, text, sizeof text, &error), KILN_OK) << error.message;
  EXPECT_EQ(kiln_copy_memory(model, two, one, sizeof text, &error), KILN_OK) << error.message;
  EXPECT_EQ(kiln_copy_from_memory(model, read, two, sizeof text, &error), KILN_OK) << error.message;
  EXPECT_STREQ(read, text);
  EXPECT_EQ(kiln_zero_memory(model, two, 1, &error), KILN_OK) << error.message;
  EXPECT_EQ(kiln_copy_from_memory(model, read, two, 1, &error), KILN_OK) << error.message;
  EXPECT_EQ(std::memcmp(read, "\0ords", sizeof text), 0);
  EXPECT_EQ(kiln_copy_from_memory(model, read, two, 0, &error), KILN_OK) << error.message;
  EXPECT_EQ(kiln_copy_memory(model, two, nullptr, 1, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "copy of memory: null given; expected two addresses");
  EXPECT_EQ(kiln_zero_memory(nullptr, two, 1, &error), KILN_NULL_ARGUMENT);
  EXPECT_EQ(kiln_allocate_memory(model, 1, nullptr, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "allocate_memory: null given; expected a place for the memory");
  kiln_release_memory(model, one);
  kiln_release_memory(model, two);
  kiln_release_memory(model, none);
  kiln_release_memory(model, nullptr);
  kiln_release_memory(nullptr, one);
}

TEST_F(CudaMemory, IsTheModels) {
  CountingAllocator counter;
  const kiln_allocator_t functions = counter.get();
  CudaModel gpu(data, {.allocator = &functions, .device = KILN_CUDA}, false);
  CudaModel cpu(data, {.allocator = &functions, .device = KILN_CPU}, false);
  const int before = counter.Alive;
  expectMemory(gpu.model);
  EXPECT_EQ(counter.Made, before);
  expectMemory(cpu.model);
  EXPECT_EQ(counter.Made, before + 3);
  EXPECT_EQ(counter.Alive, before);
  stub->failing = "cuMemAlloc_v2", stub->result = 2;
  void *memory = stub;
  EXPECT_EQ(kiln_allocate_memory(gpu.model, 1, &memory, nullptr), KILN_OUT_OF_MEMORY);
  EXPECT_EQ(memory, nullptr);
  counter.Limit = counter.Made;
  EXPECT_EQ(kiln_allocate_memory(cpu.model, 1, &memory, nullptr), KILN_OUT_OF_MEMORY);
}

/// A model whose body only calls `launch`.
struct LaunchModel : CudaDescriptor {
  explicit LaunchModel(int (*launch)(const kiln_frame_t *)) { bodies[0].run = launch; }
};
const kiln_cuda_module_t Stranger = {CudaImages, CudaFunctions, 2, 1, nullptr};

TEST_F(CudaMemory, LaunchesAreOfTheVariantsKernels) {
  std::vector<float> rows;
  for (auto *launch :
       {+[](const kiln_frame_t *frame) { return kiln_cuda_launch(frame->worker, &Stranger, 0, 1, 1, 1, nullptr); },
        +[](const kiln_frame_t *frame) {
          return kiln_cuda_launch(frame->worker, &GatherModule, 1, 1, 1, 1, nullptr);
        }}) {
    const LaunchModel wrong(launch);
    CudaModel made(wrong);
    EXPECT_EQ(made.run({0}, rows), KILN_INTERNAL_ERROR);
    EXPECT_TRUE(
        std::string(made.error.message).starts_with("launch: unknown function; expected one of the variant's kernels"));
  }
  // An empty grid, which the driver refuses, and a copy of no rows are skipped.
  LaunchModel empty([](const kiln_frame_t *frame) {
    kiln_cuda_copy_rows(frame->worker, frame->arena, frame->arena, 0, 4, 8);
    kiln_cuda_copy_rows(frame->worker, frame->arena, frame->arena, 1, 0, 8);
    return kiln_cuda_launch(frame->worker, &GatherModule, 0, 1, 0, 1, nullptr);
  });
  CudaModel made(empty);
  EXPECT_EQ(made.run({0}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(stub->count("cuLaunchKernel") + stub->count("cuMemcpy2DAsync_v2"), 0);
}

TEST_F(CudaMemory, KernelsThatWaitAreLaunchedAsDependents) {
  CudaFunctions[0].is_dependent_launch = 1;
  bool isDependentLaunch = false;
  stub->kernels["gather"].run = [&](const StubLaunch &launch) { isDependentLaunch = launch.isDependentLaunch; };
  auto run = [&] {
    std::vector<float> rows;
    CudaModel made(data);
    EXPECT_EQ(made.run({0, 1, 2, 3}, rows), KILN_OK) << made.error.message;
    return isDependentLaunch;
  };
  EXPECT_TRUE(run());
  stub->newerPtx = "hopper"; // loads the other image, which has no dependency wait
  EXPECT_FALSE(run());
  stub->newerPtx = "";
  stub->version = 12020; // graphs of this version do not support programmatic dependent launch
  EXPECT_FALSE(run());
  CudaFunctions[0].is_dependent_launch = 0;
}

TEST_F(CudaMemory, ClustersNeedADriverThatHasThem) {
  CudaFunctions[0] = {"gather", 64, 100, 2, 0};
  StubLaunch seen;
  stub->kernels["gather"].run = [&](const StubLaunch &launch) { seen = launch; };
  std::vector<float> rows;
  CudaModel made(data);
  ASSERT_EQ(made.run({0, 1, 2, 3}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(stub->count("cuLaunchKernelEx"), 1);
  EXPECT_EQ(std::vector<unsigned>(seen.blocks, seen.blocks + 3), (std::vector<unsigned>{4, 1, 1}));
  EXPECT_EQ(seen.threads, 64u);
  EXPECT_EQ(seen.sharedBytes, 100u);
  EXPECT_EQ(seen.cluster, 2u);
  useDriver(KILN_CUDA_OLD_STUB);
  stateOf(KILN_CUDA_OLD_STUB)->kernels = stub->kernels;
  CudaModel old(data, {.flags = KILN_LOAD_KERNELS_AT_CREATE}, false);
  EXPECT_EQ(old.status, KILN_DEVICE_ERROR);
  EXPECT_STREQ(old.error.message, "kernel \"gather\": CUDA driver too old; expected one with cuLaunchKernelEx");
  CudaFunctions[0].cluster = 1;
  CudaModel without(data, {.flags = KILN_LOAD_KERNELS_AT_CREATE}, false);
  EXPECT_EQ(without.status, KILN_OK) << without.error.message;
}

} // namespace
