// SPDX-License-Identifier: Apache-2.0
//
// A tensor-parallel model on GPUs of a fake driver (tools/fake-cuda), compared with the same model in one process on
// a CPU. Ranks are threads with one GPU each; collectives run on the host, between a copy from the device and one back.
#include "client.h"
#include "llama_gpu_ranks2.h"
#include "llama_writer.h"
#include "thread_ranks.h"
#include "writer.h"

namespace kiln::test {
namespace {

constexpr size_t vocabulary = 2000;
constexpr int64_t prompt = 5;
const std::string weights = KILN_EXAMPLES "/llama/king_james/model.safetensors";
const std::vector<int32_t> tokens = {17, 1999, 0, 512, 1000, 1003, 42};

/// A host communicator that accepts device buffers.
class DeviceRank {
public:
  DeviceRank(ThreadRanks &ranks, uint32_t rank) : host(ranks.communicator(rank)) {}
  kiln_communicator_t communicator() { return {this, host.rank, host.size, begin, finish}; }
  kiln_status_t answer = KILN_OK; // the status that finish returns

private:
  static kiln_status_t begin(void *self, const kiln_collective_t *what, kiln_error_t *error) {
    auto &own = *static_cast<DeviceRank *>(self);
    const size_t bytes = what->elements * sizeof(float);
    EXPECT_EQ(what->element, KILN_F32);
    EXPECT_NE(what->stream, nullptr);
    own.device = *what;
    own.stream = static_cast<CUstream>(what->stream);
    own.to.resize(what->kind == KILN_ALL_GATHER ? own.host.size * bytes : bytes);
    own.from.resize(bytes);
    std::vector<char> &sent = what->kind == KILN_ALL_GATHER ? own.from : own.to;
    EXPECT_EQ(CU(cuStreamSynchronize)(own.stream), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemcpyDtoH_v2)(sent.data(), reinterpret_cast<CUdeviceptr>(what->from), bytes), CUDA_SUCCESS);
    kiln_collective_t onHost = *what;
    onHost.from = sent.data();
    onHost.to = own.to.data();
    onHost.stream = nullptr;
    return own.host.begin(own.host.self, &onHost, error);
  }
  static kiln_status_t finish(void *self, kiln_error_t *error) {
    auto &own = *static_cast<DeviceRank *>(self);
    if (own.answer)
      return own.answer;
    const kiln_status_t status = own.host.finish(own.host.self, error);
    EXPECT_EQ(CU(cuMemcpyHtoDAsync_v2)(reinterpret_cast<CUdeviceptr>(own.device.to), own.to.data(), own.to.size(),
                                       own.stream),
              CUDA_SUCCESS);
    EXPECT_EQ(CU(cuStreamSynchronize)(own.stream), CUDA_SUCCESS);
    return status;
  }

  kiln_communicator_t host;
  kiln_collective_t device{};
  CUstream stream = nullptr;
  std::vector<char> from, to;
};

class RanksGpu : public ::testing::Test {
protected:
  static void SetUpTestSuite() { setenv("KILN_FAKE_CUDA_DEVICES", "9.0,9.0", 1); }
};

/// A model with a session on a separate GPU.
struct Session {
  explicit Session(DeviceRank &rank) : ranks(rank.communicator()) {
    kiln_options_t options{};
    options.device = KILN_CUDA;
    options.ordinal = static_cast<int32_t>(ranks.rank);
    options.rank = ranks.rank;
    options.ranks = ranks.size;
    check(llama_gpu_ranks2_create_on(&options, &model, &error));
    check(llama_gpu_ranks2_bind_weights(model, weights.c_str(), &error));
    call.arena_bytes = std::max(LLAMA_GPU_RANKS2_PREFILL_ARENA_BYTES(1), LLAMA_GPU_RANKS2_DECODE_ARENA_BYTES(1)) +
                       KILN_ARENA_ALIGNMENT;
    call.arena = allocate(call.arena_bytes);
    call.error = &error;
    call.memory = KILN_DEVICE_POINTERS;
    call.communicator = &ranks;
    check(llama_gpu_ranks2_zero_memory(model, call.arena, LLAMA_GPU_RANKS2_STATE_BYTES, &error));
    ids = static_cast<int32_t *>(allocate(tokens.size() * sizeof(int32_t)));
    logits = static_cast<float *>(allocate(vocabulary * sizeof(float)));
  }
  ~Session() {
    for (void *memory : {call.arena, static_cast<void *>(ids), static_cast<void *>(logits)})
      llama_gpu_ranks2_release_memory(model, memory);
    llama_gpu_ranks2_destroy(model);
  }
  Session(const Session &) = delete;

  void *allocate(size_t bytes) {
    void *memory = nullptr;
    check(llama_gpu_ranks2_allocate_memory(model, bytes, &memory, &error));
    return memory;
  }
  void check(kiln_status_t status) const { EXPECT_EQ(status, KILN_OK) << error.message; }

