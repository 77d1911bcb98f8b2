// SPDX-License-Identifier: Apache-2.0
//
// The program around a language model: options, a prompt or a conversation line by line, text printed as it is
// generated, speed at the end.
#pragma once

#include "chat.h"
#include "config.h"
#include "sampler.h"
#include "tokenizer.h"

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace support {

struct TalkOptions {
  std::string folder; // of the checkpoint
  std::string gguf;   // the path, if it is a GGUF file, and its metadata
  std::optional<Config> metadata;
  std::optional<std::string> prompt;
  std::string form; // of chat_forms(); empty: the checkpoint's
  std::string system;
  SamplerOptions sampling{.temperature = 0.8, .top_k = 40, .top_p = 0.95};
  std::size_t tokens = 256; // of a reply, at most
  unsigned threads = 1;
  std::size_t guesses = 4;    // of a draft at a time
  bool shows_numbers = false; // tokens instead of text
  std::vector<Token> ids;     // if not empty, only the logits after these tokens are printed
};

/// Returns the tokens of a text with their numbers: "464 3290".
std::vector<Token> tokens_of_numbers(const std::string &text);

/// Parses the program's arguments. Ends the program with a message if one is unknown or lacks a value, and for --help.
TalkOptions talk_options(int argc, char **argv);

/// A language model with a KV cache.
struct Writer {
  /// Reads the last tokens of a context that then has `context` tokens; returns the logits of the next one.
  std::function<std::span<const float>(std::span<const Token> tokens, std::int64_t context)> read;
  std::size_t most;    // tokens of one call
  std::size_t context; // tokens of the longest context
};

/// Loads the tokenizer of the options' GGUF file, if there is a supported one, else of the files in their folder.
Tokenizer load_tokenizer(const TalkOptions &options);
/// Returns the tokens that end a text: eos_token_id of generation_config.json, else of config.json.
std::set<Token> end_tokens(const std::string &folder);
/// Returns the weight file of a folder, or the index of several; throws an error if there is neither.
std::string weight_file(const std::string &folder);

/// Replies to the prompt, or to each line of standard input. Text is written to standard output, speed to standard
/// error.
void talk(const TalkOptions &options, const Tokenizer &tokenizer, const Writer &writer);

} // namespace support
