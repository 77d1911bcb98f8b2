// SPDX-License-Identifier: Apache-2.0
//
// Code that a client loads: the text of PTX, or what the fake linker makes of it.
#pragma once

#include <string>
#include <string_view>

#include "Driver.h"

namespace kiln::fake {

/// What a text is for, from its head: 84 for .version 8.4, 90 for .target sm_90 or sm_90a.
struct Head {
  int version = 0, target = 0;
  bool exact = false; ///< sm_90a: for this capability alone
};

/// Loads or refuses, with the words for the log.
struct Loading {
  CUresult code = CUDA_SUCCESS;
  std::string words;
  std::optional<ptx::Module> module;
  Head head;
};
Loading parsePtx(const Driver &driver, const Device &device, std::string_view text);

/// PTX behind a header that names the device it was linked for.
std::vector<char> makeCubin(const Device &device, std::string_view text);
bool isCubin(const void *image);
/// The text; its code is NO_BINARY_FOR_GPU for another device's.
Loading openCubin(const Device &device, const void *image, std::string_view &text);

/// INVALID_VALUE for an option that the driver does not have, or a log without a size.
CUresult readOptions(unsigned count, const CUjit_option *options, void **values, JitOptions &read);

} // namespace kiln::fake
