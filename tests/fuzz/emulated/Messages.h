// SPDX-License-Identifier: Apache-2.0
//
// What kiln_fuzz and a program with a model for another CPU tell each other, through pipes: numbers of 64 bits, and
// bytes behind their number. Both are little-endian.
//
//   Bind   the image of a weight file                                 -> words
//   Call   entry, order, workers, poison, bytes of the arena, states, -> words, states, outputs
//          number of extents, extents, number of arguments,
//          and of each 0 and an input, or 1 and the bytes of an output
//
// Words are none if all is well; else nothing follows them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

namespace kiln::fuzz {

enum class Message : std::uint64_t { Bind, Call };

class Messages {
public:
  Messages(std::FILE *from, std::FILE *to) : from(from), to(to) {}

  void put(std::uint64_t number) { put(&number, sizeof number); }
  void put(Message message) { put(static_cast<std::uint64_t>(message)); }
  void put(const std::vector<char> &bytes) {
    put(bytes.size());
    put(bytes.data(), bytes.size());
  }
  /// What was put goes on its way.
  void send() { isWhole &= std::fflush(to) == 0; }

  std::uint64_t number() {
    std::uint64_t result = 0;
    take(&result, sizeof result);
    return result;
  }
  std::vector<char> bytes() {
    const std::uint64_t count = number();
    std::vector<char> result(isWhole ? static_cast<std::size_t>(count) : 0);
    take(result.data(), result.size());
    return result;
  }

  /// Whether nothing was lost: else the other one is gone, and what is taken is zeros and empty.
  bool isAlive() const { return isWhole; }

private:
  void put(const void *bytes, std::size_t count) { isWhole &= std::fwrite(bytes, 1, count, to) == count; }
  void take(void *bytes, std::size_t count) { isWhole = isWhole && std::fread(bytes, 1, count, from) == count; }

  std::FILE *from, *to;
  bool isWhole = true;
};

} // namespace kiln::fuzz
