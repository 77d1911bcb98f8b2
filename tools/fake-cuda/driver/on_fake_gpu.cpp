// SPDX-License-Identifier: Apache-2.0
//
// A program that links this file runs CUDA models on the interpreter of tools/fake-cuda, unless KILN_CUDA_DRIVER names
// another driver, such as libcuda.so.1 on a machine with a GPU.
#include <cstdlib>

namespace {

[[maybe_unused]] const int isSet = setenv("KILN_CUDA_DRIVER", KILN_FAKE_CUDA_DRIVER, /*overwrite=*/0);

} // namespace
