// SPDX-License-Identifier: Apache-2.0
//
// Launches and their errors.
#include "client.h"

namespace kiln::fake {
namespace {

class Kernels : public CudaContext {
protected:
  /// Launches one block with a pointer as its only parameter.
  CUresult shared(CUfunction function, unsigned bytes, CUdeviceptr pointer, unsigned threads = 8) {
    void *parameters[] = {&pointer};
    return CU(cuLaunchKernel)(function, 1, 1, 1, threads, 1, 1, bytes, nullptr, parameters, nullptr);
  }
  CUresult cluster(CUfunction function, unsigned blocks, unsigned size, CUdeviceptr pointer) {
    CUlaunchAttribute attribute{};
    attribute.id = launchClusterDimension;
    attribute.value.clusterDim = {size, 1, 1};
    const CUlaunchConfig config{blocks, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
    void *parameters[] = {&pointer};
    return CU(cuLaunchKernelEx)(&config, function, parameters, nullptr);
  }
};

TEST_F(Kernels, Saxpy) {
  const unsigned n = 300;
  std::vector<float> x(n), y(n), got(n);
  for (unsigned i = 0; i < n; ++i)
    x[i] = static_cast<float>(i), y[i] = 1000;
  CUdeviceptr px = allocate(n * 4), py = allocate(n * 4);
  OK(CU(cuMemcpyHtoDAsync_v2)(px, x.data(), n * 4, nullptr));
  OK(CU(cuMemcpyHtoDAsync_v2)(py, y.data(), n * 4, nullptr));
  float a = 3;
  unsigned count = n;
  void *parameters[] = {&px, &py, &a, &count};
  OK(CU(cuLaunchKernel)(kernel("saxpy"), 3, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
  OK(CU(cuMemcpyDtoH_v2)(got.data(), py, n * 4));
  for (unsigned i = 0; i < n; ++i)
    ASSERT_EQ(got[i], 3 * x[i] + 1000) << i;
  kiln_fake_cuda_totals_t totals;
  CU(kiln_fake_cuda_totals)(&totals);
  EXPECT_EQ(totals.kernels, 1U);
  EXPECT_EQ(totals.copies, 3U);
  EXPECT_GT(totals.warp_instructions, 100U);
}

TEST_F(Kernels, SharedMemory) {
  const CUfunction function = kernel("reverse");
  const CUdeviceptr pointer = upload({1, 2, 3, 4, 5, 6, 7, 8});
  OK(shared(function, 32, pointer));
  EXPECT_EQ(download(pointer, 8), (std::vector<unsigned>{8, 7, 6, 5, 4, 3, 2, 1}));
  OK(shared(function, 49152, pointer));
  EXPECT_EQ(shared(function, 49156, pointer), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuFuncSetAttribute)(function, functionMaxDynamicShared, 65536));
  OK(shared(function, 65536, pointer));
  EXPECT_EQ(shared(function, 65540, pointer), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuFuncSetAttribute)(function, functionMaxDynamicShared, 232449), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuFuncSetAttribute)(function, functionMaxDynamicShared, 232448));
  OK(shared(function, 232448, pointer));
  OK(CU(cuCtxSynchronize)());
  int blocks = 0;
  OK(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 128, 100 << 10));
  EXPECT_EQ(blocks, 2);
  OK(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 1000, 0));
  EXPECT_EQ(blocks, 2);
}

