// SPDX-License-Identifier: Apache-2.0
//
// Device memory: allocations with addresses that are never reused, so that a freed one is recognised, and for each byte
// whether it has been written. Alignment is relative to the address, which is a multiple of 256.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln::ptx {

/// Bytes, and for each whether it has been written (0 or 1).
struct Bytes {
  std::byte *data;
  std::uint8_t *written;
};

class Memory {
public:
  /// Addresses increase from `first`: two memories of one process may need separate ranges.
  explicit Memory(std::uint64_t first = 0x7f0000000000) : next(first) {}
  /// Allocates `size` unwritten bytes. There is a gap between allocations.
  std::uint64_t allocate(std::uint64_t size, std::uint64_t alignment = 256);
  /// Frees an allocation. Returns false if there is none at `address`.
  bool release(std::uint64_t address);

  /// Return the error message, or nothing. The host reads unwritten bytes as zeros, since it may copy padding.
  std::optional<std::string> copyIn(std::uint64_t address, std::span<const std::byte> bytes);
  std::optional<std::string> copyOut(std::uint64_t address, std::span<std::byte> bytes);
  /// Copies between allocations, including which bytes have been written.
  std::optional<std::string> copy(std::uint64_t to, std::uint64_t from, std::uint64_t size);
  /// Returns how many of the bytes have not been written; all of them if they are not in one allocation.
  std::uint64_t unwritten(std::uint64_t address, std::uint64_t size) const;

  /// Checks an access by a kernel; throws Fault with the message.
  Bytes access(std::uint64_t address, std::uint64_t size, const char *verb, int lane);

private:
  struct Allocation {
    std::uint64_t address = 0, size = 0;
    std::vector<std::byte> data;
    std::vector<std::uint8_t> written;
    bool freed = false;
  };

  Allocation *find(std::uint64_t address, std::uint64_t size) const;
  std::string why(std::uint64_t address, std::uint64_t size) const;

  std::map<std::uint64_t, std::unique_ptr<Allocation>> allocations;
  mutable Allocation *last = nullptr;
  std::uint64_t next;
};

} // namespace kiln::ptx
