// SPDX-License-Identifier: Apache-2.0
//
// A fixture: a stream that captures, a number on the device that its kernels double, and the captured graph.
#pragma once

#include "client.h"

namespace kiln::fake {

class CapturingStream : public CudaContext {
protected:
  void SetUp() override {
    CudaContext::SetUp();
    pointer = upload({1});
    kernel("twice"); // modules cannot be loaded in a capture
    s = stream();
  }
  CUresult begin(int mode = captureGlobal) { return CU(cuStreamBeginCapture_v2)(s, mode); }
  CUresult end() { return CU(cuStreamEndCapture)(s, &graph); }
  /// Checks that the capture has been invalidated, and that its end returns the error.
  void expectInvalidated() {
    CUstreamCaptureStatus status = captureStatusNone;
    OK(CU(cuStreamIsCapturing)(s, &status));
    EXPECT_EQ(status, captureStatusInvalidated);
    EXPECT_EQ(twice(s, pointer), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    OK(CU(cuStreamIsCapturing)(s, &status));
    EXPECT_EQ(status, captureStatusNone);
    OK(twice(s, pointer)); // the stream works as before
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

} // namespace kiln::fake
