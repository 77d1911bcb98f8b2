// SPDX-License-Identifier: Apache-2.0
//
// Copies: rows between two sides, each in host memory or in the memory of the stream's context.
#pragma once

#include "Driver.h"

namespace kiln::fake {

struct Side {
  bool onDevice = false;
  CUdeviceptr address = 0;
  std::byte *host = nullptr;
  std::size_t pitch = 0; ///< bytes from one row to the next
  /// Pinned host memory is read or written when the copy runs, and must still be allocated then.
  bool isPinned = false;
  std::weak_ptr<Pinned> pinned;
  /// The contents of pageable memory at the time of the call.
  std::shared_ptr<std::vector<std::byte>> staged;
};

struct Copy {
  Side to, from;
  std::size_t width = 0, height = 1; ///< in bytes and rows
};

Side onDevice(CUdeviceptr address, std::size_t pitch = 0);
Side onHost(const Driver &driver, const void *address, std::size_t bytes, std::size_t pitch = 0);

/// Whether all of these bytes are allocated in the context.
bool isAllocated(const Context &context, CUdeviceptr address, std::size_t bytes);
/// Checks the sides, stages pageable memory, and submits the copy to the stream.
CUresult submit(Call &call, const std::shared_ptr<Stream> &stream, Copy copy);

} // namespace kiln::fake
