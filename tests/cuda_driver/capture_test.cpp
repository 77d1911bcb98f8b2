// SPDX-License-Identifier: Apache-2.0
//
// Stream capture: forks, joins, and forbidden calls.
#include <thread>

#include "capturing.h"

namespace kiln::fake {
namespace {

class Captures : public CapturingStream {};

TEST_F(Captures, ForkAndJoin) {
  const CUdeviceptr other = upload({1});
  const CUstream t = stream();
  const CUevent fork = event(), join = event();
  OK(begin());
  OK(twice(s, pointer));
  OK(CU(cuEventRecord)(fork, s));
  OK(CU(cuStreamWaitEvent)(t, fork, 0));
  CUstreamCaptureStatus status = captureStatusNone;
  OK(CU(cuStreamIsCapturing)(t, &status));
  EXPECT_EQ(status, captureStatusActive);
  OK(twice(t, other));
  OK(CU(cuEventRecord)(join, t));
  OK(CU(cuStreamWaitEvent)(s, join, 0));
  OK(end());
  std::size_t nodes = 0;
  OK(CU(cuGraphGetNodes)(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 2U); // events are edges
  OK(CU(cuStreamIsCapturing)(t, &status));
  EXPECT_EQ(status, captureStatusNone);
  OK(CU(cuGraphLaunch)(executable(), s));
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(number(pointer), 2U);
  EXPECT_EQ(number(other), 2U);
  EXPECT_EQ(CU(cuEventSynchronize)(join), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(CU(cuEventQuery)(fork), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(CU(cuStreamWaitEvent)(t, join, 0), CUDA_ERROR_CAPTURED_EVENT);
  OK(CU(cuEventRecord)(join, t)); // no longer in a capture
  OK(CU(cuEventSynchronize)(join));
}

TEST_F(Captures, AForkMustJoin) {
  const CUstream t = stream();
  const CUevent fork = event(), join = event();
  OK(begin());
  OK(CU(cuEventRecord)(fork, s));
  OK(CU(cuStreamWaitEvent)(t, fork, 0));
  OK(twice(t, pointer));
  OK(CU(cuEventRecord)(join, t));
  OK(twice(t, pointer)); // after the join event
  OK(CU(cuStreamWaitEvent)(s, join, 0));
  EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(Captures, EventsFromOutside) {
  const CUevent e = event();
  OK(CU(cuEventRecord)(e, s));
  OK(begin());
  EXPECT_EQ(CU(cuStreamWaitEvent)(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  expectInvalidated();
}

TEST_F(Captures, EventsFromInside) {
  const CUevent e = event();
  const std::function<CUresult()> calls[] = {[&] { return CU(cuEventQuery)(e); },
                                             [&] { return CU(cuEventSynchronize)(e); },
                                             [&] { return CU(cuStreamWaitEvent)(nullptr, e, 0); }};
  for (const auto &call : calls) {
    OK(begin(captureRelaxed));
    OK(CU(cuEventRecord)(e, s));
    EXPECT_EQ(call(), &call == &calls[2] ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_ERROR_CAPTURED_EVENT);
    expectInvalidated();
  }
}

TEST_F(Captures, TwoCapturesDoNotMeet) {
  const CUstream t = stream();
  const CUevent e = event();
  OK(begin(captureRelaxed));
  OK(CU(cuStreamBeginCapture_v2)(t, captureRelaxed));
  OK(CU(cuEventRecord)(e, t));
  EXPECT_EQ(CU(cuStreamWaitEvent)(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  expectInvalidated();
  EXPECT_EQ(CU(cuStreamEndCapture)(t, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Captures, BeginAndEnd) {
  const CUstream t = stream();
  const CUevent e = event();
  EXPECT_EQ(end(), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(begin(3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuStreamBeginCapture_v2)(nullptr, captureGlobal), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  OK(begin());
  EXPECT_EQ(begin(), CUDA_ERROR_ILLEGAL_STATE);
  CUresult elsewhere = CUDA_SUCCESS;
  std::thread([&] {
    CU(cuCtxSetCurrent)(context);
    elsewhere = end();
  }).join();
  EXPECT_EQ(elsewhere, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  OK(CU(cuEventRecord)(e, s));
  OK(CU(cuStreamWaitEvent)(t, e, 0));
  EXPECT_EQ(CU(cuStreamEndCapture)(t, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  expectInvalidated();
}

TEST_F(Captures, ARelaxedOneEndsAnywhere) {
  OK(begin(captureRelaxed));
  CUresult elsewhere = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    CU(cuCtxSetCurrent)(context);
    elsewhere = end();
  }).join();
  EXPECT_EQ(elsewhere, CUDA_SUCCESS);
}

/// Each of these calls invalidates a capture that is not relaxed.
TEST_F(Captures, UnsafeCalls) {
  const CUevent e = event();
  CUdeviceptr made = 0;
  void *host = pinned(1), *more = nullptr;
  unsigned value = 0;
  CUmodule loaded = nullptr;
  const std::function<CUresult()> calls[] = {
      [&] { return CU(cuMemAlloc_v2)(&made, 16); },
      [&] { return CU(cuMemFree_v2)(pointer); },
      [&] { return CU(cuMemAllocHost_v2)(&more, 16); },
      [&] { return CU(cuMemHostAlloc)(&more, 16, 0); },
      [&] { return CU(cuMemFreeHost)(host); },
      [&] { return CU(cuModuleLoadData)(&loaded, simpleKernels); },
      [&] { return CU(cuModuleLoadDataEx)(&loaded, simpleKernels, 0, nullptr, nullptr); },
      [&] { return CU(cuModuleUnload)(module); },
      [&] { return CU(cuMemcpyHtoD_v2)(pointer, &value, 4); },
      [&] { return CU(cuMemcpyDtoH_v2)(&value, pointer, 4); },
      [&] { return CU(cuMemcpyDtoD_v2)(pointer, pointer, 4); },
      [&] { return CU(cuMemsetD8_v2)(pointer, 0, 4); },
      [&] { return CU(cuCtxSynchronize)(); },
      [&] { return CU(cuEventQuery)(e); },
      [&] { return CU(cuEventSynchronize)(e); },
      [&] { return CU(cuStreamSynchronize)(s); },
      [&] { return CU(cuStreamQuery)(s); },
  };
  int which = 0;
  for (const auto &call : calls)
    for (const int mode : {captureGlobal, captureThreadLocal}) {
      SCOPED_TRACE(which++ / 2);
      OK(begin(mode));
      EXPECT_EQ(call(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      expectInvalidated();
    }
  OK(CU(cuMemFreeHost)(host));
}

TEST_F(Captures, TheModeSaysWhoIsForbidden) {
  for (const int mode : {captureGlobal, captureThreadLocal, captureRelaxed}) {
    SCOPED_TRACE(mode);
    OK(begin(mode));
    CUresult elsewhere = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
      CUdeviceptr made = 0;
      CU(cuCtxSetCurrent)(context);
      elsewhere = CU(cuMemAlloc_v2)(&made, 16);
    }).join();
    EXPECT_EQ(elsewhere, mode == captureGlobal ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
    if (mode == captureRelaxed) {
      allocate(16);
      EXPECT_EQ(number(pointer), 1U);
      EXPECT_EQ(CU(cuStreamSynchronize)(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); // in every mode
    }
    EXPECT_EQ(end(), mode == captureThreadLocal ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}

TEST_F(Captures, TheLegacyStreamAndCapturesOfBlockingStreams) {
  const CUevent e = event();
  CUstreamCaptureStatus status = captureStatusNone;
  unsigned value = 0;
  s = stream(0);
  const std::function<CUresult()> calls[] = {
      [&] { return twice(nullptr, pointer); },
      [&] { return CU(cuMemcpyDtoHAsync_v2)(&value, pointer, 4, nullptr); },
      [&] { return CU(cuMemcpyDtoH_v2)(&value, pointer, 4); },
      [&] { return CU(cuEventRecord)(e, nullptr); },
      [&] { return CU(cuStreamSynchronize)(nullptr); },
      [&] { return CU(cuStreamQuery)(nullptr); },
  };
  for (const auto &call : calls) {
    OK(begin(captureRelaxed));
    EXPECT_EQ(CU(cuStreamIsCapturing)(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT); // does not invalidate
    EXPECT_EQ(call(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    expectInvalidated();
  }
  s = stream(); // a non-blocking stream, which has no order with the legacy stream
  OK(begin(captureRelaxed));
  OK(twice(nullptr, pointer));
  OK(end());
}

TEST_F(Captures, AStreamThatGoesEndsIt) {
  OK(begin());
  OK(CU(cuStreamDestroy_v2)(s));
  allocate(16);
}

TEST_F(Captures, AContextThatGoesEndsIt) {
  OK(begin());
  OK(CU(cuCtxDestroy_v2)(context));
  OK(CU(cuCtxCreate_v2)(&context, 0, 0));
  allocate(16);
}

} // namespace
} // namespace kiln::fake
