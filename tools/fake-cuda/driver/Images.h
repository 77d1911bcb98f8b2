// SPDX-License-Identifier: Apache-2.0
//
// Code that a client loads: PTX text, or the output of the fake linker.
#pragma once

#include <string>
#include <string_view>

#include "Driver.h"

namespace kiln::fake {

/// The PTX version and target, from the head of a text: 84 for .version 8.4, 90 for .target sm_90 or sm_90a.
struct Head {
  int version = 0, target = 0;
  bool exact = false; ///< sm_90a: for this capability only
};

/// The result of loading: the module, or an error code and the text for the log.
struct Loading {
  CUresult code = CUDA_SUCCESS;
  std::string words;
  std::optional<ptx::Module> module;
  Head head;
};
Loading parsePtx(const Driver &driver, const Device &device, std::string_view text);

/// Returns the PTX after a header that names the device it was linked for.
std::vector<char> makeCubin(const Device &device, std::string_view text);
bool isCubin(const void *image);
/// Returns the PTX text. The code is NO_BINARY_FOR_GPU if the cubin was linked for another device.
Loading openCubin(const Device &device, const void *image, std::string_view &text);

/// Returns INVALID_VALUE for an option that the driver does not have, or a log without a size.
CUresult readOptions(unsigned count, const CUjit_option *options, void **values, JitOptions &read);

} // namespace kiln::fake
