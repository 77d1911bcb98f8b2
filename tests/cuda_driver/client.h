// SPDX-License-Identifier: Apache-2.0
//
// A client of the driver as a program has it: the library by dlopen, its functions by dlsym. The fixture starts each
// test in the initial state and checks at its end that nothing is leaked.
#pragma once

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "CudaApi.h"
#include "control.h"
#include "kernels.h"

namespace kiln::fake {

#define OK(call) ASSERT_EQ(call, CUDA_SUCCESS)

/// Opens the library as the run time does.
inline void *library() {
  static void *const handle = [] {
    const char *path = std::getenv("KILN_CUDA_DRIVER");
    void *opened = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!opened) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(1);
    }
    return opened;
  }();
  return handle;
}

/// Returns the library's function with the name and type of a declaration.
template <class Function> Function *symbol(const char *name, Function *) {
  auto *found = reinterpret_cast<Function *>(dlsym(library(), name));
  if (!found) {
    std::fprintf(stderr, "the library has no %s\n", name);
    std::exit(1);
  }
  return found;
}
#define CU(name) (::kiln::fake::symbol(#name, static_cast<decltype(&::name)>(nullptr)))

class Cuda : public ::testing::Test {
protected:
  void SetUp() override { CU(kiln_fake_cuda_reset)(nullptr); }
  void TearDown() override {
    kiln_fake_cuda_leaks_t leaks;
    CU(kiln_fake_cuda_reset)(&leaks);
    if (leaksAreMeant)
      return;
    EXPECT_EQ(leaks.contexts + leaks.primary_references + leaks.modules + leaks.allocations + leaks.pinned +
                  leaks.streams + leaks.events + leaks.graphs + leaks.executables + leaks.links,
              0U);
  }
  bool leaksAreMeant = false;
};

/// A fixture with a context of device 0, which is destroyed with all objects that the test has made in it.
class CudaContext : public Cuda {
protected:
  void SetUp() override {
    Cuda::SetUp();
    begin();
  }
  void TearDown() override {
    if (context) {
      EXPECT_EQ(CU(cuCtxDestroy_v2)(context), CUDA_SUCCESS);
    }
    Cuda::TearDown();
  }
  void begin() {
    OK(CU(cuInit)(0));
    OK(CU(cuCtxCreate_v2)(&context, 0, 0));
  }
  /// Starts again on another machine than the default one.
  void restart(const char *devices, int version = 12040) {
    OK(CU(cuCtxDestroy_v2)(context));
    context = nullptr;
    module = nullptr;
    CU(kiln_fake_cuda_reset)(nullptr);
    ASSERT_EQ(CU(kiln_fake_cuda_set_devices)(devices), 0);
    CU(kiln_fake_cuda_set_driver_version)(version);
    begin();
  }

  CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(CU(cuMemAlloc_v2)(&pointer, bytes), CUDA_SUCCESS);
    return pointer;
  }
  CUdeviceptr upload(const std::vector<unsigned> &values) {
    const CUdeviceptr pointer = allocate(values.size() * 4);
    EXPECT_EQ(CU(cuMemcpyHtoD_v2)(pointer, values.data(), values.size() * 4), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    return pointer;
  }
  /// Copies by the legacy stream, which does not wait for non-blocking streams.
  std::vector<unsigned> download(CUdeviceptr pointer, std::size_t count) {
    std::vector<unsigned> values(count);
    EXPECT_EQ(CU(cuMemcpyDtoH_v2)(values.data(), pointer, count * 4), CUDA_SUCCESS);
    return values;
  }
  unsigned number(CUdeviceptr pointer) { return download(pointer, 1)[0]; }

  CUfunction kernel(const char *name, const char *text = simpleKernels) {
    if (!module) {
      EXPECT_EQ(CU(cuModuleLoadData)(&module, text), CUDA_SUCCESS);
    }
    CUfunction function = nullptr;
    EXPECT_EQ(CU(cuModuleGetFunction)(&function, module, name), CUDA_SUCCESS);
    return function;
  }
  /// Launches one block with these parameters.
  template <class... Parameters>
  CUresult launch(CUfunction function, CUstream stream, unsigned threads, const Parameters &...parameters) {
    void *pointers[] = {const_cast<Parameters *>(&parameters)..., nullptr};
    return CU(cuLaunchKernel)(function, 1, 1, 1, threads, 1, 1, 0, stream, pointers, nullptr);
  }
  CUresult store(CUstream stream, CUdeviceptr pointer, unsigned value) {
    return launch(kernel("store"), stream, 1, pointer, value);
  }
  CUresult twice(CUstream stream, CUdeviceptr pointer) { return launch(kernel("twice"), stream, 1, pointer); }
  CUstream stream(unsigned flags = streamNonBlocking) {
    CUstream made = nullptr;
    EXPECT_EQ(CU(cuStreamCreate)(&made, flags), CUDA_SUCCESS);
    return made;
  }
  CUevent event(unsigned flags = 0) {
    CUevent made = nullptr;
    EXPECT_EQ(CU(cuEventCreate)(&made, flags), CUDA_SUCCESS);
    return made;
  }
  unsigned *pinned(std::size_t count) {
    void *pointer = nullptr;
    EXPECT_EQ(CU(cuMemAllocHost_v2)(&pointer, count * 4), CUDA_SUCCESS);
    return static_cast<unsigned *>(pointer);
  }
  static std::uint64_t waiting() {
    kiln_fake_cuda_totals_t totals;
    CU(kiln_fake_cuda_totals)(&totals);
    return totals.waiting;
  }

  CUcontext context = nullptr;
  CUmodule module = nullptr;
};

} // namespace kiln::fake
