// SPDX-License-Identifier: Apache-2.0
//
// Classifies the 10,000 test images of Fashion-MNIST and draws the attention of each head: fashion_vit_demo [--data
// FOLDER] [--images N] [--picture FILE.svg]. The dataset is Debian's dataset-fashion-mnist.
#include "fashion_vit.hpp"
#include "support/fashion_mnist.h"
#include "support/json.h"
#include "support/picture.h"
#include "support/session.h"

#include <algorithm>
#include <chrono>

namespace {

constexpr std::size_t pixels = 28 * 28, classes = 10, batch = FASHION_VIT_FORWARD_BATCH_MAX;
constexpr int notHere = 77; // exit status of a skipped test

std::size_t count_right(const fashion_vit::Model &model, support::Session &session, const support::FashionMnist &data,
                        std::size_t wanted) {
  std::vector<float> images(batch * pixels), logits(batch * classes);
  std::size_t right = 0;
  for (std::size_t first = 0; first < wanted; first += batch) {
    const std::size_t count = std::min(batch, wanted - first);
    for (std::size_t i = 0; i < count * pixels; ++i)
      images[i] = static_cast<float>(data.pixels[first * pixels + i]) / 255;
    session.check(model.forward(session.call, {images.data(), count}, {logits.data(), count}));
    for (std::size_t i = 0; i < count; ++i) {
      const float *row = &logits[i * classes];
      right += std::max_element(row, row + classes) - row == data.labels[first + i];
    }
  }
  return right;
}

/// Draws the image, and for each head the attention of the class token to its patches.
void draw(const fashion_vit::Model &model, support::Session &session, const support::FashionMnist &data, std::size_t at,
          const std::string &path) {
  constexpr std::size_t heads = 4, side = 7;
  std::vector<float> image(pixels), logits(classes), seen(heads * side * side);
  for (std::size_t i = 0; i < pixels; ++i)
    image[i] = static_cast<float>(data.pixels[at * pixels + i]) / 255;
  session.check(model.look(session.call, image.data(), logits.data(), seen.data()));
  const std::vector<std::string> none(28), few(side);
  std::vector<support::Matrix> pictures{{data.name(data.labels[at]), none, none, image}};
  for (std::size_t head = 0; head < heads; ++head) {
    const std::span<const float> weights = std::span(seen).subspan(head * side * side, side * side);
    pictures.push_back(
        {"head " + std::to_string(head), few, few, weights, *std::max_element(weights.begin(), weights.end())});
  }
  if (!support::draw(path, pictures))
    support::stop("cannot write " + path);
  std::printf("%s\n", path.c_str());
}

} // namespace

int main(int argc, char **argv) try {
  std::string folder = support::fashion_mnist_folder, picture;
  std::size_t wanted = 10000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--data")
      folder = argv[i + 1];
    else if (option == "--images")
      wanted = std::strtoul(argv[i + 1], nullptr, 10);
    else if (option == "--picture")
      picture = argv[i + 1];
    else
      support::stop("fashion_vit_demo [--data FOLDER] [--images N] [--picture FILE.svg]");
  }
  support::Session session(std::max(FASHION_VIT_FORWARD_ARENA_BYTES(1), FASHION_VIT_LOOK_ARENA_BYTES(1)));
  fashion_vit::Model model;
  session.check(model.bind(FASHION_VIT_FOLDER "/fashion_vit.safetensors", &session.error));
  const std::optional<support::FashionMnist> data = support::read_fashion_mnist(folder, "t10k");
  if (!data) {
    std::printf("skipped: no Fashion-MNIST in %s (package dataset-fashion-mnist)\n", folder.c_str());
    return notHere;
  }
  if (!picture.empty())
    draw(model, session, *data, 0, picture);
  wanted = std::min(wanted, data->labels.size());
  const auto start = std::chrono::steady_clock::now();
  const std::size_t right = count_right(model, session, *data, wanted);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%zu of %zu test images right, %.0f a second\n", right, wanted,
              static_cast<double>(wanted) / seconds.count());
  if (wanted != data->labels.size())
    return 0;
  const std::size_t expected = support::read_number(FASHION_VIT_FOLDER "/expected.json", "right");
  std::printf("PyTorch: %zu\n", expected);
  if (right != expected)
    support::stop("PyTorch has another number of them right");
} catch (const std::exception &error) {
  support::stop(error.what());
}
