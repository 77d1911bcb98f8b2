// SPDX-License-Identifier: Apache-2.0
//
// Stream capture: what is recorded, what it forbids, and what graphs do again.
#include <thread>

#include "client.h"

namespace kiln::fake {
namespace {

class Captures : public CudaContext {
protected:
  void SetUp() override {
    CudaContext::SetUp();
    pointer = upload({1});
    kernel("twice"); // modules cannot be loaded in a capture
    s = stream();
  }
  CUresult begin(int mode = captureGlobal) { return CU(cuStreamBeginCapture_v2)(s, mode); }
  CUresult end() { return CU(cuStreamEndCapture)(s, &graph); }
  /// The capture has been invalidated, and says so to its end.
  void expectInvalidated() {
    CUstreamCaptureStatus status = captureStatusNone;
    OK(CU(cuStreamIsCapturing)(s, &status));
    EXPECT_EQ(status, captureStatusInvalidated);
    EXPECT_EQ(twice(s, pointer), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    OK(CU(cuStreamIsCapturing)(s, &status));
    EXPECT_EQ(status, captureStatusNone);
    OK(twice(s, pointer)); // the stream is as before
    OK(CU(cuStreamSynchronize)(s));
  }
  CUgraphExec executable() {
    CUgraphExec made = nullptr;
    EXPECT_EQ(CU(cuGraphInstantiateWithFlags)(&made, graph, 0), CUDA_SUCCESS);
    return made;
  }

  CUdeviceptr pointer = 0;
  CUstream s = nullptr;
  CUgraph graph = nullptr;
};

TEST_F(Captures, WorkIsRecordedAndRunsWithEachLaunch) {
  CUstreamCaptureStatus status = captureStatusNone;
  OK(begin());
  OK(CU(cuStreamIsCapturing)(s, &status));
  EXPECT_EQ(status, captureStatusActive);
  OK(twice(s, pointer));
  OK(twice(s, pointer));
  OK(end());
  EXPECT_EQ(waiting(), 0U);
  EXPECT_EQ(number(pointer), 1U);
  std::size_t count = 0;
  OK(CU(cuGraphGetNodes)(graph, nullptr, &count));
  EXPECT_EQ(count, 2U);
  CUgraphNode nodes[3] = {};
  count = 3;
  OK(CU(cuGraphGetNodes)(graph, nodes, &count));
  EXPECT_EQ(count, 2U);
  EXPECT_NE(nodes[1], nullptr);
  EXPECT_EQ(nodes[2], nullptr);
  const CUgraphExec run = executable();
  OK(CU(cuGraphDestroy)(graph)); // which the executable one does not need
  OK(CU(cuGraphLaunch)(run, s));
  EXPECT_EQ(number(pointer), 1U);
  OK(CU(cuGraphLaunch)(run, s));
  OK(CU(cuGraphExecDestroy)(run)); // nor what is queued that one
  EXPECT_EQ(CU(cuGraphLaunch)(run, s), CUDA_ERROR_INVALID_HANDLE);
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(number(pointer), 16U);
  kiln_fake_cuda_totals_t totals;
  CU(kiln_fake_cuda_totals)(&totals);
  EXPECT_EQ(totals.kernels, 4U);
}

TEST_F(Captures, PageableMemoryIsRecordedByItsAddress) {
  unsigned value = 5;
  OK(begin());
  OK(CU(cuMemcpyHtoDAsync_v2)(pointer, &value, 4, s));
  OK(end());
  const CUgraphExec run = executable();
  for (value = 6; value < 8; ++value) {
    OK(CU(cuGraphLaunch)(run, s));
    OK(CU(cuStreamSynchronize)(s));
    EXPECT_EQ(number(pointer), value);
  }
}

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
  OK(CU(cuStreamIsCapturing)(t, &status));
  EXPECT_EQ(status, captureStatusNone);
  OK(CU(cuGraphLaunch)(executable(), s));
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(number(pointer), 2U);
  EXPECT_EQ(number(other), 2U);
  EXPECT_EQ(CU(cuEventSynchronize)(join), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(CU(cuEventQuery)(fork), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(CU(cuStreamWaitEvent)(t, join, 0), CUDA_ERROR_CAPTURED_EVENT);
  OK(CU(cuEventRecord)(join, t)); // in no capture any more
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
  OK(twice(t, pointer)); // behind the join
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

/// Each of these ends a capture that is not relaxed.
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
  s = stream(); // one that does not block: the legacy stream has nothing to do with it
  OK(begin(captureRelaxed));
  OK(twice(nullptr, pointer));
  OK(end());
}

TEST_F(Captures, AStreamThatGoesEndsIt) {
  OK(begin());
  OK(CU(cuStreamDestroy_v2)(s));
  allocate(16);
}

TEST_F(Captures, GraphsOutliveNothing) {
  leaksAreMeant = true;
  OK(begin());
  OK(twice(s, pointer));
  OK(end());
  const CUgraphExec run = executable();
  OK(CU(cuModuleUnload)(module));
  module = nullptr;
  OK(CU(cuGraphLaunch)(run, s));
  EXPECT_EQ(CU(cuStreamSynchronize)(s), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_NE(std::string(CU(kiln_fake_cuda_failure)()).find("module was unloaded"), std::string::npos);
}

TEST_F(Captures, GraphsWhoseMemoryIsFreed) {
  leaksAreMeant = true;
  OK(begin());
  OK(twice(s, pointer));
  OK(end());
  OK(CU(cuMemFree_v2)(pointer));
  OK(CU(cuGraphLaunch)(executable(), s));
  EXPECT_EQ(CU(cuStreamSynchronize)(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Captures, OneGraphDoesNotRunBesideItself) {
  const CUstream t = stream();
  OK(begin());
  OK(twice(s, pointer));
  OK(end());
  const CUgraphExec run = executable();
  OK(store(t, pointer, 10));
  OK(CU(cuGraphLaunch)(run, t));
  OK(CU(cuGraphLaunch)(run, s));
  OK(CU(cuStreamSynchronize)(s)); // and so t's
  EXPECT_EQ(number(pointer), 40U);
}

TEST_F(Captures, GraphsInGraphs) {
  OK(begin());
  OK(twice(s, pointer));
  OK(end());
  const CUgraphExec inner = executable();
  OK(begin());
  OK(CU(cuGraphLaunch)(inner, s));
  OK(twice(s, pointer));
  OK(end());
  EXPECT_EQ(number(pointer), 1U);
  OK(CU(cuGraphLaunch)(executable(), s));
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(number(pointer), 4U);
  CUgraphExec none = nullptr;
  EXPECT_EQ(CU(cuGraphInstantiateWithFlags)(&none, graph, 1ULL << 40), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuGraphDestroy)(graph));
  EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuGraphInstantiateWithFlags)(&none, graph, 0), CUDA_ERROR_INVALID_HANDLE);
}

} // namespace
} // namespace kiln::fake
