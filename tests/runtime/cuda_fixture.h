// SPDX-License-Identifier: Apache-2.0
// Tests on the stub driver: each test begins with a fresh stub, and must leave no objects alive and no context current.
#ifndef KILN_TESTS_RUNTIME_CUDA_FIXTURE_H
#define KILN_TESTS_RUNTIME_CUDA_FIXTURE_H

#include "cuda/cuda_driver.h"
#include "cuda_stub.h"
#include "cuda_support.h"

#include <algorithm>
#include <dlfcn.h>
#include <stdlib.h>

namespace kiln_test {

class CudaStub : public testing::Test {
protected:
  CudaDescriptor data;
  StubState *stub = nullptr;
  std::vector<kiln_cuda_context_t> *contexts = nullptr; // of this thread; the current one is the last
  kiln_cuda_context_t callers = reinterpret_cast<kiln_cuda_context_t>(uintptr_t{77});

  void SetUp() override {
    useDriver(KILN_CUDA_STUB);
    stub = stateOf(KILN_CUDA_STUB);
    contexts = functionOf<std::vector<kiln_cuda_context_t> *>(KILN_CUDA_STUB, "kiln_stub_contexts")();
    static_cast<StubData &>(*stub) = StubData();
    contexts->assign(1, callers);
    CudaFunctions[0] = {"gather", 32, 0, 0, 0};
    stub->kernels["gather"] = {{8, 8, 8, 8, 8, 4}, gather};
    stub->kernels["count"] = {{8, 8}, count};
  }
  void TearDown() override {
    EXPECT_EQ(stub->alive(), 0) << "something was not released";
    EXPECT_EQ(*contexts, std::vector{callers}) << "the thread's context is the caller's";
    unsetenv("KILN_CUDA_DRIVER");
  }
  static void useDriver(const char *path) { setenv("KILN_CUDA_DRIVER", path, 1); }
  void failAt(const std::string &function, int after, int result) {
    stub->failing = function;
    stub->failAfter = after;
    stub->result = result;
  }

  static StubState *stateOf(const char *driver) { return functionOf<StubState *>(driver, "kiln_stub_state")(); }

private:
  template <class Result> static Result (*functionOf(const char *driver, const char *name))() {
    void *library = dlopen(driver, RTLD_NOW | RTLD_NODELETE);
    if (!library)
      std::abort();
    void *function = dlsym(library, name);
    dlclose(library);
    return reinterpret_cast<Result (*)()>(function);
  }
  static void gather(const StubLaunch &launch) {
    const auto *ids = onHost<int32_t>(launch.parameter<uint64_t>(0));
    const auto *table = onHost<float>(launch.parameter<uint64_t>(1));
    const auto *constants = onHost<float>(launch.parameter<uint64_t>(2));
    const auto *state = onHost<float>(launch.parameter<uint64_t>(3));
    auto *rows = onHost<float>(launch.parameter<uint64_t>(4));
    ASSERT_EQ(launch.blocks[0], static_cast<unsigned>(launch.parameter<int32_t>(5)));
    for (unsigned i = 0; i < launch.blocks[0]; ++i)
      for (int j = 0; j < CudaWidth; ++j)
        rows[i * 2 * CudaWidth + j] =
            table[std::clamp(ids[i], 0, CudaRows - 1) * CudaWidth + j] + constants[j] + *state;
  }
  static void count(const StubLaunch &launch) {
    auto *state = onHost<float>(launch.parameter<uint64_t>(0)), *scratch = onHost<float>(launch.parameter<uint64_t>(1));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(scratch) % KILN_ARENA_ALIGNMENT, 0u);
    std::memset(scratch, 0, CudaScratchBytes);
    scratch[0] = *state;
    *state = scratch[0] + 1;
  }
};

} // namespace kiln_test

#endif // KILN_TESTS_RUNTIME_CUDA_FIXTURE_H
