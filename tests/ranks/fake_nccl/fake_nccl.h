// SPDX-License-Identifier: Apache-2.0
//
// What tests do to the fake of NCCL and CUDA, and what it has noticed.
#pragma once

#include <nccl.h>

namespace kiln::test {

/// How often something was called that NCCL does not permit: a comm that is aborted, in progress, not finalized. Each
/// time a line goes to stderr.
int violations();
/// Something has happened behind the back of `comm`, as to its network.
void breakComm(ncclComm_t comm, ncclResult_t error, const char *words);
/// From now on events have this error, in every thread; cudaSuccess: no more.
void breakEvents(cudaError_t error);
/// From now on the stream is said to be captured.
void capture(cudaStream_t stream);

} // namespace kiln::test