TEST_F(Kernels, TooLittleSharedMemoryIsFound) {
  const CUdeviceptr pointer = upload({1, 2, 3, 4, 5, 6, 7, 8});
  OK(shared(kernel("reverse"), 28, pointer));
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Kernels, GridsAndBlocksHaveLimits) {
  const CUfunction function = kernel("twice");
  CUdeviceptr pointer = upload({1});
  void *parameters[] = {&pointer};
  const auto run = [&](std::array<unsigned, 3> grid, std::array<unsigned, 3> block) {
    return CU(cuLaunchKernel)(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, nullptr, parameters,
                              nullptr);
  };
  EXPECT_EQ(run({0, 1, 1}, {1, 1, 1}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run({1, 1, 1}, {1, 0, 1}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run({1, 1, 1}, {1025, 1, 1}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run({1, 1, 1}, {1, 1, 65}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run({1, 65536, 1}, {1, 1, 1}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run({0x80000000, 1, 1}, {1, 1, 1}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(waiting(), 0U);
}

TEST_F(Kernels, ParametersByPointersOrInABuffer) {
  const CUfunction function = kernel("store");
  struct {
    CUdeviceptr pointer;
    unsigned value;
  } packed{upload({0}), 42};
  std::size_t size = 12;
  void *extra[] = {launchParameterBuffer, &packed, launchParameterBytes, &size, nullptr};
  const auto run = [&](void **parameters, void **more) {
    return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, more);
  };
  OK(run(nullptr, extra));
  EXPECT_EQ(number(packed.pointer), 42U);
  size = 16;
  EXPECT_EQ(run(nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  void *missing[] = {&packed.pointer, nullptr};
  EXPECT_EQ(run(missing, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Kernels, AFaultStaysWithItsContext) {
  leaksAreMeant = true;
  CUdeviceptr pointer = upload({1, 2});
  OK(launch(kernel("wild"), nullptr, 1, pointer));
  OK(twice(nullptr, pointer)); // the error is not yet known
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(waiting(), 0U);
  const std::string words = CU(kiln_fake_cuda_failure)();
  EXPECT_NE(words.find("kernel wild, line"), std::string::npos) << words;
  EXPECT_NE(words.find("out of range"), std::string::npos) << words;
  unsigned value = 0;
  CUstream made = nullptr;
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&value, pointer, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(CU(cuMemFree_v2)(pointer), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(CU(cuStreamCreate)(&made, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(CU(cuModuleUnload)(module), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdevice device = -1;
  OK(CU(cuCtxGetDevice)(&device)); // which involves no work
  OK(CU(cuCtxDestroy_v2)(context));
  context = nullptr;
  kiln_fake_cuda_leaks_t leaks;
  CU(kiln_fake_cuda_alive)(&leaks);
  EXPECT_EQ(leaks.orphans, 0U); // they could not have been released
  CUcontext other = nullptr;
  OK(CU(cuCtxCreate_v2)(&other, 0, 0));
  OK(CU(cuCtxSynchronize)());
  OK(CU(cuCtxDestroy_v2)(other));
}

TEST_F(Kernels, WhatComesAfterAFaultDoesNotRun) {
  CUdeviceptr pointer = upload({1, 2});
  unsigned got = 9;
  OK(launch(kernel("wild"), stream(0), 1, pointer));
  OK(CU(cuMemcpyDtoHAsync_v2)(&got, pointer, 4, nullptr));
  EXPECT_EQ(CU(cuStreamSynchronize)(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(got, 9U);
}

TEST_F(Kernels, OtherFaults) {
  OK(launch(kernel("broken"), nullptr, 1));
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_LAUNCH_FAILED);
  restart("9.0");
  OK(launch(kernel("twice"), nullptr, 1, upload({1, 1}) + 2));
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_MISALIGNED_ADDRESS);
  restart("9.0");
  OK(launch(kernel("twice"), nullptr, 1, allocate(4))); // uninitialised memory
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_LAUNCH_FAILED);
  restart("9.0");
  CU(kiln_fake_cuda_set_instruction_limit)(1000);
  OK(launch(kernel("spin"), nullptr, 1));
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST_F(Kernels, Clusters) {
  const CUfunction function = kernel("ranks", clusterKernel);
  const CUdeviceptr pointer = upload(std::vector<unsigned>(16, 9));
  OK(cluster(function, 4, 2, pointer));
  EXPECT_EQ(download(pointer, 4), (std::vector<unsigned>{0, 1, 0, 1}));
  EXPECT_EQ(cluster(function, 5, 2, pointer), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(cluster(function, 16, 16, pointer), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  OK(CU(cuFuncSetAttribute)(function, functionNonPortableCluster, 1));
  OK(cluster(function, 16, 16, pointer));
  EXPECT_EQ(number(pointer + 60), 15U);
  CUlaunchAttribute attribute{};
  attribute.id = 99;
  const CUlaunchConfig config{1, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
  EXPECT_EQ(CU(cuLaunchKernelEx)(&config, function, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  restart("8.0");
  EXPECT_EQ(cluster(kernel("twice"), 2, 2, upload({1})), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Kernels, TensorMaps) {
  std::vector<unsigned> values(8 * 16);
  std::iota(values.begin(), values.end(), 0);
  const CUdeviceptr tensor = upload(values), pointer = upload(std::vector<unsigned>(32));
  CUtensorMap map;
  const std::uint64_t extents[] = {16, 8}, strides[] = {64}, odd[] = {65};
  const std::uint32_t box[] = {8, 4}, wide[] = {512, 4}, huge[] = {65536 + 8, 4}, ones[] = {1, 1};
  void *address = reinterpret_cast<void *>(static_cast<std::uintptr_t>(tensor));
  const auto encode = [&](const std::uint64_t *pitch, const std::uint32_t *boxes, int swizzle) {
    return CU(cuTensorMapEncodeTiled)(&map, 2, 2, address, extents, pitch, boxes, ones, 0, swizzle, 2, 0);
  };
  EXPECT_EQ(encode(odd, box, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(encode(strides, wide, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(encode(strides, huge, 0), CUDA_ERROR_INVALID_VALUE); // not truncated to 8
  EXPECT_EQ(encode(strides, box, 9), CUDA_ERROR_INVALID_VALUE);
  OK(encode(strides, box, 0));
  OK(launch(kernel("copy", tensorKernel), nullptr, 32, map, pointer));
  const std::vector<unsigned> got = download(pointer, 32);
  for (unsigned i = 0; i < 32; ++i)
    ASSERT_EQ(got[i], (i / 8 + 2) * 16 + i % 8) << i;
  restart("8.0");
  EXPECT_EQ(encode(strides, box, 0), CUDA_ERROR_NOT_SUPPORTED);
}

} // namespace
} // namespace kiln::fake
