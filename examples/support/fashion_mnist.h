// SPDX-License-Identifier: Apache-2.0
//
// Reads Fashion-MNIST (Xiao et al. 2017): 28 x 28 grey images of ten kinds of clothes, in gzipped IDX files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>
#include <zlib.h>

namespace support {

/// The folder of Debian's dataset-fashion-mnist.
inline constexpr const char *fashion_mnist_folder = "/usr/share/datasets/fashion-mnist";

struct FashionMnist {
  std::vector<std::uint8_t> pixels; // 28 rows of 28 for each image
  std::vector<std::uint8_t> labels;

  static const char *name(std::uint8_t label) {
    constexpr const char *names[] = {"t-shirt", "trouser", "pullover", "dress", "coat",
                                     "sandal",  "shirt",   "sneaker",  "bag",   "boot"};
    return names[label % 10];
  }
};

namespace detail {

/// Returns the data after the header, which has `dimensions` sizes.
inline std::vector<std::uint8_t> read_idx(const std::string &path, int dimensions) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::vector<std::uint8_t> bytes;
  std::uint8_t part[1 << 16];
  int count = 0;
  while (file && (count = gzread(file, part, sizeof part)) > 0)
    bytes.insert(bytes.end(), part, part + count);
  if (file)
    gzclose(file);
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(dimensions);
  std::size_t expected = 1;
  for (std::size_t i = 4; i + 4 <= header && header <= bytes.size(); i += 4)
    expected *= static_cast<std::size_t>(bytes[i]) << 24 | bytes[i + 1] << 16 | bytes[i + 2] << 8 | bytes[i + 3];
  if (count < 0 || bytes.size() < header || bytes[3] != dimensions || bytes.size() != header + expected)
    throw std::runtime_error(path + ": no IDX file; expected bytes with " + std::to_string(dimensions) + " dimensions");
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
  return bytes;
}

} // namespace detail

/// `part` is "train" or "t10k". Returns nothing if the folder does not exist.
inline std::optional<FashionMnist> read_fashion_mnist(const std::string &folder, const std::string &part) {
  if (!std::filesystem::exists(folder))
    return std::nullopt;
  FashionMnist data{detail::read_idx(folder + "/" + part + "-images-idx3-ubyte.gz", 3),
                    detail::read_idx(folder + "/" + part + "-labels-idx1-ubyte.gz", 1)};
  if (data.pixels.size() != data.labels.size() * 28 * 28)
    throw std::runtime_error(folder + ": wrong number of images; expected one for each label");
  return data;
}

} // namespace support
