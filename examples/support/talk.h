// SPDX-License-Identifier: Apache-2.0
//
// The program around a language model: options, a prompt or a conversation line by line, text as it is written, speed
// at the end.
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
  std::string gguf;   // the path, if it is a GGUF file, and what that says of itself
  std::optional<Config> metadata;
  std::optional<std::string> prompt;
  std::string form; // of chat_forms(); empty: the checkpoint's
  std::string system;
  SamplerOptions sampling{.temperature = 0.8, .top_k = 40, .top_p = 0.95};
  std::size_t tokens = 256; // of a reply, at most
  unsigned threads = 1;
  std::size_t guesses = 4;    // of a draft at a time
  bool shows_numbers = false; // tokens in place of text
  std::vector<Token> ids;     // if there are some, the logits behind them are all that is asked for
};

/// The tokens whose numbers stand in a text: "464 3290".
std::vector<Token> tokens_of_numbers(const std::string &text);

/// What the program's arguments say. Ends the program with words where one is unknown or lacks a value, and for --help.
TalkOptions talk_options(int argc, char **argv);

/// A model that keeps its context.
struct Writer {
  /// Takes in the last tokens of a context that then has `context` of them; gives the logits of the next one.
  std::function<std::span<const float>(std::span<const Token> tokens, std::int64_t context)> read;
  std::size_t most;    // tokens of one call
  std::size_t context; // tokens of the longest context
};

/// From the GGUF file of the options, if it has one that is read; else from the files of their folder.
Tokenizer load_tokenizer(const TalkOptions &options);
/// Tokens that end a text: eos_token_id of generation_config.json, else of config.json.
std::set<Token> end_tokens(const std::string &folder);
/// The weight file of a folder, or the index of several; an error if there is neither.
std::string weight_file(const std::string &folder);

/// Replies to the prompt, or to each line of the standard input. Text goes to the standard output, speed to the
/// standard error.
void talk(const TalkOptions &options, const Tokenizer &tokenizer, const Writer &writer);

} // namespace support
