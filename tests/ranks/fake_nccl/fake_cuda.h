// SPDX-License-Identifier: Apache-2.0
//
// The functions of the fake CUDA that the fake NCCL uses.
#pragma once

#include <cuda_runtime.h>
#include <functional>

namespace kiln::test {

/// Runs `work` on the stream's thread, after the work that was enqueued before it.
void enqueue(cudaStream_t stream, std::function<void()> work);
/// Whether the bytes are within one block that cudaMalloc returned.
bool isOnDevice(const void *memory, size_t bytes);

} // namespace kiln::test
