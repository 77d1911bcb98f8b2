// SPDX-License-Identifier: Apache-2.0
// One archive with code for GPUs and CPUs: which device is selected, that results agree, and calls in a CUDA graph. The
// GPU is the PTX interpreter, or that of the driver that KILN_CUDA_DRIVER names.
#include "../levels.h"
#include "client.h"
#include "session.h"
#include "support.h"
#include "tiny_gpt_anywhere.h"

namespace kiln::testing {
namespace {

using fake::symbol;

constexpr std::int32_t vocabulary = 61;
constexpr std::int64_t tokens = 17;

template <kiln_device_t device> Library<tiny_gpt_anywhere_t> on() {
  auto library = KILN_TEST_LIBRARY(tiny_gpt_anywhere, TINY_GPT_ANYWHERE_WEIGHTS);
  library.create = [](const kiln_allocator_t *allocator, tiny_gpt_anywhere_t **model, kiln_error_t *error) {
    const kiln_options_t options = {.allocator = allocator, .device = device, .flags = KILN_LOAD_KERNELS_AT_CREATE};
    return tiny_gpt_anywhere_create_on(&options, model, error);
  };
  return library;
}

Input<std::int32_t> ids() { return counterTokens("devices", tokens, vocabulary); }

std::vector<float> logitsOf(Session<tiny_gpt_anywhere_t> &session) {
  Output<float> logits(tokens * vocabulary);
  session.run(tiny_gpt_anywhere_forward, tokens, ids(), logits);
  return {logits.values().begin(), logits.values().end()};
}

TEST(Devices, AreNamedInTheHeader) { EXPECT_STREQ(TINY_GPT_ANYWHERE_ISAS, "cuda " KILN_V3 " " KILN_V2); }

TEST(Devices, Agree) {
  Session<tiny_gpt_anywhere_t> gpu(on<KILN_CUDA>()), cpu(on<KILN_CPU>());
  EXPECT_EQ(tiny_gpt_anywhere_device(gpu.get()), KILN_CUDA);
  EXPECT_EQ(tiny_gpt_anywhere_device(cpu.get()), KILN_CPU);
  EXPECT_LE(relativeError(logitsOf(gpu), logitsOf(cpu)), 5e-6);
}

TEST(Devices, TheGpuIsTakenWhereThereIsOne) {
  Session<tiny_gpt_anywhere_t> any(KILN_TEST_LIBRARY(tiny_gpt_anywhere, TINY_GPT_ANYWHERE_WEIGHTS));
  EXPECT_EQ(tiny_gpt_anywhere_device(any.get()), KILN_CUDA);
}

/// Simulates a machine without NVIDIA's driver during its lifetime.
class NoDriver {
public:
  NoDriver() { setenv("KILN_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1); }
  ~NoDriver() { setenv("KILN_CUDA_DRIVER", before.c_str(), 1); }

private:
  std::string before = std::getenv("KILN_CUDA_DRIVER");
};

TEST(Devices, WithoutADriverTheCpuRunsIt) {
  Session<tiny_gpt_anywhere_t> cpu(on<KILN_CPU>());
  NoDriver none;
  Session<tiny_gpt_anywhere_t> any(KILN_TEST_LIBRARY(tiny_gpt_anywhere, TINY_GPT_ANYWHERE_WEIGHTS));
  EXPECT_EQ(tiny_gpt_anywhere_device(any.get()), KILN_CPU);
  EXPECT_EQ(logitsOf(any), logitsOf(cpu));
}

TEST(Devices, WithoutADriverAGpuIsRefusedInWords) {
  NoDriver none;
  tiny_gpt_anywhere_t *model = nullptr;
  kiln_error_t error;
  const kiln_options_t options = {.device = KILN_CUDA};
  EXPECT_EQ(tiny_gpt_anywhere_create_on(&options, &model, &error), KILN_NO_DEVICE);
  EXPECT_EQ(model, nullptr);
  EXPECT_NE(std::string(error.message).find("/nowhere/libcuda.so.1"), std::string::npos) << error.message;
}

/// The driver's graph functions, with a separate context.
class Graphs : public ::testing::Test {
protected:
  void SetUp() override {
    OK(CU(cuInit)(0));
    OK(CU(cuCtxCreate_v2)(&context, 0, 0));
    OK(CU(cuStreamCreate)(&stream, /*non-blocking*/ 1));
    const kiln_options_t options = {.device = KILN_CUDA, .context = context, .flags = KILN_LOAD_KERNELS_AT_CREATE};
    ASSERT_EQ(tiny_gpt_anywhere_create_on(&options, &model, &error), KILN_OK) << error.message;
    auto library = on<KILN_CUDA>();
    WeightImage image(library.weights);
    ASSERT_EQ(tiny_gpt_anywhere_bind_weights_from_memory(model, image.data(), image.size(), &error), KILN_OK);
  }
  void TearDown() override {
    for (void *piece : memory)
      tiny_gpt_anywhere_release_memory(model, piece);
    tiny_gpt_anywhere_destroy(model);
    OK(CU(cuStreamDestroy_v2)(stream));
    OK(CU(cuCtxDestroy_v2)(context));
  }
  void *allocate(std::size_t bytes) {
    memory.push_back(nullptr);
    EXPECT_EQ(tiny_gpt_anywhere_allocate_memory(model, bytes, &memory.back(), &error), KILN_OK) << error.message;
    return memory.back();
  }

  CUcontext context = nullptr;
  CUstream stream = nullptr;
  tiny_gpt_anywhere_t *model = nullptr;
  kiln_error_t error{};
  std::vector<void *> memory;
};

TEST_F(Graphs, ACallIsCapturedAndRunsAgainWithOtherInputs) {
  const std::size_t idBytes = tokens * sizeof(std::int32_t), logitBytes = tokens * vocabulary * sizeof(float);
  void *deviceIds = allocate(idBytes), *deviceLogits = allocate(logitBytes);
  kiln_call_t call{};
  call.arena_bytes = TINY_GPT_ANYWHERE_FORWARD_ARENA_BYTES(1);
  call.arena = allocate(call.arena_bytes);
  call.error = &error;
  call.stream = stream;
  call.memory = KILN_DEVICE_POINTERS;
  CUgraph graph;
  CUgraphExec executable;
  OK(CU(cuStreamBeginCapture_v2)(stream, CUstreamCaptureMode{}));
  ASSERT_EQ(tiny_gpt_anywhere_forward(model, &call, tokens, static_cast<std::int32_t *>(deviceIds),
                                      static_cast<float *>(deviceLogits)),
            KILN_OK)
      << error.message;
  OK(CU(cuStreamEndCapture)(stream, &graph));
  OK(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));

  Session<tiny_gpt_anywhere_t> cpu(on<KILN_CPU>());
  for (const char *name : {"first", "second"}) {
    const std::vector<std::int32_t> words = counterTokens(name, tokens, vocabulary);
    std::vector<float> got(tokens * vocabulary);
    ASSERT_EQ(tiny_gpt_anywhere_copy_to_memory(model, deviceIds, words.data(), idBytes, &error), KILN_OK);
    OK(CU(cuGraphLaunch)(executable, stream));
    OK(CU(cuStreamSynchronize)(stream));
    ASSERT_EQ(tiny_gpt_anywhere_copy_from_memory(model, got.data(), deviceLogits, logitBytes, &error), KILN_OK);
    Output<float> want(tokens * vocabulary);
    cpu.run(tiny_gpt_anywhere_forward, tokens, Input(words), want);
    EXPECT_LE(relativeError(got, want.values()), 5e-6);
  }
  OK(CU(cuGraphExecDestroy)(executable));
  OK(CU(cuGraphDestroy)(graph));
}

} // namespace
} // namespace kiln::testing
