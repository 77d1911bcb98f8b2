// SPDX-License-Identifier: Apache-2.0
//
// Memory for calls of generated code: each buffer touches a guard page at its beginning or its end, and has a pattern
// on its other side. Outputs and arenas are filled with bytes that are NaN as f32.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <vector>
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#elif !defined(__wasi__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace kiln::testing {

/// Which end of a buffer touches the guard page.
enum class Guard { front, back };

/// Pages of memory with a guard page on either side, or with a pattern on systems without memory protection.
class Pages {
public:
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(const Pages &) = delete;
  Pages &operator=(const Pages &) = delete;
  void makeReadOnly();

  unsigned char *base;
  std::size_t usable;

private:
  std::size_t page;
};

#if defined(_WIN32)
inline Pages::Pages(std::size_t bytes) : page(4096) {
  usable = (bytes + page - 1) / page * page;
  base = static_cast<unsigned char *>(VirtualAlloc(nullptr, usable + 2 * page, MEM_RESERVE, PAGE_NOACCESS)) + page;
  if (usable > 0 && !VirtualAlloc(base, usable, MEM_COMMIT, PAGE_READWRITE))
    std::abort();
}
inline Pages::~Pages() { VirtualFree(base - page, 0, MEM_RELEASE); }
inline void Pages::makeReadOnly() {
  DWORD before;
  VirtualProtect(base, usable, PAGE_READONLY, &before);
}
#elif !defined(__wasi__)
inline Pages::Pages(std::size_t bytes) : page(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
  usable = (bytes + page - 1) / page * page;
  void *mapped = mmap(nullptr, usable + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    std::abort();
  base = static_cast<unsigned char *>(mapped) + page;
  if (usable > 0 && mprotect(base, usable, PROT_READ | PROT_WRITE) != 0)
    std::abort();
}
inline Pages::~Pages() { munmap(base - page, usable + 2 * page); }
inline void Pages::makeReadOnly() { mprotect(base, usable, PROT_READ); }
#else
inline Pages::Pages(std::size_t bytes) : page(1024) {
  usable = (bytes + page - 1) / page * page + page;
  base = static_cast<unsigned char *>(std::aligned_alloc(page, usable));
  if (!base)
    std::abort();
}
inline Pages::~Pages() { std::free(base); }
inline void Pages::makeReadOnly() {}
#endif

/// Memory at either end of such pages.
class GuardedMemory {
public:
  static constexpr unsigned char poison = 0xFF;

  GuardedMemory(std::size_t bytes, Guard guard)
      : pages(bytes), bytes(bytes), begin(guard == Guard::front ? pages.base : pages.base + pages.usable - bytes) {
    fill();
  }

  unsigned char *data() const { return begin; }
  std::size_t size() const { return bytes; }
  /// Fills the buffer and its surroundings.
  void fill(unsigned char with = poison) {
    filling = with;
    std::memset(pages.base, filling, pages.usable);
  }
  /// Whether nothing was written around the buffer.
  bool isIntact() const {
    const auto isUntouched = [this](unsigned char byte) { return byte == filling; };
    return std::all_of(pages.base, begin, isUntouched) &&
           std::all_of(begin + bytes, pages.base + pages.usable, isUntouched);
  }
  /// Makes writes fault from now on.
  void makeReadOnly() { pages.makeReadOnly(); }

private:
  Pages pages;
  std::size_t bytes;
  unsigned char *begin;
  unsigned char filling = poison;
};

/// An input in two copies: reading past the end of one faults, and so does reading before the beginning of the other.
template <class T> class Input {
public:
  Input(std::vector<T> elements)
      : values(std::move(elements)), back(values.size() * sizeof(T), Guard::back),
        front(values.size() * sizeof(T), Guard::front) {
    std::memcpy(back.data(), values.data(), back.size());
    std::memcpy(front.data(), values.data(), front.size());
  }
  const T *place(Guard guard) const { return reinterpret_cast<const T *>(memory(guard).data()); }
  bool isIntact(Guard guard) const {
    return memory(guard).isIntact() && std::memcmp(memory(guard).data(), values.data(), memory(guard).size()) == 0;
  }

  const std::vector<T> values;

private:
  const GuardedMemory &memory(Guard guard) const { return guard == Guard::back ? back : front; }
  GuardedMemory back, front;
};

/// An output in two copies, likewise; poisoned before each run.
template <class T> class Output {
public:
  explicit Output(std::size_t count)
      : count(count), back(count * sizeof(T), Guard::back), front(count * sizeof(T), Guard::front) {}
  T *place(Guard guard) { return reinterpret_cast<T *>(memory(guard).data()); }
  void poison(Guard guard) { memory(guard).fill(); }
  bool isIntact(Guard guard) { return memory(guard).isIntact(); }
  /// Returns the results of the first run; the others give the same bits, or the test has failed.
  std::span<const T> values() const { return {reinterpret_cast<const T *>(back.data()), count}; }

private:
  GuardedMemory &memory(Guard guard) { return guard == Guard::back ? back : front; }
  std::size_t count;
  GuardedMemory back, front;
};

} // namespace kiln::testing
