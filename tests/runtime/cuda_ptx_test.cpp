// SPDX-License-Identifier: Apache-2.0
// The run time on a driver that executes PTX: the one of tests/cuda_driver, or what the environment's
// KILN_TEST_CUDA_DRIVER names, such as libcuda.so.1 on a machine with a GPU.
#include "cuda_driver.h"
#include "cuda_support.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <thread>

namespace {

using namespace kiln_test;

const char Ptx[] = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry gather(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u64 p4, .param .u32 p5)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %rd<12>;
  .reg .f32 %f<4>;
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p, %r1, 4;
  @%p bra DONE;
  mov.u32 %r2, %ctaid.x;
  ld.param.u64 %rd1, [p0];
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r3, [%rd1];
  max.s32 %r3, %r3, 0;
  min.s32 %r3, %r3, 4;
  shl.b32 %r4, %r3, 2;
  add.s32 %r4, %r4, %r1;
  ld.param.u64 %rd3, [p1];
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd3, %rd3, %rd4;
  ld.global.f32 %f1, [%rd3];
  ld.param.u64 %rd5, [p2];
  mul.wide.u32 %rd6, %r1, 4;
  add.s64 %rd5, %rd5, %rd6;
  ld.global.f32 %f2, [%rd5];
  add.f32 %f1, %f1, %f2;
  ld.param.u64 %rd7, [p3];
  ld.global.f32 %f3, [%rd7];
  add.f32 %f1, %f1, %f3;
  shl.b32 %r5, %r2, 3;
  add.s32 %r5, %r5, %r1;
  ld.param.u64 %rd8, [p4];
  mul.wide.u32 %rd9, %r5, 4;
  add.s64 %rd8, %rd8, %rd9;
  st.global.f32 [%rd8], %f1;
DONE:
  ret;
}
.visible .entry count(.param .u64 p0, .param .u64 p1)
{
  .reg .b64 %rd<3>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [p0];
  ld.param.u64 %rd2, [p1];
  ld.global.f32 %f1, [%rd1];
  add.f32 %f1, %f1, 0f3F800000;
  st.global.f32 [%rd2], %f1;
  ld.global.f32 %f2, [%rd2];
  st.global.f32 [%rd1], %f2;
  ret;
}
)";

class CudaPtx : public testing::Test {
protected:
  CudaDescriptor data;
  kiln_cuda_image_t before[2] = {CudaImages[0], CudaImages[1]};
  void *driver = nullptr;

  void SetUp() override {
    const char *wanted = getenv("KILN_TEST_CUDA_DRIVER");
    const char *path = wanted ? wanted : KILN_FAKE_CUDA;
    setenv("KILN_CUDA_DRIVER", path, 1);
    driver = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    ASSERT_NE(driver, nullptr) << dlerror();
    CudaImages[0].text = CudaImages[1].text = Ptx;
    CudaFunctions[0] = {"gather", 32, 0, 0, 0};
  }
  void TearDown() override {
    if (void *alive = dlsym(driver, "kiln_fake_cuda_alive")) {
      struct {
        unsigned counts[10];
        uint64_t bytes;
        unsigned orphans;
      } left;
      reinterpret_cast<void (*)(void *)>(alive)(&left);
      EXPECT_EQ(std::vector<unsigned>(left.counts, left.counts + 10), std::vector<unsigned>(10)) << "not given back";
      EXPECT_EQ(left.orphans, 0u) << "went with its context";
    }
    CudaImages[0] = before[0];
    CudaImages[1] = before[1];
    dlclose(driver);
    unsetenv("KILN_CUDA_DRIVER");
  }
  template <class... Parameters> int driverCall(const char *name, Parameters... parameters) {
    auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(driver, name));
    EXPECT_NE(function, nullptr) << name;
    return function ? function(parameters...) : -1;
  }
};

const std::vector<int32_t> Ids = {4, 0, 3, 1, 1};

