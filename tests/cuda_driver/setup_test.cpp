// SPDX-License-Identifier: Apache-2.0
//
// Initialisation, devices and contexts.
#include <thread>

#include "client.h"

namespace kiln::fake {
namespace {

class Setup : public Cuda {};

TEST_F(Setup, NothingWorksBeforeCuInit) {
  int count = 0;
  CUdeviceptr pointer = 0;
  CUcontext context = nullptr;
  EXPECT_EQ(CU(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&pointer, 16), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(CU(cuCtxGetCurrent)(&context), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
  OK(CU(cuDriverGetVersion)(&count)); // needs no initialisation
  EXPECT_EQ(count, 12040);
  EXPECT_EQ(CU(cuInit)(1), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuInit)(0));
  OK(CU(cuInit)(0));
  OK(CU(cuDeviceGetCount)(&count));
  EXPECT_EQ(count, 1);
}

TEST_F(Setup, ErrorsHaveNames) {
  const char *text = nullptr;
  OK(CU(cuGetErrorName)(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  OK(CU(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(CU(cuGetErrorName)(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

TEST_F(Setup, NoDevice) {
  ASSERT_EQ(CU(kiln_fake_cuda_set_devices)("none"), 0);
  EXPECT_EQ(CU(cuInit)(0), CUDA_ERROR_NO_DEVICE);
  int count = 0;
  EXPECT_EQ(CU(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED);
}

int attribute(int id, CUdevice device) {
  int value = -1;
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, id, device), CUDA_SUCCESS) << id;
  return value;
}

TEST_F(Setup, DevicesDiffer) {
  ASSERT_EQ(CU(kiln_fake_cuda_set_devices)("8.0:64,8.6,9.0:2048"), 0);
  OK(CU(cuInit)(0));
  int count = 0;
  OK(CU(cuDeviceGetCount)(&count));
  EXPECT_EQ(count, 3);
  CUdevice device = -1;
  OK(CU(cuDeviceGet)(&device, 2));
  EXPECT_EQ(attribute(75, device) * 10 + attribute(76, device), 90);
  EXPECT_EQ(attribute(75, 0) * 10 + attribute(76, 0), 80);
  EXPECT_EQ(attribute(75, 1) * 10 + attribute(76, 1), 86);
  EXPECT_EQ(attribute(97, 0), 166912);
  EXPECT_EQ(attribute(97, 1), 101376);
  EXPECT_EQ(attribute(97, 2), 232448);
  EXPECT_EQ(attribute(120, 0), 0);
  EXPECT_EQ(attribute(120, 2), 1);
  for (const int id : {1, 8, 10, 16, 38, 39, 82})
    EXPECT_GT(attribute(id, 0), 0) << id;
  int value = 0;
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, 9999, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, 75, 3), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CU(cuDeviceGet)(&device, 3), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(CU(cuDeviceGet)(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  std::size_t bytes = 0;
  OK(CU(cuDeviceTotalMem_v2)(&bytes, 0));
  EXPECT_EQ(bytes, 64U << 20);
  OK(CU(cuDeviceTotalMem_v2)(&bytes, 1));
  EXPECT_EQ(bytes, 1024U << 20);
}

TEST_F(Setup, NamesAndUuids) {
  ASSERT_EQ(CU(kiln_fake_cuda_set_devices)("8.0,9.0"), 0);
  OK(CU(cuInit)(0));
  char name[64], narrow[4];
  OK(CU(cuDeviceGetName)(name, sizeof name, 1));
  EXPECT_STREQ(name, "Interpreted GPU 9.0");
  OK(CU(cuDeviceGetName)(narrow, sizeof narrow, 1));
  EXPECT_STREQ(narrow, "Int");
  CUuuid first, second;
  OK(CU(cuDeviceGetUuid)(&first, 0));
  OK(CU(cuDeviceGetUuid)(&second, 1));
  EXPECT_NE(std::string(first.bytes, 16), std::string(second.bytes, 16));
}

TEST_F(Setup, MostCallsNeedACurrentContext) {
  OK(CU(cuInit)(0));
  CUdeviceptr pointer = 0;
  CUstream stream = nullptr;
  CUdevice device = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&pointer, 16), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuStreamCreate)(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuCtxGetDevice)(&device), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuCtxPopCurrent_v2)(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext context = nullptr;
  OK(CU(cuDevicePrimaryCtxRetain)(&context, 0)); // does not make it current
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_INVALID_CONTEXT);
  OK(CU(cuCtxSetCurrent)(context));
  OK(CU(cuCtxSynchronize)());
  OK(CU(cuCtxSetCurrent)(nullptr));
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_INVALID_CONTEXT);
  OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
}

TEST_F(Setup, ContextsStack) {
  ASSERT_EQ(CU(kiln_fake_cuda_set_devices)("9.0,8.0"), 0);
  OK(CU(cuInit)(0));
  CUcontext first = nullptr, second = nullptr, got = nullptr;
  CUdevice device = -1;
  OK(CU(cuCtxCreate_v2)(&first, 0, 0));
  OK(CU(cuCtxCreate_v2)(&second, 0, 1));
  OK(CU(cuCtxGetDevice)(&device));
  EXPECT_EQ(device, 1);
  OK(CU(cuCtxPushCurrent_v2)(first));
  OK(CU(cuCtxGetCurrent)(&got));
  EXPECT_EQ(got, first);
  OK(CU(cuCtxPopCurrent_v2)(&got));
  EXPECT_EQ(got, first);
  OK(CU(cuCtxSetCurrent)(first)); // replaces the second one
  OK(CU(cuCtxDestroy_v2)(first)); // which also pops it
  OK(CU(cuCtxGetCurrent)(&got));
  EXPECT_EQ(got, first);
  EXPECT_EQ(CU(cuCtxGetDevice)(&device), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(CU(cuCtxSetCurrent)(first), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuCtxDestroy_v2)(first), CUDA_ERROR_INVALID_CONTEXT);
  OK(CU(cuCtxDestroy_v2)(second));
}

TEST_F(Setup, PrimaryContextsAreCounted) {
  OK(CU(cuInit)(0));
  CUcontext first = nullptr, second = nullptr;
  EXPECT_EQ(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&first, 1), CUDA_ERROR_INVALID_DEVICE);
  OK(CU(cuDevicePrimaryCtxRetain)(&first, 0));
  OK(CU(cuDevicePrimaryCtxRetain)(&second, 0));
  EXPECT_EQ(first, second);
  EXPECT_EQ(CU(cuCtxDestroy_v2)(first), CUDA_ERROR_INVALID_CONTEXT);
  OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
  OK(CU(cuCtxSetCurrent)(first));
  OK(CU(cuCtxSynchronize)());
  OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_CONTEXT_IS_DESTROYED); // it stays on the stack
  EXPECT_EQ(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Setup, TheCurrentContextIsTheThreads) {
  OK(CU(cuInit)(0));
  CUcontext context = nullptr;
  OK(CU(cuCtxCreate_v2)(&context, 0, 0));
  CUresult before = CUDA_SUCCESS, after = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    before = CU(cuCtxSynchronize)();
    CU(cuCtxSetCurrent)(context);
    after = CU(cuCtxSynchronize)();
  }).join();
  EXPECT_EQ(before, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(after, CUDA_SUCCESS);
  OK(CU(cuCtxDestroy_v2)(context));
}

TEST_F(Setup, ObjectsOfADestroyedContextAreUnknown) {
  OK(CU(cuInit)(0));
  CUcontext first = nullptr, second = nullptr;
  OK(CU(cuCtxCreate_v2)(&first, 0, 0));
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr pointer = 0;
  OK(CU(cuStreamCreate)(&stream, 0));
  OK(CU(cuEventCreate)(&event, 0));
  OK(CU(cuModuleLoadData)(&module, simpleKernels));
  OK(CU(cuModuleGetFunction)(&function, module, "spin"));
  OK(CU(cuMemAlloc_v2)(&pointer, 16));
  OK(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr)); // which never runs
  OK(CU(cuCtxDestroy_v2)(first));
  OK(CU(cuCtxCreate_v2)(&second, 0, 0));
  EXPECT_EQ(CU(cuStreamSynchronize)(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventSynchronize)(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuModuleUnload)(module), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuMemFree_v2)(pointer), CUDA_ERROR_INVALID_VALUE);
  std::size_t free = 0, total = 0;
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  EXPECT_EQ(free, total);
  OK(CU(cuCtxDestroy_v2)(second));
}

} // namespace
} // namespace kiln::fake
