// SPDX-License-Identifier: Apache-2.0
//
// Memory of exactly the requested size between two guard pages, so that an access outside of it faults.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace kiln::fuzz {

class GuardedBuffer {
public:
  enum class Edge { Begin, End }; // which end is next to a guard page

  explicit GuardedBuffer(std::size_t bytes, Edge edge = Edge::End) : size(bytes) {
    constexpr std::size_t page = 4096;
    inside = (bytes + page - 1) / page * page;
    mapped = inside + 2 * page;
    void *whole = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED)
      throw std::bad_alloc();
    base = static_cast<char *>(whole);
    mprotect(base + page, inside, PROT_READ | PROT_WRITE);
    begin = base + page + (edge == Edge::End ? inside - bytes : 0);
  }
  GuardedBuffer(GuardedBuffer &&other) noexcept { swap(other); }
  GuardedBuffer &operator=(GuardedBuffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~GuardedBuffer() {
    if (base)
      munmap(base, mapped);
  }

  char *data() const { return begin; }
  std::size_t bytes() const { return size; }
  void fill(unsigned char value) { std::memset(begin, value, size); }
  /// Makes writes fault from now on, too.
  void makeReadOnly() { mprotect(base + 4096, inside, PROT_READ); }

private:
  void swap(GuardedBuffer &other) {
    std::swap(base, other.base);
    std::swap(begin, other.begin);
    std::swap(size, other.size);
    std::swap(inside, other.inside);
    std::swap(mapped, other.mapped);
  }

  char *base = nullptr, *begin = nullptr;
  std::size_t size = 0, inside = 0, mapped = 0;
};

} // namespace kiln::fuzz
