// SPDX-License-Identifier: Apache-2.0
// Calls of a model on a GPU: host and device tensors, graphs of the caller, refusals, and driver errors, some of which
// make the model unusable.
#include "cuda_fixture.h"

#include <thread>

namespace {

using namespace kiln_test;

using CudaRun = CudaStub;
const std::vector<int32_t> Ids = {4, 0, 3};

/// A stream of the test, and tensors on the device.
struct DeviceCall {
  StubStream stream;
  void *ids, *rows;
  kiln_call_t options;

  explicit DeviceCall(CudaModel &model) : options(model.call) {
    ids = model.allocate(sizeof(int32_t) * CudaMaxTokens);
    rows = model.allocate(sizeof(float) * CudaMaxTokens * CudaWidth);
    options.stream = &stream;
    options.memory = KILN_DEVICE_POINTERS;
    EXPECT_EQ(kiln_copy_to_memory(model.model, ids, Ids.data(), sizeof(int32_t) * Ids.size(), nullptr), KILN_OK);
  }
  kiln_status_t run(CudaModel &model) { return model.run(options, static_cast<int64_t>(Ids.size()), ids, rows); }
  std::vector<float> result(CudaModel &model) {
    std::vector<float> values(Ids.size() * CudaWidth);
    EXPECT_EQ(kiln_copy_from_memory(model.model, values.data(), rows, values.size() * sizeof(float), nullptr), KILN_OK);
    return values;
  }
};

TEST_F(CudaRun, TensorsOfTheHost) {
  CudaModel made(data);
  std::vector<float> rows;
  for (int call = 0; call < 3; ++call) {
    made.error = {KILN_FILE_ERROR, "from before"};
    ASSERT_EQ(made.run(Ids, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(rows, cudaRows(Ids, call)) << "the state counts calls";
    EXPECT_STREQ(made.error.message, "");
  }
  const std::vector<int32_t> most(CudaMaxTokens, 2);
  ASSERT_EQ(made.run(most, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows(most, 3));
}

// It is not allocated at create, when it is unknown whether there will be such a call, unless the flags request
// everything at create.
TEST_F(CudaRun, PinnedMemoryComesWithTheFirstCallThatNeedsIt) {
  CudaModel made(data), prepared(data, {.flags = KILN_LOAD_KERNELS_AT_CREATE});
  EXPECT_EQ(stub->pinned, 1) << "that of the one that is prepared";
  DeviceCall call(made);
  ASSERT_EQ(call.run(made), KILN_OK) << made.error.message;
  EXPECT_EQ(stub->pinned, 1);
  std::vector<float> rows;
  failAt("cuMemHostAlloc", 0, 2);
  EXPECT_EQ(made.run(Ids, rows), KILN_OUT_OF_MEMORY);
  for (int repeat = 1; repeat < 3; ++repeat) {
    ASSERT_EQ(made.run(Ids, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(rows, cudaRows(Ids, repeat));
    EXPECT_EQ(stub->pinned, 2);
  }
  stub->calls.clear();
  ASSERT_EQ(prepared.run(Ids, rows), KILN_OK) << prepared.error.message;
  EXPECT_EQ(stub->calls,
            (std::vector<std::string>{"cuCtxPushCurrent_v2", "cuStreamIsCapturing", "cuMemcpyHtoDAsync_v2",
                                      "cuLaunchKernel", "cuMemcpy2DAsync_v2", "cuLaunchKernel", "cuMemcpyDtoHAsync_v2",
                                      "cuStreamSynchronize", "cuCtxPopCurrent_v2"}));
}

// The call only enqueues work in the stream: it allocates no memory, does not synchronise, and uses no other stream.
TEST_F(CudaRun, TensorsOfTheDevice) {
  CudaModel made(data, {.flags = KILN_LOAD_KERNELS_AT_CREATE});
  DeviceCall call(made);
  stub->calls.clear();
  ASSERT_EQ(call.run(made), KILN_OK) << made.error.message;
  EXPECT_EQ(stub->calls, (std::vector<std::string>{"cuCtxPushCurrent_v2", "cuLaunchKernel", "cuMemcpy2DAsync_v2",
                                                   "cuLaunchKernel", "cuCtxPopCurrent_v2"}));
  EXPECT_EQ(call.result(made), cudaRows(Ids, 0));
  call.options.stream = nullptr; // selects the model's own stream
  ASSERT_EQ(call.run(made), KILN_OK) << made.error.message;
  EXPECT_EQ(call.result(made), cudaRows(Ids, 1));
}

TEST_F(CudaRun, MayBeCaptured) {
  CudaModel made(data);
  DeviceCall call(made);
  call.stream.isCapturing = true;
  EXPECT_EQ(call.run(made), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(made.error.message, "kernel \"gather\": not loaded before a capture; expected an earlier call of the "
                                   "entry, or a model created with KILN_LOAD_KERNELS_AT_CREATE");
  EXPECT_TRUE(call.stream.graph.empty());
  call.stream.isCapturing = false;
  ASSERT_EQ(call.run(made), KILN_OK) << made.error.message;
  call.stream.isCapturing = true;
  stub->calls.clear();
  ASSERT_EQ(call.run(made), KILN_OK) << made.error.message;
  EXPECT_EQ(stub->count("cuStreamSynchronize"), 0);
  EXPECT_EQ(call.result(made), cudaRows(Ids, 0)) << "nothing ran yet";
  for (int launch = 1; launch < 4; ++launch) {
    for (const auto &work : call.stream.graph)
      work();
    EXPECT_EQ(call.result(made), cudaRows(Ids, launch));
  }
  // Host tensors would require synchronising with the stream.
  call.options.memory = KILN_HOST_POINTERS;
  std::vector<float> rows(Ids.size() * CudaWidth, -1);
  EXPECT_EQ(made.run(call.options, 3, Ids.data(), rows.data()), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(made.error.message, "forward: wrong memory for a captured stream; expected 1, device pointers, got 0");
}

TEST_F(CudaRun, Refusals) {
  CudaModel made(data);
  std::vector<float> rows;
  EXPECT_EQ(made.run({4, 5}, rows), KILN_INDEX_OUT_OF_RANGE);
  EXPECT_STREQ(made.error.message, "forward: \"ids\" out of range; expected [0, 4], got 5 at element 1");
  EXPECT_EQ(made.run(std::vector<int32_t>(CudaMaxTokens + 1), rows), KILN_EXTENT_OUT_OF_RANGE);
  kiln_call_t call = made.call;
  call.memory = 2;
  EXPECT_EQ(made.run(call, 1, Ids.data(), rows.data()), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(made.error.message, "forward: unknown memory; expected 0 or 1, got 2");
  call = made.call;
  --call.arena_bytes;
  EXPECT_EQ(made.run(call, 1, Ids.data(), rows.data()), KILN_ARENA_TOO_SMALL);
  EXPECT_STREQ(made.error.message, "forward: arena too small; expected 704 bytes for 1 workers, got 703");
  EXPECT_EQ(made.run(made.call, 1, Ids.data(), rows.data(), 1), KILN_INTERNAL_ERROR);
  EXPECT_STREQ(made.error.message, "broken of model \"gathering\": wrong result; expected 0, got 7");
  for (uint64_t bytes : {64, 128}) { // fewer than the arguments need: an error of the compiler
    data.bodies[0].staging_bytes = bytes;
    EXPECT_EQ(made.run(std::vector<int32_t>(5), rows), KILN_INTERNAL_ERROR);
  }
  EXPECT_STREQ(made.error.message, "forward: too few argument bytes; expected 192, got 128");
  data.bodies[0].staging_bytes = CudaStagingBytes;
  EXPECT_EQ(made.run({1}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows({1}, 0)) << "nothing ran before";
}

// A GPU does not use an executor, which therefore needs no more of the arena.
TEST_F(CudaRun, AnExecutorDoesNotMatter) {
  CudaModel made(data);
  const kiln_executor_t executor = {nullptr, 8, [](void *, uint32_t, void (*)(void *, uint32_t, uint32_t), void *) {}};
  made.call.executor = &executor;
  std::vector<float> rows;
  ASSERT_EQ(made.run(Ids, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows(Ids, 0));
}

// The runtime cannot read indices on the device; kernels clamp them.
TEST_F(CudaRun, IndicesOnTheDeviceAreNotChecked) {
  CudaModel made(data);
  DeviceCall call(made);
  const int32_t ids[] = {99, -1, 1};
  ASSERT_EQ(kiln_copy_to_memory(made.model, call.ids, ids, sizeof ids, nullptr), KILN_OK);
  ASSERT_EQ(call.run(made), KILN_OK) << made.error.message;
  EXPECT_EQ(call.result(made), cudaRows({4, 0, 1}, 0));
}

// Each driver function in turn fails; the next call must work normally.
TEST_F(CudaRun, WhateverFailsTheNextCallRuns) {
  CudaModel made(data);
  std::vector<float> rows, wanted;
  int failures = 0;
  for (bool isDone = false; !isDone; ++failures) {
    failAt("*", failures, 999);
    const kiln_status_t status = made.run(Ids, rows);
    isDone = status == KILN_OK;
    EXPECT_EQ(isDone, stub->failing != "");
    stub->failing.clear();
    if (isDone)
      break;
    EXPECT_EQ(status, KILN_DEVICE_ERROR);
    EXPECT_TRUE(std::string(made.error.message)
                    .ends_with(": call failed; expected success, got CUDA_ERROR_UNKNOWN (999): unknown error"))
        << made.error.message;
    EXPECT_EQ(rows, std::vector<float>(Ids.size() * CudaWidth, -1));
    ASSERT_EQ(kiln_zero_memory(made.model, made.call.arena, CudaStateBytes, nullptr), KILN_OK);
    ASSERT_EQ(made.run(Ids, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(rows, cudaRows(Ids, 0));
    ASSERT_EQ(kiln_zero_memory(made.model, made.call.arena, CudaStateBytes, nullptr), KILN_OK);
  }
  EXPECT_GE(failures, 7);
}

TEST_F(CudaRun, AnErrorThatEndsTheContextEndsTheModel) {
  CudaModel made(data);
  std::vector<float> rows;
  ASSERT_EQ(made.run(Ids, rows), KILN_OK) << made.error.message;
  failAt("cuStreamSynchronize", 0, 700);
  EXPECT_EQ(made.run(Ids, rows), KILN_DEVICE_LOST);
  EXPECT_STREQ(made.error.message, "cuStreamSynchronize: call failed; expected success, got CUDA_ERROR_ILLEGAL_ADDRESS "
                                   "(700): an illegal memory access was encountered");
  stub->calls.clear();
  EXPECT_EQ(made.run(Ids, rows), KILN_DEVICE_LOST);
  EXPECT_STREQ(made.error.message, "CUDA context: ended by an error; expected one that works");
  void *memory = nullptr;
  EXPECT_EQ(kiln_allocate_memory(made.model, 64, &memory, nullptr), KILN_DEVICE_LOST);
  EXPECT_EQ(kiln_zero_memory(made.model, made.call.arena, 64, nullptr), KILN_DEVICE_LOST);
  const std::string image = cudaImage();
  EXPECT_EQ(kiln_bind_weights_from_memory(made.model, image.data(), image.size(), nullptr), KILN_DEVICE_LOST);
  EXPECT_TRUE(stub->calls.empty());
  // The context was destroyed with the caller's allocations.
  ASSERT_EQ(stub->memory.erase(reinterpret_cast<uintptr_t>(made.call.arena)), 1u);
  std::free(onHost<void>(reinterpret_cast<uintptr_t>(made.call.arena)));
}

// A driver error within the body of a call is the result of the call, whatever the body returned; no further work
// follows.
TEST_F(CudaRun, TheFirstErrorOfABodyCounts) {
  CudaModel made(data);
  std::vector<float> rows;
  failAt("cuMemcpy2DAsync_v2", 0, 2);
  EXPECT_EQ(made.run(Ids, rows), KILN_OUT_OF_MEMORY);
  EXPECT_STREQ(made.error.message,
               "cuMemcpy2DAsync_v2: call failed; expected success, got CUDA_ERROR_OUT_OF_MEMORY (2): no description");
  EXPECT_EQ(stub->count("cuLaunchKernel"), 1);
  stub->kernels.erase("count"); // simulates an error of the compiler
  CudaModel broken(data);
  EXPECT_EQ(broken.run(Ids, rows), KILN_DEVICE_ERROR);
  EXPECT_STREQ(broken.error.message,
               "cuModuleGetFunction: call failed; expected success, got an unknown error (500): no description");
}

// Calls of both kinds on one model concurrently, with one arena per thread.
TEST_F(CudaRun, FromSeveralThreads) {
  CudaModel made(data);
  void *arenas[4];
  for (void *&arena : arenas)
    arena = made.allocate(CudaArenaBytes);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      kiln_call_t call = made.call;
      StubStream stream;
      kiln_error_t error;
      call.arena = arenas[number];
      call.error = &error;
      call.stream = number % 2 ? &stream : nullptr;
      ASSERT_EQ(kiln_zero_memory(made.model, call.arena, CudaStateBytes, nullptr), KILN_OK);
      for (int repeat = 0; repeat < 50; ++repeat) {
        const std::vector<int32_t> ids(1 + (repeat + number) % CudaMaxTokens, (repeat + number) % CudaRows);
        std::vector<float> rows(ids.size() * CudaWidth);
        ASSERT_EQ(made.run(call, static_cast<int64_t>(ids.size()), ids.data(), rows.data()), KILN_OK) << error.message;
        ASSERT_EQ(rows, cudaRows(ids, repeat));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