  /// Runs the prompt if `at` is 0, otherwise the token at position `at`.
  kiln_status_t read(int64_t at) {
    const size_t count = at == 0 ? prompt : 1;
    check(llama_gpu_ranks2_copy_to_memory(model, ids, &tokens[at], count * sizeof(int32_t), &error));
    return at == 0 ? llama_gpu_ranks2_prefill(model, &call, prompt, prompt, ids, logits)
                   : llama_gpu_ranks2_decode(model, &call, at + 1, ids, logits);
  }
  void append(std::vector<float> &all) {
    all.resize(all.size() + vocabulary);
    check(llama_gpu_ranks2_copy_from_memory(model, all.data() + all.size() - vocabulary, logits,
                                            vocabulary * sizeof(float), &error));
  }

  kiln_communicator_t ranks;
  kiln_error_t error{};
  llama_gpu_ranks2_t *model = nullptr;
  kiln_call_t call{};
  int32_t *ids = nullptr;
  float *logits = nullptr;
};

std::vector<float> writeAlone() {
  kiln_error_t error{};
  llama_writer_t *model = nullptr;
  EXPECT_EQ(llama_writer_create(nullptr, &model, &error), KILN_OK) << error.message;
  EXPECT_EQ(llama_writer_bind_weights(model, weights.c_str(), &error), KILN_OK) << error.message;
  const Memory arena((LLAMA_WRITER_PREFILL_ARENA_BYTES(1) + LLAMA_WRITER_DECODE_ARENA_BYTES(1)) / 64 * 64);
  EXPECT_EQ(llama_writer_begin_session(model, arena.data, &error), KILN_OK) << error.message;
  const kiln_call_t call{arena.data, arena.bytes, nullptr, &error};
  std::vector<float> logits((tokens.size() - prompt + 1) * vocabulary);
  float *next = logits.data();
  EXPECT_EQ(llama_writer_prefill(model, &call, prompt, prompt, tokens.data(), next), KILN_OK) << error.message;
  for (size_t at = prompt; at < tokens.size(); ++at)
    EXPECT_EQ(llama_writer_decode(model, &call, static_cast<int64_t>(at) + 1, &tokens[at], next += vocabulary), KILN_OK)
        << error.message;
  llama_writer_destroy(model);
  return logits;
}

// The vocabulary table is split: each rank looks up its rows. The logits are gathered. KV caches hold a rank's heads
// only.
TEST_F(RanksGpu, WriteWhatOneProcessWrites) {
  const std::vector<float> wanted = writeAlone();
  ThreadRanks ranks(2);
  std::vector<float> got[2];
  ranks.run([&](uint32_t rank) {
    DeviceRank own(ranks, rank);
    Session session(own);
    for (int64_t at = 0; at < static_cast<int64_t>(tokens.size()); at += at == 0 ? prompt : 1) {
      EXPECT_EQ(session.read(at), KILN_OK) << session.error.message;
      session.append(got[rank]);
    }
  });
  EXPECT_LT(distance(got[0], wanted), 3e-6);
  EXPECT_EQ(got[0], got[1]);
}

TEST_F(RanksGpu, TellThatARankIsLost) {
  ThreadRanks ranks(2);
  ranks.run([&](uint32_t rank) {
    DeviceRank own(ranks, rank);
    Session session(own);
    own.answer = KILN_RANK_LOST;
    EXPECT_EQ(session.read(0), KILN_RANK_LOST);
    EXPECT_EQ(std::string(session.error.message),
              "prefill on rank " + std::to_string(rank) +
                  " of 2 cannot finish its all-reduce of 2560 bytes: no words from the communicator");
  });
}

// A call that synchronised with its stream would wait for a lost rank forever.
TEST_F(RanksGpu, DoNotWaitForTheirStreams) {
  ThreadRanks ranks(2);
  DeviceRank own(ranks, 1);
  Session session(own);
  session.call.memory = KILN_HOST_POINTERS;
  std::vector<float> logits(vocabulary);
  EXPECT_EQ(llama_gpu_ranks2_decode(session.model, &session.call, 1, tokens.data(), logits.data()),
            KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(session.error.message,
               "decode of several ranks on GPUs: wrong memory; expected 1, device pointers, got 0");
  session.call.memory = KILN_DEVICE_POINTERS;
  auto tell = [](void *, const kiln_event_t *) {};
  const kiln_trace_t trace = {nullptr, tell, tell};
  session.call.trace = &trace;
  EXPECT_EQ(session.read(0), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(session.error.message, "prefill of several ranks on GPUs: trace set; expected null");
  session.call.trace = nullptr;
  session.call.communicator = nullptr;
  EXPECT_EQ(session.read(0), KILN_NULL_ARGUMENT);
}

} // namespace
} // namespace kiln::test
