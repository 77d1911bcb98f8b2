// SPDX-License-Identifier: Apache-2.0
//
// Device and host memory, and when copies read and write it.
#include "client.h"

namespace kiln::fake {
namespace {

class Memories : public CudaContext {};

TEST_F(Memories, WhatIsAllocatedIsFreed) {
  CUdeviceptr pointer = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
  pointer = allocate(1000);
  EXPECT_EQ(pointer % 256, 0U);
  EXPECT_EQ(CU(cuMemFree_v2)(pointer + 4), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemFree_v2)(pointer));
  EXPECT_EQ(CU(cuMemFree_v2)(pointer), CUDA_ERROR_INVALID_VALUE);
  EXPECT_NE(allocate(1000), pointer);
}

TEST_F(Memories, ADeviceHasAnEnd) {
  restart("9.0:4");
  std::size_t free = 0, total = 0;
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  EXPECT_EQ(total, 4U << 20);
  EXPECT_EQ(free, total);
  const CUdeviceptr most = allocate((4U << 20) - 1024);
  CUdeviceptr more = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&more, 2048), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&more, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  allocate(1000);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
  OK(CU(cuMemFree_v2)(most));
  OK(CU(cuMemAlloc_v2)(&more, 2048));
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  EXPECT_EQ(total - free, 1024U + 2048);
}

TEST_F(Memories, TheHostCannotReachADevice) {
  const CUdeviceptr pointer = upload({1});
  EXPECT_DEATH({ EXPECT_EQ(*reinterpret_cast<volatile unsigned *>(static_cast<std::uintptr_t>(pointer)), 1U); }, "");
}

TEST_F(Memories, OtherContextsDoNotKnowIt) {
  const CUdeviceptr mine = upload({7});
  CUcontext other = nullptr;
  OK(CU(cuCtxCreate_v2)(&other, 0, 0));
  unsigned value = 0;
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&value, mine, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemcpyHtoD_v2)(mine, &value, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemFree_v2)(mine), CUDA_ERROR_INVALID_VALUE);
  EXPECT_NE(allocate(4), mine);
  OK(store(nullptr, mine, 8)); // `kernel` loads its module here
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(CU(cuCtxDestroy_v2)(other));
  EXPECT_EQ(number(mine), 7U);
}

TEST_F(Memories, CopiesStayInTheirAllocation) {
  const CUdeviceptr pointer = upload({1, 2, 3, 4});
  unsigned values[4];
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(values, pointer + 4, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(values, pointer, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(nullptr, pointer, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemsetD8_v2)(pointer + 1, 0, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemsetD32Async)(pointer + 2, 0, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemsetD32Async)(pointer, 0, SIZE_MAX / 4 + 2, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemcpyDtoD_v2)(pointer + 8, pointer, 12), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemcpyDtoH_v2)(values, pointer, 0));
  OK(CU(cuMemcpyDtoD_v2)(pointer + 8, pointer, 8));
  EXPECT_EQ(download(pointer, 4), (std::vector<unsigned>{1, 2, 1, 2}));
}

TEST_F(Memories, Memsets) {
  const CUdeviceptr pointer = upload({1, 2, 3, 4});
  OK(CU(cuMemsetD8_v2)(pointer, 0x11, 4));
  OK(CU(cuMemsetD32Async)(pointer + 8, 77, 2, nullptr));
  OK(CU(cuMemsetD8Async)(pointer + 15, 1, 1, nullptr));
  EXPECT_EQ(waiting(), 3U); // none of the three calls waits
  EXPECT_EQ(download(pointer, 4), (std::vector<unsigned>{0x11111111, 2, 77, 77 + (1U << 24)}));
}

TEST_F(Memories, PageableMemoryIsReadAtTheCall) {
  const CUdeviceptr pointer = upload({0});
  const CUstream s = stream();
  unsigned value = 5;
  OK(CU(cuMemcpyHtoDAsync_v2)(pointer, &value, 4, s));
  value = 6;
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(number(pointer), 5U);
}

TEST_F(Memories, PinnedMemoryIsReadWhenTheCopyRuns) {
  const CUdeviceptr pointer = upload({0});
  const CUstream s = stream();
  unsigned *value = pinned(2);
  value[1] = 5;
  OK(CU(cuMemcpyHtoDAsync_v2)(pointer, value + 1, 4, s));
  value[1] = 6; // too early
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(number(pointer), 6U);
  OK(CU(cuMemFreeHost)(value));
}

TEST_F(Memories, HostMemoryIsWrittenWhenTheCopyRuns) {
  const CUdeviceptr pointer = upload({5});
  const CUstream s = stream();
  unsigned pageable = 0, *locked = pinned(1);
  *locked = 0;
  OK(CU(cuMemcpyDtoHAsync_v2)(&pageable, pointer, 4, s));
  OK(CU(cuMemcpyDtoHAsync_v2)(locked, pointer, 4, s));
  EXPECT_EQ(pageable, 0U);
  EXPECT_EQ(*locked, 0U);
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(pageable, 5U);
  EXPECT_EQ(*locked, 5U);
  OK(CU(cuMemFreeHost)(locked));
}

