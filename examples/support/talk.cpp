// SPDX-License-Identifier: Apache-2.0
#include "talk.h"
#include "gguf.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <unistd.h>

namespace support {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The metadata of a GGUF file have precedence over other files in its folder.

const ChatForm &form_of(const TalkOptions &options) {
  const std::string field = "tokenizer.chat_template";
  if (!options.form.empty())
    return chat_form(options.form);
  return options.metadata && options.metadata->has(field)
             ? chat_form_of_template(options.metadata->at(field).text(), options.gguf)
             : chat_form_of(options.folder);
}

std::set<Token> ends_of(const TalkOptions &options) {
  const std::string field = "tokenizer.ggml.eos_token_id";
  if (options.metadata && options.metadata->has(field))
    return {static_cast<Token>(options.metadata->at(field).integer())};
  return end_tokens(options.folder);
}

/// One conversation with a model.
class Talk {
public:
  Talk(const TalkOptions &options, const Tokenizer &tokenizer, const Writer &writer)
      : options(options), tokenizer(tokenizer), writer(writer), sampler(options.sampling),
        conversation(tokenizer, form_of(options), options.system), ends(ends_of(options)) {}

  void reply(const std::string &text) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Token> prompt = ask(text);
    show(prompt, "prompt:");
    Token token = sampler(read(prompt));
    const double first = seconds_since(start);

    // A plain text is printed including the prompt; a reply is printed by itself.
    TextStream stream(tokenizer);
    if (!conversation.has_sides())
      for (Token known : prompt)
        put(stream.push(known));
    std::vector<Token> written;
    const auto writing = std::chrono::steady_clock::now();
    while (true) {
      written.push_back(token);
      if (ends.contains(token) || conversation.ends(token))
        break;
      put(stream.push(token));
      if (written.size() == options.tokens || length == writer.context)
        break;
      token = sampler(read({&token, 1}));
    }
    const double rest = seconds_since(writing);
    put(stream.finish() + "\n");
    show(written, "reply:");
    report(prompt.size(), first, written.size(), rest);
  }

private:
  /// Returns the tokens to read for this question; the conversation restarts when its context is full.
  std::vector<Token> ask(const std::string &text) {
    std::vector<Token> tokens = conversation.ask(text);
    if (length > 0 && length + tokens.size() > writer.context) {
      std::fputs("(the context is full; the conversation restarts)\n", stderr);
      length = 0;
      conversation.reset();
      tokens = conversation.ask(text);
    }
    if (tokens.empty())
      throw std::runtime_error("prompt: no tokens; expected one or more");
    if (length + tokens.size() > writer.context)
      throw std::runtime_error("prompt: too many tokens; expected at most " + std::to_string(writer.context) +
                               ", got " + std::to_string(tokens.size()));
    return tokens;
  }

  /// Returns the logits after these tokens, which the model reads in as many calls as necessary.
  std::span<const float> read(std::span<const Token> tokens) {
    std::span<const float> logits;
    for (; !tokens.empty(); tokens = tokens.subspan(std::min(writer.most, tokens.size()))) {
      const std::span<const Token> part = tokens.first(std::min(writer.most, tokens.size()));
      length += part.size();
      logits = writer.read(part, static_cast<std::int64_t>(length));
    }
    return logits;
  }

  void put(const std::string &text) const {
    if (options.shows_numbers || text.empty())
      return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  void show(const std::vector<Token> &tokens, const char *what) const {
    if (!options.shows_numbers)
      return;
    std::fputs(what, stdout);
    for (Token token : tokens)
      std::printf(" %d", token);
    std::puts("");
  }

  void report(std::size_t prompt, double first, std::size_t written, double rest) const {
    std::fflush(stdout);
    std::fprintf(stderr, "%zu tokens read, the first one written after %.1f ms; ", prompt, first * 1e3);
    std::fprintf(stderr, "%zu written, %.1f tokens per second; context %zu of %zu\n", written,
                 written > 1 ? static_cast<double>(written - 1) / rest : 0.0, length, writer.context);
  }

  const TalkOptions &options;
  const Tokenizer &tokenizer;
  const Writer &writer;
  Sampler sampler;
  Conversation conversation;
  std::set<Token> ends;
  std::size_t length = 0; // of the context
};

} // namespace

Tokenizer load_tokenizer(const TalkOptions &options) {
  return options.metadata && has_tokenizer(*options.metadata) ? tokenizer_of_gguf(*options.metadata)
                                                              : load_tokenizer(options.folder);
}

std::set<Token> end_tokens(const std::string &folder) {
  for (const char *file : {"generation_config.json", "config.json"}) {
    if (!std::filesystem::exists(folder + "/" + file))
      continue;
    const Config config = Config::read(folder + "/" + file);
    if (!config.has("eos_token_id"))
      continue;
    const Config end = config.at("eos_token_id");
    std::set<Token> tokens;
    for (const Config &each : end.is_array() ? end.elements() : std::vector<Config>{end})
      tokens.insert(static_cast<Token>(each.integer()));
    return tokens;
  }
  return {};
}

std::string weight_file(const std::string &folder) {
  for (const char *file : {"model.safetensors.index.json", "model.safetensors"})
    if (std::filesystem::exists(folder + "/" + file))
      return folder + "/" + file;
  throw std::runtime_error("\"" + folder + "\" has no model.safetensors, nor the index of several");
}

void talk(const TalkOptions &options, const Tokenizer &tokenizer, const Writer &writer) {
  Talk talk(options, tokenizer, writer);
  if (options.prompt)
    return talk.reply(*options.prompt);
  const bool isShown = isatty(fileno(stdin));
  for (std::string line; std::fputs(isShown ? "> " : "", stdout), std::fflush(stdout), std::getline(std::cin, line);)
    if (!line.empty())
      talk.reply(line);
}

} // namespace support
