// SPDX-License-Identifier: Apache-2.0
//
// Detects objects in a synthetic image, with random weights: prints each query's most likely class and its box, and
// draws its attention: detr_demo [FILE.svg].
#include "detr.hpp"

#include "support/picture.h"
#include "support/random_weights.h"
#include "support/session.h"

#include <algorithm>
#include <cmath>
#include <vector>

int main(int argc, char **argv) {
  constexpr std::size_t height = 64, width = 96, queries = 10, rows = 8, columns = 12, classes = 6;
  support::Session session(DETR_FORWARD_ARENA_BYTES(1));
  detr::Model model;
  session.check(model.bind(support::random_weights({DETR_WEIGHTS(SUPPORT_WEIGHT)}, 1), &session.error));
  std::vector<float> image(height * width * 3), logits(queries * classes), boxes(queries * 4),
      seen(queries * rows * columns);
  for (std::size_t i = 0; i < image.size(); ++i)
    image[i] = static_cast<float>(std::sin(0.2 * static_cast<double>(i / 3 % width)) *
                                  std::cos(0.1 * static_cast<double>(i / 3 / width)));
  session.check(
      model.forward(session.call, {image.data(), 1}, {logits.data(), 1}, {boxes.data(), 1}, {seen.data(), 1}));

  const std::vector<std::string> no_rows(rows), no_columns(columns);
  std::vector<support::Matrix> pictures;
  for (std::size_t query = 0; query < queries; ++query) {
    const float *scores = &logits[query * classes], *box = &boxes[query * 4];
    const auto best = std::max_element(scores, scores + classes) - scores;
    const std::string what = best + 1 == classes ? "nothing" : "class " + std::to_string(best);
    std::printf("query %zu: %s, centre %.2f %.2f, size %.2f %.2f\n", query, what.c_str(), static_cast<double>(box[0]),
                static_cast<double>(box[1]), static_cast<double>(box[2]), static_cast<double>(box[3]));
    const std::span<const float> weights = std::span(seen).subspan(query * rows * columns, rows * columns);
    if (query < 3)
      pictures.push_back({"query " + std::to_string(query), no_rows, no_columns, weights,
                          *std::max_element(weights.begin(), weights.end())});
  }
  if (argc > 1 && !support::draw(argv[1], pictures))
    support::stop(std::string("cannot write ") + argv[1]);
}
