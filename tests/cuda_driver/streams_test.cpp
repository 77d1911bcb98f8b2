// SPDX-License-Identifier: Apache-2.0
//
// When and in which order work runs: streams, events, the legacy stream.
#include "client.h"

namespace kiln::fake {
namespace {

class Streams : public CudaContext {};

TEST_F(Streams, WorkWaitsForAWait) {
  const CUdeviceptr pointer = upload({3});
  const CUstream s = stream();
  OK(twice(s, pointer));
  OK(twice(s, pointer));
  EXPECT_EQ(waiting(), 2U);
  EXPECT_EQ(number(pointer), 3U); // the legacy stream does not wait for this one
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(waiting(), 0U);
  EXPECT_EQ(number(pointer), 12U);
  OK(twice(s, pointer));
  OK(CU(cuCtxSynchronize)());
  EXPECT_EQ(number(pointer), 24U);
}

TEST_F(Streams, ParametersAreCopiedAtTheCall) {
  const CUdeviceptr pointer = upload({0});
  unsigned value = 5;
  CUdeviceptr target = pointer;
  void *parameters[] = {&target, &value};
  OK(CU(cuLaunchKernel)(kernel("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  value = 6, target = 0;
  EXPECT_EQ(number(pointer), 5U);
}

TEST_F(Streams, OnlyOneStreamIsWaitedFor) {
  const CUdeviceptr a = upload({1}), b = upload({1});
  const CUstream s = stream(), t = stream();
  OK(twice(s, a));
  OK(twice(t, b));
  OK(CU(cuStreamSynchronize)(t));
  EXPECT_EQ(number(a), 1U);
  EXPECT_EQ(number(b), 2U);
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(number(a), 2U);
}

TEST_F(Streams, AskingMakesProgress) {
  const CUdeviceptr pointer = upload({1});
  const CUstream s = stream();
  OK(CU(cuStreamQuery)(s));
  OK(twice(s, pointer));
  OK(twice(s, pointer));
  EXPECT_EQ(CU(cuStreamQuery)(s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(number(pointer), 2U);
  EXPECT_EQ(CU(cuStreamQuery)(s), CUDA_ERROR_NOT_READY);
  OK(CU(cuStreamQuery)(s));
  EXPECT_EQ(number(pointer), 4U);
}

TEST_F(Streams, EventsOrderStreams) {
  const CUdeviceptr pointer = upload({1});
  const CUstream s = stream(), t = stream();
  const CUevent e = event();
  OK(store(s, pointer, 5));
  OK(CU(cuEventRecord)(e, s));
  OK(store(s, pointer, 50)); // after the event, which t does not wait for
  OK(CU(cuStreamWaitEvent)(t, e, 0));
  OK(twice(t, pointer));
  OK(CU(cuStreamSynchronize)(t));
  EXPECT_EQ(number(pointer), 10U);
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(number(pointer), 50U);
}

TEST_F(Streams, WithoutTheEventTheOrderIsLost) {
  const CUdeviceptr pointer = upload({1});
  const CUstream s = stream(), t = stream();
  OK(store(s, pointer, 5));
  OK(twice(t, pointer));
  OK(CU(cuStreamSynchronize)(t));
  EXPECT_EQ(number(pointer), 2U);
  OK(CU(cuStreamSynchronize)(s));
}

/// A wait for an event that is recorded again later refers to the record at the time of the wait.
TEST_F(Streams, EventsAreWhatTheyWere) {
  const CUdeviceptr a = upload({1}), b = upload({1});
  const CUstream s = stream(), t = stream();
  const CUevent e = event();
  OK(CU(cuStreamWaitEvent)(t, e, 0)); // never recorded: nothing to wait for
  OK(twice(s, a));
  OK(CU(cuEventRecord)(e, s));
  OK(CU(cuStreamWaitEvent)(t, e, 0));
  OK(twice(s, b));
  OK(CU(cuEventRecord)(e, s));
  OK(CU(cuStreamSynchronize)(t));
  EXPECT_EQ(number(a), 2U);
  EXPECT_EQ(number(b), 1U);
  OK(CU(cuEventSynchronize)(e));
  EXPECT_EQ(number(b), 2U);
}

TEST_F(Streams, AskingAnEvent) {
  const CUdeviceptr pointer = upload({1});
  const CUstream s = stream();
  const CUevent e = event();
  OK(CU(cuEventQuery)(e)); // never recorded
  OK(CU(cuEventSynchronize)(e));
  OK(twice(s, pointer));
  OK(CU(cuEventRecord)(e, s));
  EXPECT_EQ(CU(cuEventQuery)(e), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU(cuEventQuery)(e), CUDA_ERROR_NOT_READY);
  OK(CU(cuEventQuery)(e));
  EXPECT_EQ(number(pointer), 2U);
}

TEST_F(Streams, TimesBetweenEvents) {
  const CUdeviceptr pointer = upload({1});
  const CUevent start = event(), end = event(), untimed = event(eventDisableTiming);
  float time = -1;
  EXPECT_EQ(CU(cuEventElapsedTime)(&time, start, end), CUDA_ERROR_INVALID_HANDLE);
  OK(CU(cuEventRecord)(start, nullptr));
  OK(twice(nullptr, pointer));
  OK(CU(cuEventRecord)(end, nullptr));
  OK(CU(cuEventRecord)(untimed, nullptr));
  EXPECT_EQ(CU(cuEventElapsedTime)(&time, start, end), CUDA_ERROR_NOT_READY);
  OK(CU(cuCtxSynchronize)());
  OK(CU(cuEventElapsedTime)(&time, start, end));
  EXPECT_GT(time, 0);
  EXPECT_LT(time, 1);
  EXPECT_EQ(CU(cuEventElapsedTime)(&time, start, untimed), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Streams, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  const CUdeviceptr pointer = upload({1});
  const CUstream s = stream(0), t = stream(0);
  OK(store(s, pointer, 5));
  OK(twice(nullptr, pointer)); // after s
  OK(twice(t, pointer));       // after that
  OK(CU(cuStreamSynchronize)(t));
  EXPECT_EQ(number(pointer), 20U);
}

TEST_F(Streams, TheLegacyStreamAndOthersThatDoNotBlock) {
  const CUdeviceptr pointer = upload({1});
  const CUstream s = stream();
  OK(store(nullptr, pointer, 5));
  OK(twice(s, pointer));
  OK(CU(cuStreamSynchronize)(s));
  unsigned got = 0;
  OK(CU(cuMemcpyDtoHAsync_v2)(&got, pointer, 4, s));
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(got, 2U);
  EXPECT_EQ(number(pointer), 5U);
}

/// In lazy mode, work that no call waits for runs late; in eager mode, it runs early. A missing order fails in one
/// mode.
TEST_F(Streams, EagerStreams) {
  const CUdeviceptr pointer = upload({1});
  const CUstream s = stream(), t = stream();
  CU(kiln_fake_cuda_set_eager)(1);
  OK(twice(s, pointer));
  OK(store(t, pointer, 100)); // should have waited for s
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(waiting(), 0U);
}

TEST_F(Streams, DestroyedStreamsRunToTheirEnd) {
  const CUdeviceptr pointer = upload({1});
  const CUstream s = stream();
  OK(twice(s, pointer));
  OK(CU(cuStreamDestroy_v2)(s));
  EXPECT_EQ(CU(cuStreamSynchronize)(s), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuStreamDestroy_v2)(s), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(twice(s, pointer), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(number(pointer), 1U);
  OK(CU(cuCtxSynchronize)());
  EXPECT_EQ(number(pointer), 2U);
}

TEST_F(Streams, HandlesAreChecked) {
  const CUevent e = event();
  CUstream s = nullptr;
  const CUdeviceptr pointer = upload({1});
  EXPECT_EQ(CU(cuStreamCreate)(&s, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuStreamSynchronize)(reinterpret_cast<CUstream>(e)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuStreamDestroy_v2)(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuMemcpyDtoDAsync_v2)(pointer, pointer, 4, reinterpret_cast<CUstream>(0x1234)),
            CUDA_ERROR_INVALID_HANDLE);
  OK(CU(cuEventDestroy_v2)(e));
  EXPECT_EQ(CU(cuEventDestroy_v2)(e), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventRecord)(e, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuStreamWaitEvent)(nullptr, e, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventQuery)(e), CUDA_ERROR_INVALID_HANDLE);
  OK(CU(cuStreamSynchronize)(reinterpret_cast<CUstream>(1))); // the other handle of the legacy stream
}

/// Kernels and event records need a stream of their context; waits may cross contexts.
TEST_F(Streams, OfAnotherContext) {
  const CUdeviceptr pointer = upload({1});
  const CUfunction function = kernel("twice");
  const CUstream mine = stream();
  const CUevent e = event();
  CUcontext other = nullptr, of = nullptr;
  OK(CU(cuCtxCreate_v2)(&other, 0, 0));
  const CUstream theirs = stream();
  EXPECT_EQ(launch(function, theirs, 1, pointer), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventRecord)(e, theirs), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(launch(function, nullptr, 1, pointer), CUDA_ERROR_INVALID_HANDLE);
  OK(launch(function, mine, 1, pointer));
  OK(CU(cuEventRecord)(e, mine));
  OK(CU(cuStreamWaitEvent)(theirs, e, 0));
  OK(CU(cuStreamSynchronize)(theirs));
  OK(CU(cuStreamGetCtx)(mine, &of));
  EXPECT_EQ(of, context);
  OK(CU(cuCtxDestroy_v2)(other));
  EXPECT_EQ(number(pointer), 2U);
}

} // namespace
} // namespace kiln::fake
