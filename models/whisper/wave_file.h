// SPDX-License-Identifier: Apache-2.0
//
// Reads a sound from a WAV file as numbers in [-1, 1).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Reads a file with one channel, `rate` samples per second and 16 bits per sample; throws std::runtime_error.
inline std::vector<float> read_wave(const std::string &path, std::size_t rate) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  auto number = [&](std::size_t at, std::size_t size) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < size && at + i < bytes.size(); ++i)
      value |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i])) << 8 * i;
    return value;
  };
  const std::string_view text = bytes;
  if (!text.starts_with("RIFF") || text.substr(std::min<std::size_t>(8, text.size()), 4) != "WAVE")
    throw std::runtime_error("\"" + path + "\" is no WAV file");

  constexpr std::size_t chunk = 8, first = 12,
                        form = 16; // bytes of a chunk's header, of the file's header, of a format chunk
  constexpr std::size_t pcm = 1, extended = 0xFFFE;
  std::string is = "no format";
  for (std::size_t at = first; at + chunk <= bytes.size();) {
    const std::string_view name = text.substr(at, 4);
    const std::size_t size = std::min(number(at + 4, 4), bytes.size() - at - chunk); // the size is unknown in a stream
    at += chunk;
    if (name == "fmt " && size >= form) {
      const std::size_t kind = number(at, 2), channels = number(at + 2, 2), speed = number(at + 4, 4),
                        bits = number(at + 14, 2);
      const bool isPcm = kind == pcm || (kind == extended && size >= 26 && number(at + 24, 2) == pcm);
      is = isPcm && channels == 1 && speed == rate && bits == 16
               ? ""
               : "format " + std::to_string(kind) + " of " + std::to_string(channels) + " channels, " +
                     std::to_string(speed) + " samples a second, " + std::to_string(bits) + " bits";
    }
    if (name == "data") {
      if (!is.empty())
        throw std::runtime_error("\"" + path + "\": unsupported format; expected PCM of 1 channel, " +
                                 std::to_string(rate) + " samples a second, 16 bits, got " + is);
      std::vector<float> samples;
      for (std::size_t i = 0; i + 1 < size; i += 2)
        samples.push_back(static_cast<float>(static_cast<std::int16_t>(number(at + i, 2))) / 32768);
      return samples;
    }
    at += size + size % 2;
  }
  throw std::runtime_error("\"" + path + "\" has no samples");
}
