// SPDX-License-Identifier: Apache-2.0
//
// The protocol between two processes connected by pipes: 64-bit numbers, and byte strings preceded by their size, both
// little-endian.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

namespace kiln {

class Messages {
public:
  Messages(std::FILE *from, std::FILE *to) : from(from), to(to) {}

  void put(std::uint64_t number) { write(&number, sizeof number); }
  void put(const void *bytes, std::size_t count) {
    put(count);
    write(bytes, count);
  }
  void put(const std::vector<char> &bytes) { put(bytes.data(), bytes.size()); }
  /// Flushes the output.
  void send() { isWhole &= std::fflush(to) == 0; }

  std::uint64_t number() {
    std::uint64_t result = 0;
    read(&result, sizeof result);
    return result;
  }
  std::vector<char> bytes() {
    const std::uint64_t count = number();
    std::vector<char> result(isWhole ? static_cast<std::size_t>(count) : 0);
    read(result.data(), result.size());
    return result;
  }
  /// Reads a byte string of known size.
  void bytes(void *result, std::size_t count) {
    isWhole = number() == count && isWhole;
    read(result, count);
  }

  /// Whether all messages were complete. Otherwise the other process has ended, and reads return zeros and empty
  /// strings.
  bool isAlive() const { return isWhole; }

private:
  void write(const void *bytes, std::size_t count) { isWhole &= std::fwrite(bytes, 1, count, to) == count; }
  void read(void *bytes, std::size_t count) { isWhole = isWhole && std::fread(bytes, 1, count, from) == count; }

  std::FILE *from, *to;
  bool isWhole = true;
};

} // namespace kiln
