// SPDX-License-Identifier: Apache-2.0
//
// Classifies an image with ViT-B/16 and DeiT-Ti/16: vit_demo [picture.ppm [VIT_CHECKPOINT [DEIT_CHECKPOINT]]]. Without
// an image it uses a synthetic one, without a checkpoint the weights are random.
#include "checkpoint.h"
#include "deit_tiny.hpp"
#include "support/random_weights.h"
#include "support/session.h"
#include "vit_base.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace {

constexpr std::size_t side = 224, classes = 1000;

/// Returns [channels, rows, columns] from -1 to 1. An image of another size is sampled at the nearest pixels.
std::vector<float> read_picture(const char *path) {
  std::vector<float> pixels(3 * side * side);
  if (!path) {
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] =
          static_cast<float>(std::sin(0.05 * static_cast<double>(i % side) + 0.03 * static_cast<double>(i / side)));
    return pixels;
  }
  std::ifstream file(path, std::ios::binary);
  std::string kind;
  std::size_t width = 0, height = 0, largest = 0;
  file >> kind >> width >> height >> largest;
  file.get();
  std::string bytes(width * height * 3, 0);
  if (kind != "P6" || largest != 255 || !file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    support::stop(std::string(path) + " is not a binary PPM of 255 levels");
  for (std::size_t channel = 0, i = 0; channel < 3; ++channel)
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x, ++i) {
        const std::size_t at = (y * height / side * width + x * width / side) * 3 + channel;
        pixels[i] = static_cast<float>(static_cast<unsigned char>(bytes[at])) / 127.5f - 1;
      }
  return pixels;
}

void print_best(const char *name, const std::vector<float> &logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(static_cast<double>(logit - *best));
  std::printf("%s: class %td, probability %.4f\n", name, best - logits.begin(), 1 / sum);
}

} // namespace

int main(int argc, char **argv) try {
  const std::vector<float> pixels = read_picture(argc > 1 ? argv[1] : nullptr);
  std::vector<float> logits(classes);
  support::Session session(std::max(VIT_BASE_FORWARD_ARENA_BYTES(1), DEIT_TINY_FORWARD_ARENA_BYTES(1)));
  vit_base::Model vit;
  session.check(vit.bind(argc > 2 ? support::load_checkpoint(argv[2], specs::vit_checkpoint)
                                  : support::random_weights({VIT_BASE_WEIGHTS(SUPPORT_WEIGHT)}, 1),
                         &session.error));
  session.check(vit.forward(session.call, pixels.data(), logits.data()));
  print_best("ViT-B/16", logits);
  deit_tiny::Model deit;
  session.check(deit.bind(argc > 3 ? support::load_checkpoint(argv[3], {})
                                   : support::random_weights({DEIT_TINY_WEIGHTS(SUPPORT_WEIGHT)}, 1),
                          &session.error));
  session.check(deit.forward(session.call, pixels.data(), logits.data()));
  print_best("DeiT-Ti/16", logits);
} catch (const std::exception &error) {
  support::stop(error.what());
}