TEST_F(CudaPtx, TensorsOfTheHost) {
  CudaModel made(data, {.device = KILN_CUDA});
  ASSERT_EQ(made.status, KILN_OK) << made.error.message;
  std::vector<float> rows;
  for (int call = 0; call < 3; ++call) {
    ASSERT_EQ(made.run(Ids, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(rows, cudaRows(Ids, call));
  }
}

/// Tensors on the device, and what is there after it.
struct Tensors {
  void *ids, *rows;

  explicit Tensors(CudaModel &model)
      : ids(model.allocate(sizeof(int32_t) * CudaMaxTokens)),
        rows(model.allocate(sizeof(float) * CudaMaxTokens * CudaWidth)) {
    EXPECT_EQ(kiln_copy_to_memory(model.model, ids, Ids.data(), sizeof(int32_t) * Ids.size(), nullptr), KILN_OK);
  }
  std::vector<float> result(CudaModel &model) {
    std::vector<float> values(Ids.size() * CudaWidth);
    EXPECT_EQ(kiln_copy_from_memory(model.model, values.data(), rows, values.size() * sizeof(float), nullptr), KILN_OK);
    return values;
  }
};

TEST_F(CudaPtx, TensorsOfTheDeviceInTheModelsStream) {
  CudaModel made(data, {.device = KILN_CUDA, .flags = KILN_LOAD_KERNELS_AT_CREATE});
  ASSERT_EQ(made.status, KILN_OK) << made.error.message;
  Tensors tensors(made);
  made.call.memory = KILN_DEVICE_POINTERS;
  for (int call = 0; call < 3; ++call) {
    ASSERT_EQ(made.run(made.call, Ids.size(), tensors.ids, tensors.rows), KILN_OK) << made.error.message;
    EXPECT_EQ(tensors.result(made), cudaRows(Ids, call)) << "copies wait for the model's stream";
  }
}

// A graph of the caller's, in its own stream and context, replayed.
TEST_F(CudaPtx, ACallIsCaptured) {
  kiln_cuda_context_t context;
  kiln_cuda_queue_t stream;
  void *graph, *executable;
  ASSERT_EQ(driverCall("cuInit", 0u), 0);
  ASSERT_EQ(driverCall("cuDevicePrimaryCtxRetain", &context, 0), 0);
  ASSERT_EQ(driverCall("cuCtxPushCurrent_v2", context), 0);
  ASSERT_EQ(driverCall("cuStreamCreate", &stream, 1u), 0);
  {
    CudaModel made(data, {.device = KILN_CUDA, .context = context});
    ASSERT_EQ(made.status, KILN_OK) << made.error.message;
    Tensors tensors(made);
    made.call.memory = KILN_DEVICE_POINTERS;
    made.call.stream = stream;
    ASSERT_EQ(made.run(made.call, Ids.size(), tensors.ids, tensors.rows), KILN_OK) << made.error.message;
    ASSERT_EQ(driverCall("cuStreamSynchronize", stream), 0);
    EXPECT_EQ(tensors.result(made), cudaRows(Ids, 0));
    ASSERT_EQ(driverCall("cuStreamBeginCapture_v2", stream, 0), 0); // globally: no call of the model may be unsafe
    ASSERT_EQ(made.run(made.call, Ids.size(), tensors.ids, tensors.rows), KILN_OK) << made.error.message;
    ASSERT_EQ(driverCall("cuStreamEndCapture", stream, &graph), 0);
    ASSERT_EQ(driverCall("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
    for (int launch = 1; launch < 4; ++launch) {
      ASSERT_EQ(driverCall("cuGraphLaunch", executable, stream), 0);
      ASSERT_EQ(driverCall("cuStreamSynchronize", stream), 0);
      EXPECT_EQ(tensors.result(made), cudaRows(Ids, launch));
    }
    EXPECT_EQ(driverCall("cuGraphExecDestroy", executable), 0);
    EXPECT_EQ(driverCall("cuGraphDestroy", graph), 0);
  }
  EXPECT_EQ(driverCall("cuStreamDestroy_v2", stream), 0);
  kiln_cuda_context_t current;
  EXPECT_EQ(driverCall("cuCtxPopCurrent_v2", &current), 0);
  EXPECT_EQ(current, context);
  EXPECT_EQ(driverCall("cuDevicePrimaryCtxRelease_v2", 0), 0);
}

// A context of the caller's own beside the device's primary one: each model's memory and kernels are its context's.
TEST_F(CudaPtx, ModelsInSeveralContexts) {
  CudaModel primary(data, {.device = KILN_CUDA});
  ASSERT_EQ(primary.status, KILN_OK) << primary.error.message;
  kiln_cuda_context_t context, current;
  ASSERT_EQ(driverCall("cuCtxCreate_v2", &context, 0u, 0), 0);
  ASSERT_EQ(driverCall("cuCtxPopCurrent_v2", &current), 0);
  {
    CudaModel own(data, {.device = KILN_CUDA, .context = context});
    ASSERT_EQ(own.status, KILN_OK) << own.error.message;
    std::vector<float> rows;
    for (int call = 0; call < 2; ++call)
      for (CudaModel *made : {&primary, &own}) {
        ASSERT_EQ(made->run(Ids, rows), KILN_OK) << made->error.message;
        EXPECT_EQ(rows, cudaRows(Ids, call));
      }
  }
  EXPECT_EQ(driverCall("cuCtxDestroy_v2", context), 0);
}

// On GPUs of different capabilities, each with its image.
TEST_F(CudaPtx, ModelsOnSeveralDevices) {
  void *reset = dlsym(driver, "kiln_fake_cuda_reset"), *devices = dlsym(driver, "kiln_fake_cuda_set_devices");
  if (!reset || !devices)
    GTEST_SKIP() << "a machine has the GPUs that it has";
  reinterpret_cast<void (*)(void *)>(reset)(nullptr);
  ASSERT_EQ(reinterpret_cast<int (*)(const char *)>(devices)("9.0,8.6,7.5"), 0);
  {
    CudaModel hopper(data, {.ordinal = 0}), ampere(data, {.ordinal = 1}), turing(data, {.ordinal = 2}, false);
    EXPECT_EQ(kiln_device(turing.model), KILN_CPU);
    std::vector<float> rows;
    for (int call = 0; call < 2; ++call)
      for (CudaModel *made : {&hopper, &ampere}) {
        ASSERT_EQ(kiln_device(made->model), KILN_CUDA);
        ASSERT_EQ(made->run(Ids, rows), KILN_OK) << made->error.message;
        EXPECT_EQ(rows, cudaRows(Ids, call));
      }
  }
}

TEST_F(CudaPtx, FromSeveralThreads) {
  CudaModel made(data, {.device = KILN_CUDA});
  ASSERT_EQ(made.status, KILN_OK) << made.error.message;
  void *arenas[3];
  for (void *&arena : arenas)
    arena = made.allocate(CudaArenaBytes);
  std::vector<std::thread> threads;
  for (void *arena : arenas)
    threads.emplace_back([&made, arena] {
      kiln_error_t error;
      kiln_call_t call = made.call;
      call.arena = arena;
      call.error = &error;
      std::vector<float> rows(Ids.size() * CudaWidth);
      ASSERT_EQ(kiln_zero_memory(made.model, arena, CudaStateBytes, nullptr), KILN_OK);
      for (int repeat = 0; repeat < 10; ++repeat) {
        ASSERT_EQ(made.run(call, Ids.size(), Ids.data(), rows.data()), KILN_OK) << error.message;
        ASSERT_EQ(rows, cudaRows(Ids, repeat));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

// A kernel reads where nothing is: the call that waits is told, and the model is of no use from then on.
TEST_F(CudaPtx, AFaultEndsTheModel) {
  CudaModel made(data, {.device = KILN_CUDA});
  ASSERT_EQ(made.status, KILN_OK) << made.error.message;
  Tensors tensors(made);
  kiln_call_t call = made.call;
  call.memory = KILN_DEVICE_POINTERS;
  void *nowhere = reinterpret_cast<void *>(uintptr_t{64});
  const kiln_status_t status = made.run(call, Ids.size(), nowhere, tensors.rows);
  EXPECT_TRUE(status == KILN_OK || status == KILN_DEVICE_LOST); // work may be done later than its call
  float row[CudaWidth];
  EXPECT_EQ(kiln_copy_from_memory(made.model, row, tensors.rows, sizeof row, &made.error), KILN_DEVICE_LOST);
  EXPECT_NE(std::string(made.error.message), "");
  std::vector<float> rows;
  EXPECT_EQ(made.run(Ids, rows), KILN_DEVICE_LOST);
}

TEST_F(CudaPtx, PtxThatIsWrongHasTheAssemblersWords) {
  CudaImages[0].text = CudaImages[1].text = ".version 7.0\n.target sm_80\n.address_size 64\nnonsense\n";
  CudaModel made(data, {.device = KILN_CUDA, .flags = KILN_LOAD_KERNELS_AT_CREATE}, false);
  EXPECT_EQ(made.status, KILN_DEVICE_ERROR);
  EXPECT_NE(std::string(made.error.message).find("CUDA_ERROR_INVALID_PTX"), std::string::npos) << made.error.message;
}

} // namespace
