// SPDX-License-Identifier: Apache-2.0
// Entries captured as CUDA graphs: which calls launch a captured graph and which capture again, how many graphs are
// kept, and errors in each driver call.
#include "cuda_fixture.h"

#include <thread>

namespace {

using namespace kiln_test;

const std::vector<int32_t> Ids = {4, 0, 3};

/// A model with captured entries, a stream of the test, and tensors on the device.
struct Recorded : CudaModel {
  StubStream stream;
  void *ids, *rows;
  kiln_call_t options;

  explicit Recorded(const CudaDescriptor &data) : CudaModel(data), options(call) {
    EXPECT_EQ(kiln_capture_entries(model, &error), KILN_OK) << error.message;
    ids = allocate(sizeof(int32_t) * CudaMaxTokens);
    rows = allocate(sizeof(float) * CudaMaxTokens * CudaWidth);
    options.stream = &stream;
    options.memory = KILN_DEVICE_POINTERS;
    EXPECT_EQ(kiln_copy_to_memory(model, ids, Ids.data(), sizeof(int32_t) * Ids.size(), nullptr), KILN_OK);
  }
  kiln_status_t run() { return CudaModel::run(options, static_cast<int64_t>(Ids.size()), ids, rows); }
  std::vector<float> result() {
    std::vector<float> values(Ids.size() * CudaWidth);
    EXPECT_EQ(kiln_copy_from_memory(model, values.data(), rows, values.size() * sizeof(float), nullptr), KILN_OK);
    return values;
  }
};

class CudaGraph : public CudaStub {
protected:
  int recorded() const { return stub->count("cuGraphInstantiateWithFlags"); }
};

TEST_F(CudaGraph, TheFirstCallIsRecordedAndTheOthersAreLaunched) {
  Recorded made(data);
  ASSERT_EQ(made.run(), KILN_OK) << made.error.message;
  EXPECT_EQ(made.result(), cudaRows(Ids, 0));
  EXPECT_EQ(recorded(), 1);
  EXPECT_EQ(stub->graphs, 0);
  for (int call = 1; call < 4; ++call) {
    stub->calls.clear();
    made.error = {KILN_FILE_ERROR, "from before"};
    ASSERT_EQ(made.run(), KILN_OK) << made.error.message;
    EXPECT_STREQ(made.error.message, "");
    EXPECT_EQ(stub->calls, (std::vector<std::string>{"cuCtxPushCurrent_v2", "cuStreamIsCapturing", "cuGraphLaunch",
                                                     "cuCtxPopCurrent_v2"}));
    EXPECT_EQ(made.result(), cudaRows(Ids, call));
  }
}

// Other threads may use the caller's stream and the model's stream meanwhile; their work must not be captured.
TEST_F(CudaGraph, RecordsInAStreamOfItsOwn) {
  Recorded made(data);
  for (void *stream : {static_cast<void *>(&made.stream), static_cast<void *>(nullptr)}) {
    made.options.stream = stream;
    ASSERT_EQ(made.run(), KILN_OK) << made.error.message;
  }
  EXPECT_EQ(recorded(), 2);
  EXPECT_EQ(stub->recorders.size(), 1u);
  EXPECT_EQ(stub->used.size(), 2u) << "the caller's and the model's";
  for (const void *recorder : stub->recorders)
    EXPECT_EQ(stub->used.count(recorder), 0u);
}

// Copies stay outside of the graph, which refers to the staging tensors in the arena only.
TEST_F(CudaGraph, TensorsOfTheHost) {
  Recorded made(data);
  std::vector<float> rows;
  for (int call = 0; call < 3; ++call) {
    const std::vector<int32_t> ids = {call, 4, 1};
    stub->calls.clear();
    ASSERT_EQ(made.CudaModel::run(ids, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(rows, cudaRows(ids, call));
  }
  EXPECT_EQ(stub->calls, (std::vector<std::string>{"cuCtxPushCurrent_v2", "cuStreamIsCapturing", "cuMemcpyHtoDAsync_v2",
                                                   "cuStreamIsCapturing", "cuGraphLaunch", "cuMemcpyDtoHAsync_v2",
                                                   "cuStreamSynchronize", "cuCtxPopCurrent_v2"}));
}

TEST_F(CudaGraph, OtherExtentsAndPointersAreOtherGraphs) {
  Recorded made(data);
  int wanted = 0;
  const auto runs = [&](int64_t tokens, const void *ids, void *rows) {
    for (int repeat = 0; repeat < 2; ++repeat)
      ASSERT_EQ(made.CudaModel::run(made.options, tokens, ids, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(recorded(), ++wanted);
  };
  runs(3, made.ids, made.rows);
  runs(2, made.ids, made.rows);
  void *otherIds = made.allocate(64), *otherRows = made.allocate(128);
  ASSERT_EQ(kiln_zero_memory(made.model, otherIds, 64, nullptr), KILN_OK);
  runs(3, otherIds, made.rows);
  runs(3, made.ids, otherRows);
  StubStream stream;
  made.options.stream = &stream;
  runs(3, made.ids, made.rows);
  made.options.stream = nullptr;
  runs(3, made.ids, made.rows);
  made.options.arena = made.allocate(CudaArenaBytes);
  ASSERT_EQ(kiln_zero_memory(made.model, made.options.arena, CudaStateBytes, nullptr), KILN_OK);
  runs(3, made.ids, made.rows);
  EXPECT_EQ(made.result(), cudaRows(Ids, 1)) << "a session of its own";
  // Weights that are bound again have other addresses.
  const std::string image = cudaImage(100);
  ASSERT_EQ(kiln_bind_weights_from_memory(made.model, image.data(), image.size(), &made.error), KILN_OK);
  runs(3, made.ids, made.rows);
  EXPECT_EQ(made.result(), cudaRows(Ids, 3, 100));
}

// The least recently launched graph is evicted.
TEST_F(CudaGraph, KeepsSoMany) {
  Recorded made(data);
  std::vector<StubStream> streams(KILN_MAX_CAPTURED_CALLS + 1);
  const auto run = [&](size_t stream) {
    made.options.stream = &streams[stream];
    ASSERT_EQ(made.run(), KILN_OK) << made.error.message;
  };
  for (size_t i = 0; i < KILN_MAX_CAPTURED_CALLS; ++i)
    run(i);
  EXPECT_EQ(stub->executables, KILN_MAX_CAPTURED_CALLS);
  run(0);
  EXPECT_EQ(recorded(), KILN_MAX_CAPTURED_CALLS);
  run(KILN_MAX_CAPTURED_CALLS); // replaces 1
  EXPECT_EQ(recorded(), KILN_MAX_CAPTURED_CALLS + 1);
  EXPECT_EQ(stub->executables, KILN_MAX_CAPTURED_CALLS);
  for (size_t i : {size_t{0}, size_t{2}, size_t{KILN_MAX_CAPTURED_CALLS}})
    run(i);
  EXPECT_EQ(recorded(), KILN_MAX_CAPTURED_CALLS + 1);
  run(1);
  EXPECT_EQ(recorded(), KILN_MAX_CAPTURED_CALLS + 2);
  EXPECT_EQ(made.result(), cudaRows(Ids, KILN_MAX_CAPTURED_CALLS + 5));
}

TEST_F(CudaGraph, NothingIsRecordedInACaptureOfTheCallers) {
  Recorded made(data);
  made.stream.isCapturing = true;
  EXPECT_EQ(made.run(), KILN_INVALID_ARGUMENT) << "kernels are not loaded";
  made.stream.isCapturing = false;
  ASSERT_EQ(made.run(), KILN_OK) << made.error.message;
  made.stream.isCapturing = true;
  ASSERT_EQ(made.run(), KILN_OK) << made.error.message;
  EXPECT_EQ(recorded(), 1);
  EXPECT_EQ(made.stream.graph.size(), 3u) << "two kernels and a copy, and no graph";
  EXPECT_EQ(made.result(), cudaRows(Ids, 0));
  for (const auto &work : made.stream.graph)
    work();
  EXPECT_EQ(made.result(), cudaRows(Ids, 1));
}

// Each driver function in turn fails; the next call must work normally.
TEST_F(CudaGraph, WhateverFailsTheNextCallRuns) {
  int failures = 0;
  for (bool isDone = false; !isDone; ++failures) {
    Recorded made(data);
    failAt("*", failures, 999);
    const kiln_status_t status = made.run();
    isDone = status == KILN_OK;
    EXPECT_EQ(isDone, stub->failing != "") << failures;
    stub->failing.clear();
    EXPECT_EQ(status, isDone ? KILN_OK : KILN_DEVICE_ERROR);
    EXPECT_EQ(stub->graphs, 0);
    if (isDone)
      break;
    EXPECT_TRUE(std::string(made.error.message)
                    .ends_with(": call failed; expected success, got CUDA_ERROR_UNKNOWN (999): unknown error"))
        << made.error.message;
    EXPECT_EQ(*contexts, std::vector{callers});
    ASSERT_EQ(made.run(), KILN_OK) << made.error.message;
    EXPECT_EQ(made.result(), cudaRows(Ids, 0));
  }
  EXPECT_GT(failures, 10);
}

TEST_F(CudaGraph, ABodyThatFailsLeavesNoGraph) {
  Recorded made(data);
  EXPECT_EQ(made.CudaModel::run(made.options, 3, made.ids, made.rows, 1), KILN_INTERNAL_ERROR);
  EXPECT_STREQ(made.error.message, "broken of model \"gathering\": wrong result; expected 0, got 7");
  EXPECT_EQ(recorded(), 0);
  ASSERT_EQ(made.run(), KILN_OK) << made.error.message;
  failAt("cuGraphLaunch", 0, 700);
  EXPECT_EQ(made.run(), KILN_DEVICE_LOST);
  EXPECT_EQ(made.run(), KILN_DEVICE_LOST);
  for (void *memory : {made.call.arena, made.ids, made.rows}) { // they were destroyed with the context
    ASSERT_EQ(stub->memory.erase(reinterpret_cast<uintptr_t>(memory)), 1u);
    std::free(onHost<void>(reinterpret_cast<uintptr_t>(memory)));
  }
}

TEST_F(CudaGraph, IsAskedForOfAModel) {
  CountingAllocator counter;
  const kiln_allocator_t functions = counter.get();
  CudaModel made(data, {.allocator = &functions}), cpu(data, {.device = KILN_CPU}, false);
  EXPECT_EQ(kiln_capture_entries(cpu.model, &cpu.error), KILN_OK) << "of no meaning there";
  EXPECT_EQ(kiln_capture_entries(nullptr, &made.error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(made.error.message, "capture_entries: null given; expected a model");
  const int streams = stub->streams;
  for (const char *function : {"cuCtxPushCurrent_v2", "cuStreamCreate"}) {
    failAt(function, 0, 999);
    EXPECT_EQ(kiln_capture_entries(made.model, &made.error), KILN_DEVICE_ERROR);
  }
  counter.Limit = counter.Made;
  EXPECT_EQ(kiln_capture_entries(made.model, &made.error), KILN_OUT_OF_MEMORY);
  EXPECT_EQ(stub->streams, streams);
  counter.Limit = 1000;
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(kiln_capture_entries(made.model, &made.error), KILN_OK) << made.error.message;
  EXPECT_EQ(stub->streams, streams + 1);
  useDriver(KILN_CUDA_OLD_STUB);
  CudaModel old(data, {}, false);
  EXPECT_EQ(kiln_capture_entries(old.model, &old.error), KILN_DEVICE_ERROR);
  EXPECT_STREQ(old.error.message,
               "capture_entries: CUDA driver too old; expected one with cuGraphInstantiateWithFlags");
}

// Captures in some threads, launches in others, and copies in the model's own stream.
TEST_F(CudaGraph, FromSeveralThreads) {
  Recorded made(data);
  void *arenas[4], *rows[4];
  for (int number = 0; number < 4; ++number) {
    arenas[number] = made.allocate(CudaArenaBytes);
    rows[number] = made.allocate(sizeof(float) * CudaMaxTokens * CudaWidth);
  }
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      StubStream stream;
      kiln_error_t error;
      kiln_call_t call = made.options;
      call.arena = arenas[number];
      call.error = &error;
      call.stream = number % 2 ? &stream : nullptr;
      ASSERT_EQ(kiln_zero_memory(made.model, call.arena, CudaStateBytes, nullptr), KILN_OK);
      for (int repeat = 0; repeat < 40; ++repeat) {
        const int64_t tokens = 1 + repeat % 3;
        std::vector<float> values(static_cast<size_t>(tokens) * CudaWidth);
        ASSERT_EQ(made.CudaModel::run(call, tokens, made.ids, rows[number]), KILN_OK) << error.message;
        ASSERT_EQ(kiln_copy_from_memory(made.model, values.data(), rows[number], values.size() * sizeof(float), &error),
                  KILN_OK)
            << error.message;
        ASSERT_EQ(values, cudaRows({Ids.begin(), Ids.begin() + tokens}, repeat));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(recorded(), 12);
}

} // namespace
