// SPDX-License-Identifier: Apache-2.0
//
// Replay of captured graphs.
#include "capturing.h"

namespace kiln::fake {
namespace {

class Graphs : public CapturingStream {};

TEST_F(Graphs, WorkIsRecordedAndRunsWithEachLaunch) {
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
  OK(CU(cuGraphDestroy)(graph)); // the executable graph does not need it
  OK(CU(cuGraphLaunch)(run, s));
  EXPECT_EQ(number(pointer), 1U);
  OK(CU(cuGraphLaunch)(run, s));
  OK(CU(cuGraphExecDestroy)(run)); // queued launches do not need it
  EXPECT_EQ(CU(cuGraphLaunch)(run, s), CUDA_ERROR_INVALID_HANDLE);
  OK(CU(cuStreamSynchronize)(s));
  EXPECT_EQ(number(pointer), 16U);
  kiln_fake_cuda_totals_t totals;
  CU(kiln_fake_cuda_totals)(&totals);
  EXPECT_EQ(totals.kernels, 4U);
}

TEST_F(Graphs, PageableMemoryIsRecordedByItsAddress) {
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

TEST_F(Graphs, TheModuleIsGone) {
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

TEST_F(Graphs, TheMemoryIsFreed) {
  leaksAreMeant = true;
  OK(begin());
  OK(twice(s, pointer));
  OK(end());
  OK(CU(cuMemFree_v2)(pointer));
  OK(CU(cuGraphLaunch)(executable(), s));
  EXPECT_EQ(CU(cuStreamSynchronize)(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Graphs, OneGraphDoesNotRunConcurrently) {
  const CUstream t = stream();
  OK(begin());
  OK(twice(s, pointer));
  OK(end());
  const CUgraphExec run = executable();
  OK(store(t, pointer, 10));
  OK(CU(cuGraphLaunch)(run, t));
  OK(CU(cuGraphLaunch)(run, s));
  OK(CU(cuStreamSynchronize)(s)); // this also waits for the launch in t
  EXPECT_EQ(number(pointer), 40U);
}

TEST_F(Graphs, GraphsInGraphs) {
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
