// SPDX-License-Identifier: Apache-2.0
//
// Generates text in the style of the King James Bible, character by character, and measures bits per character on
// held-out text compared with PyTorch's figure: char_lstm_demo [--prompt TEXT] [--characters N] [--temperature X]
// [--seed N].
#include "char_lstm.hpp"

#include "char_gpt/vocabulary.h"
#include "support/json.h"
#include "support/sampler.h"
#include "support/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace {

constexpr std::size_t characters = char_gpt::vocabulary.size(), longest = CHAR_LSTM_FORWARD_TOKENS_MAX;

std::vector<std::int32_t> encode(const std::string &text) {
  std::vector<std::int32_t> tokens;
  for (char c : text) {
    const std::size_t token = char_gpt::vocabulary.find(c);
    if (token == std::string_view::npos)
      support::stop(std::string("text: character is not in the vocabulary; got '") + c + "'");
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return tokens;
}

/// Reads text piece by piece; each piece continues from the previous one.
class Reader {
public:
  explicit Reader(const char_lstm::Model &model)
      : model(model), session(CHAR_LSTM_FORWARD_ARENA_BYTES(1)), logits(longest * characters) {}

  /// Returns the logits of the token after each token of the piece.
  std::span<const float> operator()(std::span<const std::int32_t> piece) {
    session.check(model.forward(session.call, {piece.data(), piece.size()}, {logits.data(), piece.size()}));
    return std::span(logits).first(piece.size() * characters);
  }

private:
  const char_lstm::Model &model;
  support::Session session;
  std::vector<float> logits;
};

/// Returns the mean of -log2 p over all characters but the first, each predicted from all previous ones.
double bits_per_character(Reader &reader, std::span<const std::int32_t> tokens) {
  double bits = 0;
  for (std::size_t first = 0; first + 1 < tokens.size(); first += longest) {
    const std::size_t count = std::min(longest, tokens.size() - 1 - first);
    std::span<const float> logits = reader(tokens.subspan(first, count));
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const float> row = logits.subspan(i * characters, characters);
      const double most = static_cast<double>(*std::max_element(row.begin(), row.end()));
      double sum = 0;
      for (float logit : row)
        sum += std::exp(static_cast<double>(logit) - most);
      const auto next = static_cast<std::size_t>(tokens[first + i + 1]);
      bits -= (static_cast<double>(row[next]) - most - std::log(sum)) / std::log(2.0);
    }
  }
  return bits / static_cast<double>(tokens.size() - 1);
}

} // namespace

int main(int argc, char **argv) try {
  std::string prompt = "And it came to pass, that ";
  support::SamplerOptions sampling{.temperature = 0.6, .seed = 3};
  std::size_t wanted = 400;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc)
      support::stop("char_lstm_demo [--prompt TEXT] [--characters N] [--temperature X] [--seed N]");
    if (option == "--prompt")
      prompt = argv[i + 1];
    else if (option == "--characters")
      wanted = std::strtoul(argv[i + 1], nullptr, 10);
    else if (option == "--temperature")
      sampling.temperature = std::strtod(argv[i + 1], nullptr);
    else if (option == "--seed")
      sampling.seed = std::strtoull(argv[i + 1], nullptr, 10);
    else
      support::stop("char_lstm_demo: unknown option \"" + option + "\"");
  }
  kiln_error_t error{};
  char_lstm::Model model;
  if (model.bind(CHAR_LSTM_FOLDER "/char_lstm.safetensors", &error) != KILN_OK)
    support::stop(error.message);
  const std::vector<std::int32_t> given = encode(prompt);
  if (given.empty())
    support::stop("prompt: empty; expected one character or more");

  Reader writer(model);
  support::Sampler sampler(sampling);
  std::fputs(prompt.c_str(), stdout);
  std::span<const float> last;
  for (std::size_t first = 0; first < given.size(); first += longest)
    last = writer(std::span(given).subspan(first, std::min(longest, given.size() - first)));
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < wanted; ++i) {
    const std::int32_t next = sampler(last.last(characters));
    std::fputc(char_gpt::vocabulary[static_cast<std::size_t>(next)], stdout);
    std::fflush(stdout);
    last = writer({&next, 1});
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("\n\n%.0f characters a second\n", static_cast<double>(wanted) / seconds.count());

  Reader reader(model);
  const double ours = bits_per_character(reader, encode(support::read_file(CHAR_LSTM_TEXT)));
  const std::string text = support::read_file(CHAR_LSTM_FOLDER "/expected.json");
  const double expected = std::strtod(support::JsonReader(text).read().at("bits_per_character").text.c_str(), nullptr);
  std::printf("held-out text: %.5f bits per character; PyTorch %.5f; difference %.1e\n", ours, expected,
              std::fabs(ours - expected));
  if (!(std::fabs(ours - expected) <= 1e-4))
    support::stop("the bits per character differ from PyTorch's by more than 1e-4");
} catch (const std::exception &error) {
  support::stop(error.what());
}
