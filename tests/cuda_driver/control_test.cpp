// SPDX-License-Identifier: Apache-2.0
//
// Records, injected errors, leaks, the environment, and multithreaded clients.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "client.h"

namespace kiln::fake {
namespace {

class Control : public CudaContext {
protected:
  static kiln_fake_cuda_call_t lastCall() {
    kiln_fake_cuda_call_t call{};
    EXPECT_EQ(CU(kiln_fake_cuda_call)(CU(kiln_fake_cuda_calls)() - 1, &call), 0);
    return call;
  }
  static kiln_fake_cuda_leaks_t alive() {
    kiln_fake_cuda_leaks_t leaks;
    CU(kiln_fake_cuda_alive)(&leaks);
    return leaks;
  }
  static void inject(const char *function, unsigned nth, CUresult error) {
    CU(kiln_fake_cuda_inject)(function, nth, error);
  }
};

TEST_F(Control, CallsAreRecorded) {
  const CUdeviceptr pointer = allocate(40);
  EXPECT_STREQ(lastCall().function, "cuMemAlloc_v2");
  EXPECT_EQ(lastCall().bytes, 40U);
  const CUstream s = stream();
  const CUfunction function = kernel("store");
  CUdeviceptr target = pointer;
  unsigned value = 1;
  void *parameters[] = {&target, &value};
  OK(CU(cuLaunchKernel)(function, 2, 3, 4, 8, 2, 1, 100, s, parameters, nullptr));
  const kiln_fake_cuda_call_t call = lastCall();
  EXPECT_STREQ(call.function, "cuLaunchKernel");
  EXPECT_STREQ(call.kernel, "store");
  EXPECT_EQ(call.result, CUDA_SUCCESS);
  EXPECT_EQ(call.stream, s);
  EXPECT_EQ(call.grid[0] * 100 + call.grid[1] * 10 + call.grid[2], 234U);
  EXPECT_EQ(call.block[0] * 100 + call.block[1] * 10 + call.block[2], 821U);
  EXPECT_EQ(call.shared_bytes, 100U);
  EXPECT_EQ(launch(function, s, 2000), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(lastCall().result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(kiln_fake_cuda_count)("cuLaunchKernel"), 2U);
  EXPECT_EQ(CU(kiln_fake_cuda_count)("cuLaunchKernelEx"), 0U);
  EXPECT_EQ(CU(kiln_fake_cuda_count)("*"), CU(kiln_fake_cuda_calls)());
  kiln_fake_cuda_call_t none;
  EXPECT_EQ(CU(kiln_fake_cuda_call)(CU(kiln_fake_cuda_calls)(), &none), 1);
}

TEST_F(Control, ErrorsAreInjected) {
  CUdeviceptr pointer = 0;
  inject("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY);
  inject("cuStreamCreate", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(CU(kiln_fake_cuda_injections_waiting)(), 2U);
  OK(CU(cuMemAlloc_v2)(&pointer, 16));
  EXPECT_EQ(CU(cuMemAlloc_v2)(&pointer, 16), CUDA_ERROR_OUT_OF_MEMORY);
  OK(CU(cuMemAlloc_v2)(&pointer, 16));
  EXPECT_EQ(CU(kiln_fake_cuda_injections_waiting)(), 1U);
  CUstream s = nullptr;
  EXPECT_EQ(CU(cuStreamCreate)(&s, 0), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(alive().streams, 0U); // the call had no other effect
  EXPECT_EQ(alive().allocations, 2U);
  EXPECT_EQ(alive().allocated_bytes, 32U);
  inject("*", 3, CUDA_ERROR_NOT_PERMITTED);
  OK(CU(cuCtxSynchronize)());
  OK(CU(cuCtxSynchronize)());
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_NOT_PERMITTED);
  OK(CU(cuCtxSynchronize)());
}

TEST_F(Control, ErrorsAreInjectedIntoKernels) {
  const CUdeviceptr pointer = upload({1});
  inject("kernel", 2, CUDA_ERROR_ECC_UNCORRECTABLE);
  OK(twice(nullptr, pointer));
  OK(twice(nullptr, pointer));
  unsigned value = 0;
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&value, pointer, 4), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ECC_UNCORRECTABLE);
}

TEST_F(Control, SomeInjectedErrorsStay) {
  inject("cuCtxSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_LAUNCH_FAILED);
  CUdeviceptr pointer = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&pointer, 16), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(Control, EachCallOfAProgramCanFail) {
  const auto program = []() -> CUresult {
    unsigned value = 3;
    CUdeviceptr pointer = 0;
    CUresult error = CU(cuMemAlloc_v2)(&pointer, 4);
    if (error)
      return error;
    error = CU(cuMemcpyHtoD_v2)(pointer, &value, 4);
    if (!error)
      error = CU(cuCtxSynchronize)();
    const CUresult freed = CU(cuMemFree_v2)(pointer);
    return error ? error : freed;
  };
  unsigned n = 1;
  for (;; ++n) {
    inject("*", n, CUDA_ERROR_UNKNOWN);
    const CUresult error = program();
    if (CU(kiln_fake_cuda_injections_waiting)())
      break;
    EXPECT_EQ(error, CUDA_ERROR_UNKNOWN);
  }
  EXPECT_EQ(n, 5U);
  CU(kiln_fake_cuda_inject_nothing)();
  EXPECT_EQ(alive().allocations, 1U); // of the run whose cuMemFree failed
}

TEST_F(Control, LeaksAreReported) {
  leaksAreMeant = true;
  allocate(100);
  stream();
  event();
  pinned(4);
  const CUstream s = stream();
  kernel("twice");
  OK(CU(cuStreamBeginCapture_v2)(s, captureRelaxed));
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUlinkState link = nullptr;
  OK(CU(cuStreamEndCapture)(s, &graph));
  OK(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  OK(CU(cuLinkCreate_v2)(0, nullptr, nullptr, &link));
  CUcontext primary = nullptr;
  OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
  kiln_fake_cuda_leaks_t leaks = alive();
  EXPECT_EQ(leaks.contexts, 1U);
  EXPECT_EQ(leaks.primary_references, 1U);
  EXPECT_EQ(leaks.modules, 1U);
  EXPECT_EQ(leaks.allocations, 1U);
  EXPECT_EQ(leaks.allocated_bytes, 100U);
  EXPECT_EQ(leaks.pinned, 1U);
  EXPECT_EQ(leaks.streams, 2U);
  EXPECT_EQ(leaks.events, 1U);
  EXPECT_EQ(leaks.graphs, 1U);
  EXPECT_EQ(leaks.executables, 1U);
  EXPECT_EQ(leaks.links, 1U);
  OK(CU(cuCtxDestroy_v2)(context));
  leaks = alive();
  EXPECT_EQ(leaks.streams + leaks.modules + leaks.pinned, 0U);
  EXPECT_EQ(leaks.orphans, 9U);
  CU(kiln_fake_cuda_reset)(&leaks);
  EXPECT_EQ(leaks.primary_references, 1U);
  leaks = alive();
  EXPECT_EQ(leaks.primary_references + leaks.orphans, 0U);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_NOT_INITIALIZED);
  begin();
}

TEST_F(Control, WhatACallLacksInAnOldDriver) {
  const CUlaunchConfig config{};
  EXPECT_EQ(CU(cuLaunchKernelEx)(&config, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  CU(kiln_fake_cuda_set_driver_version)(11070);
  EXPECT_EQ(CU(cuLaunchKernelEx)(&config, nullptr, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  CU(kiln_fake_cuda_set_driver_version)(11080);
  EXPECT_EQ(CU(cuLaunchKernelEx)(&config, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuTensorMapEncodeTiled)(nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 0, 0, 0),
            CUDA_ERROR_NOT_SUPPORTED);
  CU(kiln_fake_cuda_set_absent)("cuCtxSynchronize,cuMemAlloc_v2");
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_NOT_SUPPORTED);
}

/// The old library exports no function that an old driver lacks.
TEST_F(Control, TheOldLibrary) {
  void *old = dlopen(KILN_FAKE_CUDA_OLD, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(old) << dlerror();
  EXPECT_TRUE(dlsym(old, "cuLaunchKernel"));
  EXPECT_TRUE(dlsym(old, "kiln_fake_cuda_reset"));
  EXPECT_FALSE(dlsym(old, "cuLaunchKernelEx"));
  EXPECT_FALSE(dlsym(old, "cuTensorMapEncodeTiled"));
  EXPECT_FALSE(dlsym(library(), "cuMemAllocManaged")); // neither library exports functions that are not modelled
}

class Environment : public Cuda {
protected:
  void TearDown() override {
    for (const char *name : {"DEVICES", "VERSION", "ABSENT", "ORDER", "INJECT", "LOG"})
      unsetenv((std::string("KILN_FAKE_CUDA_") + name).c_str());
    Cuda::TearDown();
  }
  static void set(const char *name, const char *value) {
    setenv(name, value, 1);
    CU(kiln_fake_cuda_reset)(nullptr);
  }
};

TEST_F(Environment, TheMachine) {
  set("KILN_FAKE_CUDA_DEVICES", "8.0:16,9.0");
  set("KILN_FAKE_CUDA_VERSION", "11020");
  set("KILN_FAKE_CUDA_ABSENT", "cuDeviceGetName");
  set("KILN_FAKE_CUDA_INJECT", "cuDeviceGetCount:2:999");
  int value = 0;
  char name[10];
  OK(CU(cuInit)(0));
  OK(CU(cuDeviceGetCount)(&value));
  EXPECT_EQ(value, 2);
  EXPECT_EQ(CU(cuDeviceGetCount)(&value), CUDA_ERROR_UNKNOWN);
  OK(CU(cuDriverGetVersion)(&value));
  EXPECT_EQ(value, 11020);
  EXPECT_EQ(CU(cuDeviceGetName)(name, sizeof name, 0), CUDA_ERROR_NOT_SUPPORTED);
  set("KILN_FAKE_CUDA_DEVICES", "none");
  EXPECT_EQ(CU(cuInit)(0), CUDA_ERROR_NO_DEVICE);
}

TEST_F(Environment, MistakesEndTheProcess) {
  EXPECT_EXIT(set("KILN_FAKE_CUDA_DEVICES", "9"), ::testing::ExitedWithCode(2), "KILN_FAKE_CUDA_DEVICES=9 is not");
  EXPECT_EXIT(set("KILN_FAKE_CUDA_DEVICES", "9.0:x"), ::testing::ExitedWithCode(2), "is not understood");
  EXPECT_EXIT(set("KILN_FAKE_CUDA_ORDER", "random"), ::testing::ExitedWithCode(2), "is not understood");
  EXPECT_EXIT(set("KILN_FAKE_CUDA_INJECT", "cuInit:0:1"), ::testing::ExitedWithCode(2), "is not understood");
  EXPECT_EQ(CU(kiln_fake_cuda_set_devices)("9.0,"), 1);
}

TEST_F(Environment, TheLog) {
  const std::string path = (std::filesystem::temp_directory_path() / "kiln_fake_cuda.log").string();
  std::filesystem::remove(path);
  set("KILN_FAKE_CUDA_LOG", path.c_str());
  OK(CU(cuInit)(0));
  int count = 0;
  EXPECT_EQ(CU(cuInit)(1), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuDeviceGetCount)(&count));
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), "cuInit 0\ncuInit 1\ncuDeviceGetCount 0\n");
  std::filesystem::remove(path);
}

/// Each thread has a context of one of two devices, with its own stream and memory.
TEST_F(Control, ManyThreads) {
  OK(CU(cuCtxDestroy_v2)(context));
  context = nullptr;
  CU(kiln_fake_cuda_reset)(nullptr);
  ASSERT_EQ(CU(kiln_fake_cuda_set_devices)("9.0,8.0"), 0);
  OK(CU(cuInit)(0));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      CUcontext mine = nullptr;
      CUmodule module = nullptr;
      CUfunction function = nullptr;
      CUstream s = nullptr;
      CUdeviceptr pointer = 0;
      unsigned value = t;
      CUresult error = CU(cuCtxCreate_v2)(&mine, 0, static_cast<int>(t % 2));
      const auto then = [&](CUresult next) { error = error ? error : next; };
      then(CU(cuModuleLoadData)(&module, simpleKernels));
      then(CU(cuModuleGetFunction)(&function, module, "twice"));
      then(CU(cuStreamCreate)(&s, streamNonBlocking));
      then(CU(cuMemAlloc_v2)(&pointer, 4));
      then(CU(cuMemcpyHtoDAsync_v2)(pointer, &value, 4, s));
      void *parameters[] = {&pointer};
      for (int i = 0; i < 10; ++i) {
        then(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, s, parameters, nullptr));
        if (i % 3 == 0)
          then(CU(cuStreamSynchronize)(s));
      }
      then(CU(cuMemcpyDtoHAsync_v2)(&value, pointer, 4, s));
      then(CU(cuStreamSynchronize)(s));
      then(CU(cuCtxDestroy_v2)(mine));
      right += error == CUDA_SUCCESS && value == t << 10;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 8);
}

} // namespace
} // namespace kiln::fake