TEST_F(Memories, PinnedMemoryMustLiveUntilThen) {
  leaksAreMeant = true;
  const CUdeviceptr pointer = upload({5});
  unsigned *value = pinned(1);
  OK(CU(cuMemcpyDtoHAsync_v2)(value, pointer, 4, nullptr));
  OK(CU(cuMemFreeHost)(value));
  EXPECT_EQ(CU(cuMemFreeHost)(value), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(std::string(CU(kiln_fake_cuda_failure)()).find("freed before it ran"), std::string::npos);
}

/// The documentation says: "The DMA to final destination may not have completed."
TEST_F(Memories, ASynchronousCopyOfPageableMemoryMayStillBeUnderWay) {
  const CUdeviceptr pointer = upload({0});
  const CUstream s = stream();
  const unsigned value = 5;
  unsigned *locked = pinned(1), got = 9;
  OK(CU(cuMemcpyHtoD_v2)(pointer, &value, 4));
  OK(CU(cuMemcpyDtoHAsync_v2)(&got, pointer, 4, s)); // in a stream without an order with the legacy one
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(got, 0U);
  OK(CU(cuStreamSynchronize)(nullptr));
  OK(CU(cuMemcpyDtoHAsync_v2)(&got, pointer, 4, s));
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(got, 5U);
  *locked = 6; // pinned memory: the call waits for the copy
  OK(CU(cuMemcpyHtoD_v2)(pointer, locked, 4));
  EXPECT_EQ(waiting(), 0U);
  OK(CU(cuMemFreeHost)(locked));
}

TEST_F(Memories, FreeingWaits) {
  const CUdeviceptr pointer = upload({0}), other = allocate(4);
  const CUstream s = stream();
  unsigned got = 9;
  OK(CU(cuMemcpyDtoHAsync_v2)(&got, pointer, 4, s));
  OK(CU(cuMemFree_v2)(other));
  EXPECT_EQ(got, 0U);
}

TEST_F(Memories, RowsWithPitches) {
  const CUdeviceptr pointer = upload(std::vector<unsigned>(12, 9));
  const CUstream s = stream();
  std::vector<unsigned> values(20);
  std::iota(values.begin(), values.end(), 0);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = memoryHost;
  copy.srcHost = values.data();
  copy.srcPitch = 20, copy.srcXInBytes = 4, copy.srcY = 1;
  copy.dstMemoryType = memoryDevice;
  copy.dstDevice = pointer;
  copy.dstPitch = 16, copy.dstXInBytes = 8;
  copy.WidthInBytes = 8, copy.Height = 3;
  OK(CU(cuMemcpy2DAsync_v2)(&copy, s));
  values.assign(20, 0); // the rows are staged
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(download(pointer, 12), (std::vector<unsigned>{9, 9, 6, 7, 9, 9, 11, 12, 9, 9, 16, 17}));
  copy.dstPitch = 12;
  EXPECT_EQ(CU(cuMemcpy2DAsync_v2)(&copy, s), CUDA_ERROR_INVALID_VALUE);
  copy.dstPitch = 16, copy.dstY = 1;
  EXPECT_EQ(CU(cuMemcpy2DAsync_v2)(&copy, s), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY2D back{};
  back.srcMemoryType = memoryUnified, back.srcDevice = pointer, back.srcPitch = 16;
  back.dstMemoryType = memoryUnified, back.dstDevice = reinterpret_cast<std::uintptr_t>(values.data()),
  back.dstPitch = 4;
  back.srcXInBytes = 8, back.WidthInBytes = 4, back.Height = 3;
  OK(CU(cuMemcpy2DAsync_v2)(&back, s));
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(std::vector<unsigned>(values.begin(), values.begin() + 4), (std::vector<unsigned>{6, 11, 16, 0}));
  back.srcMemoryType = memoryArray;
  EXPECT_EQ(CU(cuMemcpy2DAsync_v2)(&back, s), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Memories, WhosePointer) {
  const CUdeviceptr pointer = allocate(100);
  unsigned *locked = pinned(4), type = 0, pageable = 0;
  const auto host = [](const unsigned *p) { return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(p)); };
  CUcontext owner = nullptr;
  int device = -1;
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  OK(CU(cuPointerGetAttribute)(&type, pointerMemoryType, pointer + 99));
  EXPECT_EQ(type, memoryDevice);
  OK(CU(cuPointerGetAttribute)(&owner, pointerContext, pointer));
  EXPECT_EQ(owner, context);
  OK(CU(cuPointerGetAttribute)(&device, pointerDevice, pointer));
  EXPECT_EQ(device, 0);
  OK(CU(cuPointerGetAttribute)(&start, pointerRangeStart, pointer + 50));
  EXPECT_EQ(start, pointer);
  OK(CU(cuPointerGetAttribute)(&bytes, pointerRangeSize, pointer + 50));
  EXPECT_EQ(bytes, 100U);
  OK(CU(cuPointerGetAttribute)(&type, pointerMemoryType, host(locked + 3)));
  EXPECT_EQ(type, memoryHost);
  EXPECT_EQ(CU(cuPointerGetAttribute)(&type, pointerMemoryType, host(&pageable)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuPointerGetAttribute)(&type, pointerMemoryType, pointer + 100), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuPointerGetAttribute)(&type, 99, pointer), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemFreeHost)(locked));
  void *flagged = nullptr;
  EXPECT_EQ(CU(cuMemHostAlloc)(&flagged, 16, 8), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuMemHostAlloc)(&flagged, 16, 4));
  OK(CU(cuMemFreeHost)(flagged));
}

} // namespace
} // namespace kiln::fake
