// SPDX-License-Identifier: Apache-2.0
#include "gguf.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace support {

namespace {

/// Types of values, with their numbers in files.
enum GgufValue : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// Reads only the requested bytes from the beginning, so that tensors are not read.
class GgufReader {
public:
  explicit GgufReader(const std::string &path) : name(path.substr(path.rfind('/') + 1)), file(path, std::ios::binary) {
    if (!file)
      throw std::runtime_error("cannot read \"" + path + "\"");
    file.seekg(0, std::ios::end);
    size = static_cast<std::uint64_t>(file.tellg());
    file.seekg(0);
  }

  Config read() {
    if (text(4) != "GGUF")
      fail("no GGUF file; expected \"GGUF\" as its first bytes");
    if (const auto version = number<std::uint32_t>(); version != 2 && version != 3)
      fail("unknown version; expected 2 or 3, got " + std::to_string(version));
    number<std::uint64_t>(); // number of tensors
    nlohmann::json values = nlohmann::json::object();
    for (auto count = number<std::uint64_t>(); count > 0; --count) {
      const std::string key = text(number<std::uint64_t>());
      values[key] = value(number<std::uint32_t>());
    }
    return {name, std::move(values)};
  }

private:
  [[noreturn]] void fail(const std::string &what) const { throw std::runtime_error(name + ": " + what); }

  std::string text(std::uint64_t length) {
    if (length > size - at)
      fail("truncated metadata; expected more bytes, got the end of the file");
    std::string bytes(length, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(length));
    if (!file)
      fail("cannot be read");
    at += length;
    return bytes;
  }
  template <class T> T number() {
    T result;
    std::memcpy(&result, text(sizeof result).data(), sizeof result);
    return result;
  }
  /// JSON has no infinities.
  static nlohmann::json decimal(double number) { return std::isfinite(number) ? nlohmann::json(number) : nullptr; }
  static nlohmann::json shortest(float number) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, number);
    double result = 0;
    std::from_chars(digits, end.ptr, result);
    return decimal(result);
  }
  nlohmann::json value(std::uint32_t type) {
    switch (type) {
    case u8:
      return number<std::uint8_t>();
    case i8:
      return number<std::int8_t>();
    case u16:
      return number<std::uint16_t>();
    case i16:
      return number<std::int16_t>();
    case u32:
      return number<std::uint32_t>();
    case i32:
      return number<std::int32_t>();
    case f32:
      return shortest(number<float>());
    case boolean:
      return number<std::uint8_t>() != 0;
    case string:
      return text(number<std::uint64_t>());
    case u64:
      return number<std::uint64_t>();
    case i64:
      return number<std::int64_t>();
    case f64:
      return decimal(number<double>());
    case array: {
      const auto element = number<std::uint32_t>();
      nlohmann::json result = nlohmann::json::array();
      if (element == array)
        fail("nested arrays; expected arrays of single values");
      for (auto count = number<std::uint64_t>(); count > 0; --count)
        result.push_back(value(element));
      return result;
    }
    default:
      fail("unknown type of a value; expected 0 to " + std::to_string(f64) + ", got " + std::to_string(type));
    }
  }

  std::string name;
  std::ifstream file;
  std::uint64_t size = 0, at = 0;
};

} // namespace

bool is_gguf(const std::string &path) { return path.ends_with(".gguf"); }

Config gguf_metadata(const std::string &path) { return GgufReader(path).read(); }

} // namespace support
