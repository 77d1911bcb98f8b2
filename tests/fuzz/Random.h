// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are the same on every machine and with every library: xoshiro256** seeded by splitmix64
// (Blackman, Vigna 2018). C++ does not specify the order of calls within one expression, so each call needs a separate
// statement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace kiln::fuzz {

class Random {
public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t &word : state) {
      std::uint64_t z = (seed += 0x9e3779b97f4a7c15u);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = rotated(state[1] * 5, 7) * 9, t = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotated(state[3], 45);
    return result;
  }
  /// Returns a number in [0, count), where count is at least 1.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>((next() >> 11) % static_cast<std::uint64_t>(count));
  }
  /// Returns a number in [first, last].
  std::int64_t between(std::int64_t first, std::int64_t last) { return first + below(last - first + 1); }
  bool percent(int chance) { return below(100) < chance; }
  /// Returns a multiple of 1/1024 in [low, high], which is exact in f32 and in f64.
  double number(double low, double high) {
    const auto first = static_cast<std::int64_t>(low * 1024), last = static_cast<std::int64_t>(high * 1024);
    return static_cast<double>(between(first, last)) / 1024;
  }
  template <class T> const T &from(const std::vector<T> &list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
  }
  template <class T> T of(std::initializer_list<T> list) { return list.begin()[below(static_cast<int>(list.size()))]; }

private:
  static std::uint64_t rotated(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

  std::uint64_t state[4];
};

} // namespace kiln::fuzz
