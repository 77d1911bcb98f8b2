// SPDX-License-Identifier: Apache-2.0
//
// Generates text with the library that Kiln made from spec.cpp, and measures it: tokens per second, bits per character
// on held-out text compared with PyTorch's figure, the sizes of the archive and of the arena.
#include "char_gpt.hpp"
#include "support/sampler.h"
#include "vocabulary.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int vocabularySize = static_cast<int>(char_gpt::vocabulary.size());
constexpr int context = CHAR_GPT_FORWARD_TOKENS_MAX;

struct Options {
  std::string prompt = "And it came to pass, that ";
  std::string data = CHAR_GPT_DATA;
  support::SamplerOptions sampling{.temperature = 0.6, .seed = 3};
  int characters = 400;
  int threads = 2;
};

[[noreturn]] void stop(const std::string &message) {
  std::fprintf(stderr, "char_gpt: %s\n", message.c_str());
  std::exit(1);
}

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    stop("cannot read \"" + path + "\"");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Returns the tokens of a text; an unknown character is an error.
std::vector<std::int32_t> encode(const std::string &text) {
  std::vector<std::int32_t> tokens;
  for (char c : text) {
    std::size_t token = char_gpt::vocabulary.find(c);
    if (token == std::string_view::npos)
      stop(std::string("text: character is not in the vocabulary; got '") + c + "'");
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return tokens;
}

/// The model with everything that a call needs. Nothing is allocated after construction.
class Generator {
public:
  explicit Generator(const Options &options) : logits(static_cast<std::size_t>(context) * vocabularySize) {
    check(char_gpt_pool_create(options.threads, &pool, &error));
    check(model.bind((options.data + "/char_gpt.safetensors").c_str(), &error));
    check(session.begin(model, {nullptr, 0, char_gpt_pool_executor(pool), &error}));
  }
  ~Generator() { char_gpt_pool_destroy(pool); }
  Generator(const Generator &) = delete;
  Generator &operator=(const Generator &) = delete;

  std::size_t arenaBytes() { return session.call().arena_bytes; }

  /// Returns the logits of each position's next character: [tokens, vocabulary].
  const float *run(std::span<const std::int32_t> tokens) {
    check(session.forward(tokens, std::span<float>(logits).first(tokens.size() * vocabularySize)));
    return logits.data();
  }

  /// Returns the logits of the character after `tokens`, of which the last call had the first `known`: only the others
  /// are computed.
  const float *next(std::span<const std::int32_t> tokens, std::size_t known) {
    const auto length = static_cast<std::int64_t>(tokens.size());
    if (length == static_cast<std::int64_t>(known) + 1)
      check(session.decode(length, tokens.data() + known, logits.data()));
    else
      check(session.prefill(length, tokens.subspan(known), logits.data()));
    return logits.data();
  }

private:
  void check(kiln_status_t status) {
    if (status != KILN_OK)
      stop(std::string(error.message) + " (" + char_gpt_status_text(status) + ")");
  }

  kiln_error_t error{};
  kiln_pool_t *pool = nullptr;
  char_gpt::Model model;
  char_gpt::Session session; // its arena has the KV cache
  std::vector<float> logits;
};

/// Prints the prompt and its continuation; returns tokens per second.
double generate(Generator &generator, const Options &options) {
  std::vector<std::int32_t> tokens = encode(options.prompt);
  if (tokens.empty())
    stop("prompt: empty; expected one character or more");
  support::Sampler sampler(options.sampling);
  std::fputs(options.prompt.c_str(), stdout);
  auto start = std::chrono::steady_clock::now();
  // The context is the text from `first` on. When it is full, it restarts with its second half.
  std::size_t first = tokens.size() > context ? tokens.size() - context / 2 : 0, known = 0;
  for (int i = 0; i < options.characters; ++i) {
    if (tokens.size() - first > context) {
      first = tokens.size() - context / 2;
      known = 0;
    }
    std::span<const std::int32_t> text = std::span(tokens).subspan(first);
    std::int32_t next = sampler(std::span(generator.next(text, known), vocabularySize));
    known = text.size();
    tokens.push_back(next);
    std::fputc(char_gpt::vocabulary[next], stdout);
    std::fflush(stdout);
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return options.characters / seconds.count();
}

/// Returns the mean of -log2 p over characters 1 .. 255 of each window of 256, each predicted from its own window.
double bitsPerCharacter(Generator &generator, const std::string &text) {
  std::vector<std::int32_t> tokens = encode(text);
  double bits = 0;
  std::size_t count = 0;
  for (std::size_t first = 0; first + context <= tokens.size(); first += context) {
    std::span<const std::int32_t> window(tokens.data() + first, context);
    const float *logits = generator.run(window);
    for (int i = 0; i + 1 < context; ++i, ++count, logits += vocabularySize) {
      double most = *std::max_element(logits, logits + vocabularySize), sum = 0;
      for (int c = 0; c < vocabularySize; ++c)
        sum += std::exp(logits[c] - most);
      bits -= (logits[window[i + 1]] - most - std::log(sum)) / std::log(2.0);
    }
  }
  return bits / static_cast<double>(count);
}

/// Returns the number after "bits_per_character" in expected.json.
double expectedBits(const Options &options) {
  std::string text = readFile(options.data + "/expected.json");
  std::size_t at = text.find("\"bits_per_character\":");
  if (at == std::string::npos)
    stop("expected.json lacks bits_per_character");
  return std::strtod(text.c_str() + text.find(':', at) + 1, nullptr);
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--help") {
      std::puts("char_gpt_demo [--prompt TEXT] [--temperature X] [--top-k N] [--top-p X] [--characters N] [--threads "
                "N] [--seed N] [--data FOLDER]");
      std::exit(0);
    }
    if (i + 1 == argc)
      stop(word + ": unknown option, or no value; see --help");
    std::string value = argv[++i];
    char *end = nullptr;
    double number = std::strtod(value.c_str(), &end);
    bool isNumber = !value.empty() && *end == 0;
    if (word == "--prompt")
      options.prompt = value;
    else if (word == "--data")
      options.data = value;
    else if (!isNumber)
      stop(word + ": unknown option, or wrong value; expected a number, got \"" + value + "\"");
    else if (word == "--temperature" && number >= 0)
      options.sampling.temperature = number;
    else if (word == "--top-k" && number >= 0 && number <= vocabularySize)
      options.sampling.top_k = static_cast<std::size_t>(number);
    else if (word == "--top-p" && number > 0 && number <= 1)
      options.sampling.top_p = number;
    else if (word == "--characters" && number >= 0 && number <= 1e6)
      options.characters = static_cast<int>(number);
    else if (word == "--threads" && number >= 1 && number <= 1024)
      options.threads = static_cast<int>(number);
    else if (word == "--seed" && number >= 0 && number <= 4294967295.0)
      options.sampling.seed = static_cast<std::uint64_t>(number);
    else
      stop(word + ": unknown option, or value out of range; got " + value);
  }
  return options;
}

} // namespace

int main(int argc, char **argv) {
  Options options = parse(argc, argv);
  Generator generator(options);
  double rate = generate(generator, options);
  double ours = bitsPerCharacter(generator, readFile(options.data + "/heldout.txt"));
  double expected = expectedBits(options);
  std::printf("\n\n%.0f tokens per second, %d threads\n", rate, options.threads);
  std::printf("held-out text: %.5f bits per character; PyTorch %.5f; difference %.1e\n", ours, expected,
              std::fabs(ours - expected));
  std::printf("archive %.0f kB, arena %.0f kB\n", std::filesystem::file_size(CHAR_GPT_ARCHIVE) / 1e3,
              generator.arenaBytes() / 1e3);
  if (!(std::fabs(ours - expected) <= 1e-6))
    stop("the bits per character differ from PyTorch's by more than 1e-6");
}
