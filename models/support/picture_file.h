// SPDX-License-Identifier: Apache-2.0
//
// Reads a picture from a file as the numbers of a model: channels, rows, columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Pixels {
  std::size_t side, channels;
  double mean[3], deviation[3]; // per channel, for levels from 0 to 1
};

/// Reads a binary PPM with 255 levels. With 3 channels the result has the colours, with 1 channel their mean. A picture
/// of another size is resized by bilinear interpolation.
inline std::vector<float> read_picture(const std::string &path, const Pixels &pixels) {
  std::ifstream file(path, std::ios::binary);
  std::string kind;
  std::size_t width = 0, height = 0, largest = 0;
  file >> kind >> width >> height >> largest;
  file.get();
  constexpr std::size_t most = 1 << 16;
  std::string bytes;
  if (kind == "P6" && largest == 255 && width > 0 && width <= most && height > 0 && height <= most) {
    bytes.resize(width * height * 3);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  if (bytes.empty() || !file)
    throw std::runtime_error("\"" + path + "\" is no binary PPM of 255 levels");

  auto level = [&](std::size_t y, std::size_t x, std::size_t channel) {
    const auto *at = reinterpret_cast<const unsigned char *>(&bytes[(y * width + x) * 3]);
    return (pixels.channels == 3 ? at[channel] : (at[0] + at[1] + at[2]) / 3.0) / 255;
  };
  auto place = [&](std::size_t i, std::size_t extent) { // coordinate in the file of a pixel's centre
    const double at = (static_cast<double>(i) + 0.5) * static_cast<double>(extent) / static_cast<double>(pixels.side);
    return std::clamp(at - 0.5, 0.0, static_cast<double>(extent - 1));
  };
  std::vector<float> numbers;
  for (std::size_t channel = 0; channel < pixels.channels; ++channel)
    for (std::size_t i = 0; i < pixels.side; ++i)
      for (std::size_t j = 0; j < pixels.side; ++j) {
        const double y = place(i, height), x = place(j, width);
        const auto top = static_cast<std::size_t>(y), left = static_cast<std::size_t>(x);
        const std::size_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
        const double down = y - static_cast<double>(top), across = x - static_cast<double>(left);
        const double value =
            (1 - down) * ((1 - across) * level(top, left, channel) + across * level(top, right, channel)) +
            down * ((1 - across) * level(bottom, left, channel) + across * level(bottom, right, channel));
        numbers.push_back(static_cast<float>((value - pixels.mean[channel]) / pixels.deviation[channel]));
      }
  return numbers;
}
