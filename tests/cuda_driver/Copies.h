// SPDX-License-Identifier: Apache-2.0
//
// Copies: rows between two sides, each in the memory of the host or of the stream's context.
#pragma once

#include "Driver.h"

namespace kiln::fake {

struct Side {
  bool onDevice = false;
  CUdeviceptr address = 0;
  std::byte *host = nullptr;
  std::size_t pitch = 0; ///< bytes from a row to the next one
  /// Of the host's memory: read or written when the copy runs, which has to find it alive.
  bool isPinned = false;
  std::weak_ptr<Pinned> pinned;
  /// Pageable memory as it was when the copy was called.
  std::shared_ptr<std::vector<std::byte>> staged;
};

struct Copy {
  Side to, from;
  std::size_t width = 0, height = 1; ///< bytes, rows
};

Side onDevice(CUdeviceptr address, std::size_t pitch = 0);
Side onHost(const Driver &driver, const void *address, std::size_t bytes, std::size_t pitch = 0);

/// Whether the context has allocated these bytes.
bool isAllocated(const Context &context, CUdeviceptr address, std::size_t bytes);
/// Checks the sides, takes what must be taken at once, and gives the rest to the stream.
CUresult submit(Call &call, const std::shared_ptr<Stream> &stream, Copy copy);

} // namespace kiln::fake
