// SPDX-License-Identifier: Apache-2.0
//
// What the fake of NCCL uses of that of CUDA.
#pragma once

#include <cuda_runtime.h>
#include <functional>

namespace kiln::test {

/// The stream's thread does it, in its turn.
void enqueue(cudaStream_t stream, std::function<void()> work);
/// Whether the bytes are of one block that cudaMalloc gave.
bool isOnDevice(const void *memory, size_t bytes);

} // namespace kiln::test
