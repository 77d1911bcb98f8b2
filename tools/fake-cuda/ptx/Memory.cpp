// SPDX-License-Identifier: Apache-2.0
//
// Device memory: the map of allocations and the error messages for accesses outside of them.
#include "Memory.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "Fault.h"

namespace kiln::ptx {
namespace {

/// Free space after each allocation: an access past its end does not reach another allocation.
constexpr std::uint64_t gap = 1 << 16;

} // namespace

std::uint64_t Memory::allocate(std::uint64_t size, std::uint64_t alignment) {
  alignment = std::max<std::uint64_t>(alignment, 256);
  next = (next + alignment - 1) / alignment * alignment;
  auto made = std::make_unique<Allocation>();
  made->address = next;
  made->size = size;
  made->data.resize(size);
  made->written.resize(size);
  next += size + gap;
  const std::uint64_t address = made->address;
  allocations.emplace(address, std::move(made));
  return address;
}

bool Memory::release(std::uint64_t address) {
  const auto found = allocations.find(address);
  if (found == allocations.end() || found->second->freed)
    return false;
  found->second->freed = true;
  found->second->data = {};
  found->second->written = {};
  last = nullptr;
  return true;
}

Memory::Allocation *Memory::find(std::uint64_t address, std::uint64_t size) const {
  const auto holds = [&](const Allocation &a) {
    return !a.freed && address >= a.address && size <= a.size && address - a.address <= a.size - size;
  };
  if (last && holds(*last))
    return last;
  auto found = allocations.upper_bound(address);
  if (found == allocations.begin())
    return nullptr;
  --found;
  if (!holds(*found->second))
    return nullptr;
  return last = found->second.get();
}

std::string Memory::why(std::uint64_t address, std::uint64_t size) const {
  auto found = allocations.upper_bound(address);
  if (found != allocations.begin()) {
    const Allocation &a = *std::prev(found)->second;
    if (address - a.address < a.size + gap) {
      if (a.freed)
        return fmt::format("{} bytes at {:#x}, offset {} of an allocation of {} bytes that is freed", size, address,
                           address - a.address, a.size);
      return fmt::format("{} bytes at {:#x}, out of range: offset {} of an allocation of {} bytes", size, address,
                         address - a.address, a.size);
    }
  }
  if (found != allocations.end() && found->first - address < gap)
    return fmt::format("{} bytes at {:#x}, out of range: {} bytes before an allocation", size, address,
                       found->first - address);
  return fmt::format("{} bytes at {:#x}, which is in no allocation", size, address);
}

Bytes Memory::access(std::uint64_t address, std::uint64_t size, const char *verb, int lane) {
  Allocation *a = find(address, size);
  if (!a)
    throw Fault(fmt::format("{} {}", verb, why(address, size)), lane);
  return {a->data.data() + (address - a->address), a->written.data() + (address - a->address)};
}

std::optional<std::string> Memory::copyIn(std::uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.empty())
    return std::nullopt;
  Allocation *a = find(address, bytes.size());
  if (!a)
    return "copies to " + why(address, bytes.size());
  std::memcpy(a->data.data() + (address - a->address), bytes.data(), bytes.size());
  std::memset(a->written.data() + (address - a->address), 1, bytes.size());
  return std::nullopt;
}

std::optional<std::string> Memory::copyOut(std::uint64_t address, std::span<std::byte> bytes) {
  if (bytes.empty())
    return std::nullopt;
  const Allocation *a = find(address, bytes.size());
  if (!a)
    return "copies from " + why(address, bytes.size());
  std::memcpy(bytes.data(), a->data.data() + (address - a->address), bytes.size());
  return std::nullopt;
}

std::optional<std::string> Memory::copy(std::uint64_t to, std::uint64_t from, std::uint64_t size) {
  if (size == 0)
    return std::nullopt;
  const Allocation *source = find(from, size);
  if (!source)
    return "copies from " + why(from, size);
  Allocation *target = find(to, size);
  if (!target)
    return "copies to " + why(to, size);
  const std::uint64_t at = to - target->address, offset = from - source->address;
  std::memmove(target->data.data() + at, source->data.data() + offset, size);
  std::memmove(target->written.data() + at, source->written.data() + offset, size);
  return std::nullopt;
}

std::uint64_t Memory::unwritten(std::uint64_t address, std::uint64_t size) const {
  const Allocation *a = find(address, size);
  if (!a)
    return size;
  const auto first = a->written.begin() + static_cast<std::ptrdiff_t>(address - a->address);
  return static_cast<std::uint64_t>(std::count(first, first + static_cast<std::ptrdiff_t>(size), 0));
}

} // namespace kiln::ptx
