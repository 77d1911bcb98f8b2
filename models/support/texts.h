// SPDX-License-Identifier: Apache-2.0
//
// Functions that the programs of encoder-only models share: command lines, texts as tokens, and results as numbers or
// as the best classes.
#pragma once

#include "support/tokenizer.h"
#include "support/writer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct TextOptions {
  std::string folder;             // folder of the checkpoint
  std::vector<std::string> texts; // or files
  bool are_ids = false;           // whether texts are token ids
  bool shows_numbers = false;
};

inline TextOptions text_options(int argc, char **argv) {
  TextOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--ids")
      options.are_ids = options.shows_numbers = true;
    else if (word == "--numbers")
      options.shows_numbers = true;
    else if (word.starts_with("--"))
      throw std::runtime_error(word + ": unknown option; expected --ids or --numbers");
    else if (options.folder.empty())
      options.folder = word;
    else
      options.texts.push_back(word);
  }
  if (options.texts.empty())
    throw std::runtime_error(std::string(argv[0]) +
                             ": missing arguments; expected the directory of a checkpoint and what to read");
  return options;
}

/// Returns nothing if texts are token ids.
inline std::optional<support::Tokenizer> tokenizer_of(const TextOptions &options) {
  if (options.are_ids)
    return std::nullopt;
  return support::load_tokenizer(options.folder);
}

/// Returns the tokens of a text, with the special tokens that the model expects around it; at most `longest`.
inline std::vector<support::Token> tokens_of(const std::string &text,
                                             const std::optional<support::Tokenizer> &tokenizer, std::size_t longest) {
  std::vector<support::Token> tokens = tokenizer ? tokenizer->before() : support::tokens_of_numbers(text);
  if (tokenizer) {
    for (support::Token token : tokenizer->encode(text))
      tokens.push_back(token);
    tokens.insert(tokens.end(), tokenizer->after().begin(), tokenizer->after().end());
  }
  if (tokens.empty() || tokens.size() > longest)
    throw std::runtime_error("text: wrong number of tokens; expected 1 to " + std::to_string(longest) + ", got " +
                             std::to_string(tokens.size()) + ": \"" + text + "\"");
  return tokens;
}

inline void print_numbers(std::span<const float> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    std::printf("%s%.9g", i ? " " : "", static_cast<double>(numbers[i]));
  std::puts("");
}

/// Prints the five best scores as probabilities, with names.
inline void print_best(std::span<const float> scores, const std::function<std::string(std::size_t)> &name) {
  std::vector<std::size_t> order(scores.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  const std::size_t count = std::min<std::size_t>(5, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  double sum = 0;
  for (float score : scores)
    sum += std::exp(static_cast<double>(score - scores[order[0]]));
  for (std::size_t i = 0; i < count; ++i)
    std::printf("%.4f  %s\n", std::exp(static_cast<double>(scores[order[i]] - scores[order[0]])) / sum,
                name(order[i]).c_str());
}
