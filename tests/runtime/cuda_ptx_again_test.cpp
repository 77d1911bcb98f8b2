// SPDX-License-Identifier: Apache-2.0
// Reuse on a driver that executes PTX: images of kernels and captured graphs; and models of several devices and
// contexts in several threads at once.
#include "cuda_ptx.h"

#include <thread>

namespace {

using namespace kiln_test;

/// Returns the image that a caller would store.
std::string keep(CudaModel &made) {
  const void *image = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(kiln_cuda_image(made.model, &image, &bytes, &made.error), KILN_OK) << made.error.message;
  return {static_cast<const char *>(image), bytes};
}

void expectSession(CudaModel &made, int calls = 3) {
  std::vector<float> rows;
  for (int call = 0; call < calls; ++call) {
    ASSERT_EQ(made.run(Ids, rows), KILN_OK) << made.error.message;
    ASSERT_EQ(rows, cudaRows(Ids, call));
  }
}

TEST_F(CudaPtx, AnImageIsLoadedByTheNextModel) {
  std::string kept;
  {
    CudaModel first(data, {.device = KILN_CUDA});
    ASSERT_EQ(first.status, KILN_OK) << first.error.message;
    kept = keep(first);
    ASSERT_FALSE(kept.empty());
    EXPECT_GT(kiln_cuda_assembly_seconds(first.model), 0);
    expectSession(first);
  }
  CudaModel second(data, {.device = KILN_CUDA});
  const int64_t links = count("cuLinkCreate_v2");
  ASSERT_EQ(kiln_load_cuda_image(second.model, kept.data(), kept.size(), &second.error), KILN_OK)
      << second.error.message;
  expectSession(second);
  EXPECT_EQ(keep(second), "") << "there is nothing new";
  EXPECT_EQ(count("cuLinkCreate_v2"), links);
  EXPECT_EQ(kiln_cuda_assembly_seconds(second.model), 0);
}

TEST_F(CudaPtx, AnImageIsOfOneKindOfGpu) {
  if (!setDevices("9.0,8.6,9.0"))
    GTEST_SKIP() << "a machine has the GPUs that it has";
  CudaModel hopper(data, {.ordinal = 0}), ampere(data, {.ordinal = 1}), same(data, {.ordinal = 2});
  const std::string kept = keep(hopper);
  EXPECT_EQ(kiln_load_cuda_image(ampere.model, kept.data(), kept.size(), &ampere.error), KILN_INVALID_ARGUMENT);
  EXPECT_EQ(kiln_load_cuda_image(same.model, kept.data(), kept.size(), &same.error), KILN_OK) << same.error.message;
  for (CudaModel *made : {&hopper, &ampere, &same})
    expectSession(*made);
}

TEST_F(CudaPtx, AnImageOfWrongPtxHasAnError) {
  CudaImages[0].text = CudaImages[1].text = ".version 7.0\n.target sm_80\n.address_size 64\nnonsense\n";
  CudaModel made(data, {.device = KILN_CUDA});
  const void *image = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(kiln_cuda_image(made.model, &image, &bytes, &made.error), KILN_DEVICE_ERROR);
  EXPECT_NE(std::string(made.error.message).find("CUDA_ERROR_INVALID_PTX"), std::string::npos) << made.error.message;
  EXPECT_EQ(image, nullptr);
}

TEST_F(CudaPtx, CallsAreRecordedAndLaunched) {
  CudaModel made(data, {.device = KILN_CUDA});
  ASSERT_EQ(made.status, KILN_OK) << made.error.message;
  ASSERT_EQ(kiln_capture_entries(made.model, &made.error), KILN_OK) << made.error.message;
  expectSession(made); // host tensors
  Tensors tensors(made);
  kiln_call_t call = made.call;
  call.memory = KILN_DEVICE_POINTERS;
  ASSERT_EQ(made.run(call, Ids.size(), tensors.ids, tensors.rows), KILN_OK) << made.error.message;
  EXPECT_EQ(tensors.result(made), cudaRows(Ids, 3));
  const char *none[] = {"cuLaunchKernel",          "cuMemAlloc_v2",      "cuMemHostAlloc",
                        "cuStreamBeginCapture_v2", "cuMemcpy2DAsync_v2", "cuGraphInstantiateWithFlags",
                        "cuCtxSynchronize",        "cuStreamSynchronize"};
  std::vector<int64_t> before, after;
  for (const char *function : none)
    before.push_back(count(function));
  for (int repeat = 0; repeat < 3; ++repeat)
    ASSERT_EQ(made.run(call, Ids.size(), tensors.ids, tensors.rows), KILN_OK) << made.error.message;
  for (const char *function : none)
    after.push_back(count(function));
  EXPECT_EQ(after, before) << "a launch of the graph is all";
  EXPECT_EQ(tensors.result(made), cudaRows(Ids, 6));
  // A graph is evicted while it may be running.
  std::vector<float> rows;
  for (int i = 0; i <= KILN_MAX_CAPTURED_CALLS; ++i) {
    call.arena = made.allocate(CudaArenaBytes);
    ASSERT_EQ(kiln_zero_memory(made.model, call.arena, CudaStateBytes, nullptr), KILN_OK);
    ASSERT_EQ(made.run(call, Ids.size(), tensors.ids, tensors.rows), KILN_OK) << made.error.message;
  }
  EXPECT_EQ(tensors.result(made), cudaRows(Ids, 0));
}

/// Runs sessions of each model concurrently, in separate threads, each with an arena.
void expectSessionsAtOnce(const std::vector<CudaModel *> &models) {
  std::vector<std::thread> threads;
  for (CudaModel *made : models)
    for (int number = 0; number < 2; ++number) {
      void *arena = made->allocate(CudaArenaBytes);
      threads.emplace_back([made, arena] {
        kiln_error_t error;
        kiln_call_t call = made->call;
        call.arena = arena;
        call.error = &error;
        std::vector<float> rows(Ids.size() * CudaWidth);
        ASSERT_EQ(kiln_zero_memory(made->model, arena, CudaStateBytes, nullptr), KILN_OK);
        for (int repeat = 0; repeat < 6; ++repeat) {
          ASSERT_EQ(made->run(call, Ids.size(), Ids.data(), rows.data()), KILN_OK) << error.message;
          ASSERT_EQ(rows, cudaRows(Ids, repeat));
        }
      });
    }
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(CudaPtx, TwoDevicesInSeveralThreads) {
  if (!setDevices("9.0,8.0"))
    GTEST_SKIP() << "a machine has the GPUs that it has";
  CudaModel first(data, {.ordinal = 0}), second(data, {.ordinal = 1}), recorded(data, {.ordinal = 1});
  ASSERT_EQ(kiln_capture_entries(recorded.model, &recorded.error), KILN_OK) << recorded.error.message;
  expectSessionsAtOnce({&first, &second, &recorded});
}

TEST_F(CudaPtx, TwoModelsInTheCallersContextInSeveralThreads) {
  kiln_cuda_context_t context, current;
  ASSERT_EQ(driverCall("cuInit", 0u), 0);
  ASSERT_EQ(driverCall("cuCtxCreate_v2", &context, 0u, 0), 0);
  ASSERT_EQ(driverCall("cuCtxPopCurrent_v2", &current), 0);
  {
    CudaModel first(data, {.context = context}), second(data, {.context = context}),
        recorded(data, {.context = context});
    ASSERT_EQ(kiln_capture_entries(recorded.model, &recorded.error), KILN_OK) << recorded.error.message;
    expectSessionsAtOnce({&first, &second, &recorded});
    {
      CudaModel third(data, {.context = context}); // created and destroyed while the others live
      expectSession(third);
    }
    expectSession(first);
  }
  current = context;
  EXPECT_EQ(driverCall("cuCtxGetCurrent", &current), 0);
  EXPECT_EQ(current, nullptr);
  EXPECT_EQ(driverCall("cuCtxDestroy_v2", context), 0);
}

} // namespace
