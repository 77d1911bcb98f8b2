// SPDX-License-Identifier: Apache-2.0
//
// Safetensors in memory: 8 bytes of header length, a JSON header, the tensors' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace support {

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;

  std::size_t count() const {
    std::size_t product = 1;
    for (std::int64_t extent : shape)
      product *= static_cast<std::size_t>(extent);
    return product;
  }
};

/// Returns an image of f32 tensors, whose values `fill` sets one tensor after the other.
inline std::vector<std::byte> make_image(const std::vector<Tensor> &tensors,
                                         const std::function<void(std::size_t tensor, std::span<float>)> &fill) {
  std::string header = "{";
  std::size_t offset = 0;
  for (const Tensor &tensor : tensors) {
    std::string shape;
    for (std::int64_t extent : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    const std::size_t end = offset + tensor.count() * sizeof(float);
    header += (offset ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"F32\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = header.size();
  std::vector<std::byte> image(sizeof size + header.size() + offset);
  std::memcpy(image.data(), &size, sizeof size);
  std::memcpy(image.data() + sizeof size, header.data(), header.size());
  std::byte *at = image.data() + sizeof size + header.size(); // aligned for f32
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<float> values(reinterpret_cast<float *>(at), tensors[i].count());
    fill(i, values);
    at += values.size_bytes();
  }
  return image;
}

} // namespace support
