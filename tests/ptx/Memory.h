// SPDX-License-Identifier: Apache-2.0
//
// Device memory: allocations with addresses that are never used twice, so that a freed one is known as such, and for
// each byte whether it has been written. Alignment counts from the address, which is a multiple of 256.
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
  /// Addresses go up from `first`: two memories of one process may want ranges of their own.
  explicit Memory(std::uint64_t first = 0x7f0000000000) : next(first) {}
  /// The address of `size` bytes, none of them written. Each allocation is kept apart from the next one.
  std::uint64_t allocate(std::uint64_t size, std::uint64_t alignment = 256);
  /// Whether there was an allocation at `address` to be freed.
  bool release(std::uint64_t address);

  /// The words of what is wrong, or nothing. Bytes that were never written are zeros to the
  /// host, which may copy padding.
  std::optional<std::string> copyIn(std::uint64_t address, std::span<const std::byte> bytes);
  std::optional<std::string> copyOut(std::uint64_t address, std::span<std::byte> bytes);
  /// Between allocations, with the marks of what has been written.
  std::optional<std::string> copy(std::uint64_t to, std::uint64_t from, std::uint64_t size);
  /// How many of the bytes have not been written; all of them if they are not in one allocation.
  std::uint64_t unwritten(std::uint64_t address, std::uint64_t size) const;

  /// Of an access by a kernel; throws Fault with the words.
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
