// SPDX-License-Identifier: Apache-2.0
//
// Controls for tests: they inject failures into the fake NCCL and CUDA, and read what these have detected.
#pragma once

#include <nccl.h>

namespace kiln::test {

/// Returns how many calls were made that NCCL does not permit: on a comm that is aborted, in progress or not finalised.
/// Each of them also prints a line to stderr.
int violations();
/// Injects an asynchronous error into `comm`, such as a network failure.
void breakComm(ncclComm_t comm, ncclResult_t error, const char *words);
/// Makes events return this error from now on, in every thread; cudaSuccess ends that.
void breakEvents(cudaError_t error);
/// Reports the stream as being captured from now on.
void capture(cudaStream_t stream);

} // namespace kiln::test
