// SPDX-License-Identifier: Apache-2.0
// Creating a model on a GPU: the chosen variant, the error messages of refusals, and that a failure of any driver call
// leaks nothing.
#include "cuda_fixture.h"

namespace {

using namespace kiln_test;

using CudaCreate = CudaStub;

TEST_F(CudaCreate, TakesTheGpuWhereThereIsOne) {
  CudaModel any(data), cuda(data, {.device = KILN_CUDA}), cpu(data, {.device = KILN_CPU}, false);
  ASSERT_EQ(any.status, KILN_OK) << any.error.message;
  EXPECT_EQ(kiln_device(any.model), KILN_CUDA);
  EXPECT_EQ(kiln_device(cuda.model), KILN_CUDA);
  EXPECT_EQ(kiln_device(cpu.model), KILN_CPU);
  EXPECT_EQ(kiln_device(nullptr), KILN_ANY_DEVICE);
}

// The conditions under which a machine has no usable GPU: the next variant is chosen, unless the caller requires a GPU.
TEST_F(CudaCreate, GoesOnWithTheCpuWhereThereIsNoGpu) {
  const struct {
    const char *driver;
    int initResult, devices, major;
    const char *message;
  } cases[] = {
      {"/nowhere/libcuda.so.1", 0, 1, 9,
       "CUDA driver: not found; expected one, got none: /nowhere/libcuda.so.1: cannot open shared object file: No such "
       "file or directory"},
      {"libm.so.6", 0, 1, 9, "CUDA driver: function missing; expected cuInit in \"libm.so.6\""},
      {KILN_CUDA_STUB, 100, 1, 9,
       "CUDA driver: start failed; expected success, got CUDA_ERROR_NO_DEVICE (100): no description"},
      {KILN_CUDA_STUB, 0, 0, 9, "GPU: wrong ordinal; expected one that the driver knows, got 0 and 0 GPUs"},
      {KILN_CUDA_STUB, 0, 1, 7,
       "model \"gathering\": unsupported GPU; expected compute capability 8.0 or later, got 7.0"},
  };
  for (const auto &test : cases) {
    useDriver(test.driver);
    stub->initResult = test.initResult;
    stub->devices = test.devices;
    stub->major = test.major;
    CudaModel any(data, {}, false), cuda(data, {.device = KILN_CUDA}, false);
    EXPECT_EQ(any.status, KILN_OK) << any.error.message;
    EXPECT_STREQ(any.error.message, "");
    EXPECT_EQ(kiln_device(any.model), KILN_CPU);
    EXPECT_EQ(cuda.status, KILN_NO_DEVICE);
    EXPECT_STREQ(cuda.error.message, test.message);
    EXPECT_EQ(cuda.model, nullptr);
    // The same if the library has no other variant.
    CudaDescriptor alone;
    alone.descriptor.variant_count = 1;
    CudaModel none(alone, {}, false);
    EXPECT_EQ(none.status, KILN_NO_DEVICE);
    EXPECT_STREQ(none.error.message, test.message);
  }
}

TEST_F(CudaCreate, OrdinalsAreTheDrivers) {
  stub->devices = 2;
  CudaModel second(data, {.ordinal = 1});
  EXPECT_EQ(stub->taken, std::vector{1});
  for (int ordinal : {-1, 2}) {
    CudaModel none(data, {.device = KILN_CUDA, .ordinal = ordinal}, false);
    EXPECT_EQ(none.status, KILN_NO_DEVICE);
  }
}

// An image may be for one compute capability only, such as sm_90a; the others also run on later ones.
TEST_F(CudaCreate, TakesTheBestImageThatFits) {
  const struct {
    int major, minor;
    const char *image;
  } cases[] = {{8, 0, "ampere"}, {8, 9, "ampere"}, {9, 0, "hopper"}, {10, 0, "ampere"}};
  for (const auto &test : cases) {
    stub->major = test.major;
    stub->minor = test.minor;
    stub->loaded.clear();
    CudaModel made(data, {.flags = KILN_LOAD_KERNELS_AT_CREATE});
    EXPECT_EQ(made.status, KILN_OK) << made.error.message;
    EXPECT_EQ(stub->loaded, (std::vector<std::string>(2, test.image))) << test.major << "." << test.minor;
  }
}

TEST_F(CudaCreate, LoadsKernelsOnlyIfAsked) {
  CudaModel lazy(data);
  EXPECT_EQ(stub->modules, 0);
  std::vector<float> rows;
  ASSERT_EQ(lazy.run({1}, rows), KILN_OK) << lazy.error.message;
  EXPECT_EQ(stub->modules, 2);
  ASSERT_EQ(lazy.run({1}, rows), KILN_OK) << lazy.error.message;
  EXPECT_EQ(stub->modules, 2);
}

// A driver that does not support the newest PTX version uses an image of an older one.
TEST_F(CudaCreate, GoesOnWithAnOlderImage) {
  stub->newerPtx = "hopper";
  CudaModel made(data, {.flags = KILN_LOAD_KERNELS_AT_CREATE});
  EXPECT_EQ(stub->loaded, (std::vector<std::string>(2, "ampere")));
}

TEST_F(CudaCreate, SaysWhatTheAssemblerSays) {
  stub->log = "ptxas application ptx input, line 7; error\nand more";
  CudaModel made(data, {.flags = KILN_LOAD_KERNELS_AT_CREATE}, false);
  EXPECT_EQ(made.status, KILN_DEVICE_ERROR);
  EXPECT_TRUE(
      std::string(made.error.message)
          .ends_with("\": driver cannot assemble it; expected success, got CUDA_ERROR_INVALID_PTX: ptxas application "
                     "ptx input, line 7; error"))
      << made.error.message;
}

// The attribute is set also for sizes below the default limit, since the code's static shared memory counts too.
TEST_F(CudaCreate, AsksForSharedMemory) {
  CudaFunctions[0].shared_bytes = 48 * 1024;
  CudaModel made(data, {.flags = KILN_LOAD_KERNELS_AT_CREATE});
  EXPECT_EQ(stub->sharedBytes, (std::map<std::string, int>{{"gather", 48 * 1024}}));
}

TEST_F(CudaCreate, TheCallersContextStaysTheCallers) {
  contexts->clear();
  {
    CudaModel made(data, {.context = callers});
    std::vector<float> rows;
    EXPECT_EQ(made.run({2, 1}, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(rows, cudaRows({2, 1}, 0));
    EXPECT_TRUE(contexts->empty());
  }
  EXPECT_EQ(stub->count("cuDevicePrimaryCtxRetain"), 0);
  contexts->assign(1, callers);
}

// Each driver function in turn fails, until create and bind_weights succeed.
TEST_F(CudaCreate, WhateverFailsLeavesNothing) {
  const std::string image = cudaImage();
  CountingAllocator counter;
  const kiln_allocator_t functions = counter.get();
  int failures = 0;
  for (bool isDone = false; !isDone; ++failures) {
    failAt("*", failures, 999);
    CudaModel made(data, {.allocator = &functions, .device = KILN_CUDA, .flags = KILN_LOAD_KERNELS_AT_CREATE}, false);
    if (made.status) {
      EXPECT_NE(std::string(made.error.message).find("CUDA_ERROR_UNKNOWN"), std::string::npos) << made.error.message;
      EXPECT_EQ(made.status, failures == 0 ? KILN_NO_DEVICE : KILN_DEVICE_ERROR) << made.error.message;
      EXPECT_EQ(counter.Alive, 0);
    } else {
      kiln_status_t bound = kiln_bind_weights_from_memory(made.model, image.data(), image.size(), &made.error);
      isDone = stub->failing != "";
      stub->failing.clear();
      EXPECT_EQ(bound, isDone ? KILN_OK : KILN_DEVICE_ERROR) << made.error.message;
      EXPECT_EQ(counter.Alive, 2) << "the model and its state";
    }
    kiln_destroy(made.model);
    made.model = nullptr;
    EXPECT_EQ(stub->alive(), 0) << failures;
    EXPECT_EQ(*contexts, std::vector{callers}) << failures;
  }
  EXPECT_GT(failures, 20);
}

TEST_F(CudaCreate, MemoryThatTheAllocatorLacks) {
  CountingAllocator counter;
  const kiln_allocator_t functions = counter.get();
  for (counter.Limit = 0; counter.Limit < 2; ++counter.Limit) {
    counter.Made = 0;
    CudaModel made(data, {.allocator = &functions}, false);
    EXPECT_EQ(made.status, KILN_OUT_OF_MEMORY);
    EXPECT_EQ(counter.Alive, 0);
  }
}

TEST(CreateOn, RefusesOptionsOfALaterVersion) {
  kiln_model_t *model = reinterpret_cast<kiln_model_t *>(1);
  kiln_error_t error;
  kiln_options_t options = {.device = static_cast<kiln_device_t>(3)};
  EXPECT_EQ(kiln_create_on(nullptr, &model, &error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(error.message, "create_on: null given; expected options");
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(kiln_create_on(&options, &model, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "create_on: unknown device; expected 0 to 2, got 3");
  options = {.flags = 4};
  EXPECT_EQ(kiln_create_on(&options, &model, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "create_on: unknown flags; expected 1, 2 or both, got 4");
  options = {};
  options.reserved[0] = &model;
  EXPECT_EQ(kiln_create_on(&options, &model, &error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "create_on: reserved option set; expected null, got a pointer in field 0");
  options = {.device = KILN_CPU};
  ASSERT_EQ(kiln_create_on(&options, &model, &error), KILN_OK);
  EXPECT_EQ(kiln_device(model), KILN_CPU);
  const std::string image = makeImage(testWeights());
  EXPECT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_OK) << error.message;
  kiln_destroy(model);
  options = {.device = KILN_CUDA};
  EXPECT_EQ(kiln_create_on(&options, &model, &error), KILN_NO_DEVICE);
}

} // namespace
