// SPDX-License-Identifier: Apache-2.0
// The runtime on a driver that executes PTX: calls, captures, contexts, devices, threads, faults.
#include "cuda_ptx.h"

#include <thread>

namespace {

using namespace kiln_test;

TEST_F(CudaPtx, TensorsOfTheHost) {
  CudaModel made(data, {.device = KILN_CUDA});
  ASSERT_EQ(made.status, KILN_OK) << made.error.message;
  std::vector<float> rows;
  for (int call = 0; call < 3; ++call) {
    ASSERT_EQ(made.run(Ids, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(rows, cudaRows(Ids, call));
  }
}

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

// A graph of the caller, in its own stream and context, replayed.
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
    ASSERT_EQ(driverCall("cuStreamBeginCapture_v2", stream, 0), 0); // global mode: unsafe calls would fail
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

// A context of the caller in addition to the device's primary one: each model has its memory and kernels in its
// context.
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

// GPUs of different compute capabilities, each with its image.
TEST_F(CudaPtx, ModelsOnSeveralDevices) {
  if (!setDevices("9.0,8.6,7.5"))
    GTEST_SKIP() << "a machine has the GPUs that it has";
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

// A kernel reads an invalid address: the call that synchronises gets the error, and the model is unusable from then on.
TEST_F(CudaPtx, AFaultEndsTheModel) {
  CudaModel made(data, {.device = KILN_CUDA});
  ASSERT_EQ(made.status, KILN_OK) << made.error.message;
  Tensors tensors(made);
  kiln_call_t call = made.call;
  call.memory = KILN_DEVICE_POINTERS;
  void *nowhere = reinterpret_cast<void *>(uintptr_t{64});
  const kiln_status_t status = made.run(call, Ids.size(), nowhere, tensors.rows);
  EXPECT_TRUE(status == KILN_OK || status == KILN_DEVICE_LOST); // the work may run after its call returns
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
