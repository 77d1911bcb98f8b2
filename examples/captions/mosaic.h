// SPDX-License-Identifier: Apache-2.0
//
// Mosaics of four images of Fashion-MNIST, two above two others, and the sentences that name them: "a bag and a coat
// above two boots".
#pragma once

#include "support/fashion_mnist.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace captions {

inline constexpr std::size_t side = 56, half = side / 2, classes = 10, words = 26;
enum Word : std::int32_t { end, start, a, and_, two, above, singular, plural = singular + classes };

inline std::string text_of(std::int32_t word) {
  constexpr const char *few[] = {".", "", "a", "and", "two", "above"};
  if (word < singular)
    return few[word];
  const auto kind = static_cast<std::uint8_t>((word - singular) % static_cast<std::int32_t>(classes));
  return support::FashionMnist::name(kind) + std::string(word < plural ? "" : kind == 3 ? "es" : "s");
}

/// A word of a sentence: whether it names one image or both of a row, and in which quarter that image is.
struct Said {
  std::int32_t word;
  bool isOne = false;
  int quarter = 0;
};

/// Returns the sentence from start to end, for labels in reading order.
inline std::vector<Said> sentence_of(const std::array<std::uint8_t, 4> &labels) {
  std::vector<Said> sentence{{start}};
  for (int row = 0; row < 2; ++row) {
    const std::int32_t left = labels[2 * row], right = labels[2 * row + 1];
    if (row == 1)
      sentence.push_back({above});
    if (left == right) {
      sentence.insert(sentence.end(), {{two}, {plural + left, false, 2 * row}});
      continue;
    }
    sentence.insert(sentence.end(), {{a}, {singular + left, true, 2 * row}});
    sentence.insert(sentence.end(), {{and_}, {a}, {singular + right, true, 2 * row + 1}});
  }
  sentence.push_back({end});
  return sentence;
}

/// Copies an image [28, 28] to a quarter of an image [56, 56].
inline void put(const float *picture, std::size_t quarter, float *image) {
  for (std::size_t y = 0; y < half; ++y)
    std::copy_n(picture + y * half, half, image + (quarter / 2 * half + y) * side + quarter % 2 * half);
}

/// The mosaic of a dataset's images [4 number, 4 number + 4).
struct Mosaic {
  std::vector<float> pixels; // side rows of side
  std::vector<Said> sentence;

  Mosaic(const support::FashionMnist &data, std::size_t number) : pixels(side * side) {
    std::array<std::uint8_t, 4> labels{};
    std::array<float, half * half> picture{};
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      const std::uint8_t *from = &data.pixels[(4 * number + quarter) * half * half];
      std::transform(from, from + picture.size(), picture.begin(),
                     [](int value) { return static_cast<float>(value) / 255; });
      put(picture.data(), quarter, pixels.data());
      labels[quarter] = data.labels[4 * number + quarter];
    }
    sentence = sentence_of(labels);
  }
};

} // namespace captions
