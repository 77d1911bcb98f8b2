// SPDX-License-Identifier: Apache-2.0
//
// Draws the attention between words: three sentences whose words are vectors of two numbers, then three heads with
// random weights, without and with a causal mask. Prints the words whose meaning changes.
#include "attention_layers.hpp"
#include "support/picture.h"
#include "support/random_weights.h"
#include "support/session.h"

#include <random>

namespace {

struct Sentence {
  const char *title;
  std::vector<std::string> words;
  std::vector<float> vectors; // two numbers per word
  std::size_t watched;
};

const Sentence sentences[] = {
    {"goat, of the farm", {"the", "sheep", "and", "goat", "grazing"}, {1, 1, 4, 0, 0, 0, 2.5, 2.5, 5, 0}, 3},
    {"goat, of football", {"Messi", "is", "goat", "not", "Ronaldo"}, {0, 5, 1, 1, 2.5, 2.5, 0, 0, 0, 4}, 2},
    {"Messi", {"Messi", "is", "the", "goat", ",", "not", "Ronaldo"}, {6, 2, 1, 1, 1, 1, 5, 3, 0, 0, 1, 0, 4, 2}, 0},
};

void save(const std::string &path, const std::vector<support::Matrix> &matrices) {
  if (!support::draw(path, matrices))
    support::stop("cannot write " + path);
  std::printf("%s\n", path.c_str());
}

} // namespace

int main(int argc, char **argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  support::Session session(std::max(ATTENTION_LAYERS_WORDS_ARENA_BYTES(1), ATTENTION_LAYERS_MULTI_HEAD_ARENA_BYTES(1)));
  attention_layers::Model model;
  session.check(model.bind(support::random_weights({ATTENTION_LAYERS_WEIGHTS(SUPPORT_WEIGHT)}, 1), &session.error));

  std::vector<support::Matrix> pictures;
  std::vector<std::vector<float>> kept; // the data of the pictures
  kept.reserve(std::size(sentences));
  for (const Sentence &sentence : sentences) {
    const std::size_t n = sentence.words.size();
    std::vector<float> scores(n * n), y(n * 2);
    std::vector<float> &weights = kept.emplace_back(n * n);
    session.check(model.words(session.call, {sentence.vectors.data(), n}, {scores.data(), n, n}, {weights.data(), n, n},
                              {y.data(), n}));
    const std::size_t at = sentence.watched;
    std::printf("%s: [%g, %g] becomes [%.4f, %.4f]\n", sentence.words[at].c_str(),
                static_cast<double>(sentence.vectors[2 * at]), static_cast<double>(sentence.vectors[2 * at + 1]),
                static_cast<double>(y[2 * at]), static_cast<double>(y[2 * at + 1]));
    for (std::size_t i = 0; i < n; ++i)
      std::printf("  %-8s score %6.2f  weight %.3f\n", sentence.words[i].c_str(),
                  static_cast<double>(scores[at * n + i]), static_cast<double>(weights[at * n + i]));
    pictures.push_back({sentence.title, sentence.words, sentence.words, weights});
  }
  save(folder + "/sentences.svg", pictures);

  constexpr std::size_t n = 8, heads = 3, width = 24;
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> x(n * width), y(n * width), weights(heads * n * n);
  for (float &value : x)
    value = normal(random);
  session.check(model.multi_head(session.call, {x.data(), 1, n}, {y.data(), 1, n}, {weights.data(), 1, n, n}));
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < n; ++i)
    inputs.push_back("x" + std::to_string(i));
  pictures.clear();
  for (std::size_t head = 0; head < heads; ++head)
    pictures.push_back(
        {"head " + std::to_string(head), inputs, inputs, std::span<const float>(weights).subspan(head * n * n, n * n)});
  std::vector<float> z(n * 28), causal(n * n);
  session.check(model.causal(session.call, {x.data(), 1, n}, {z.data(), 1, n}, {causal.data(), 1, n, n}));
  pictures.push_back({"causal", inputs, inputs, causal});
  save(folder + "/heads.svg", pictures);
}
