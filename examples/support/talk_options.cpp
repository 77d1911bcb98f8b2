// SPDX-License-Identifier: Apache-2.0
#include "gguf.h"
#include "talk.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace support {

namespace {

void help(const char *program) {
  std::printf(
      "%s DIRECTORY|FILE.gguf [OPTION ...]\n"
      "\n"
      "Chats with the model of a checkpoint, line by line, or continues a prompt. The checkpoint is a directory, or\n"
      "a GGUF file with the other files of the checkpoint in the same directory.\n"
      "\n"
      "  --prompt TEXT      reply to this text, then exit\n"
      "  --template NAME    form of a conversation, if not the checkpoint's own: plain, llama-2, llama-3,\n"
      "                     chatml, zephyr\n"
      "  --system TEXT      system prompt, before the first question\n"
      "  --tokens N         maximum number of tokens to write (256)\n"
      "  --temperature X    0: the most likely token (0.8)\n"
      "  --top-k N          sample from the N most likely tokens; 0: from all (40)\n"
      "  --top-p X          sample from the fewest tokens with this total probability (0.95)\n"
      "  --seed N           seed of the sampling (1)\n"
      "  --threads N        number of threads (1)\n"
      "  --numbers          print token ids in place of text\n"
      "  --ids \"N N ...\"    print the logits after these tokens, then exit\n",
      program);
  std::exit(0);
}

/// Parses a number from `least` to `most`, which must be an integer if `isWhole`.
double number(const std::string &option, const std::string &value, double least, double most, bool isWhole) {
  char *end = nullptr;
  const double result = std::strtod(value.c_str(), &end);
  const bool isNumber = !value.empty() && *end == '\0' && result >= least && result <= most;
  if (!isNumber || (isWhole && result != static_cast<double>(static_cast<long long>(result))))
    throw std::runtime_error(option + ": wrong value; expected " + (isWhole ? "an integer" : "a number") + " from " +
                             std::to_string(static_cast<long long>(least)) + " to " +
                             std::to_string(static_cast<long long>(most)) + ", got \"" + value + "\"");
  return result;
}

} // namespace

std::vector<Token> tokens_of_numbers(const std::string &text) {
  std::vector<Token> tokens;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    tokens.push_back(static_cast<Token>(number("--ids", word, 0, 1 << 30, true)));
  if (tokens.empty())
    throw std::runtime_error("--ids: no tokens; expected their numbers, got \"" + text + "\"");
  return tokens;
}

TalkOptions talk_options(int argc, char **argv) {
  constexpr double many = 1 << 30;
  TalkOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help")
      help(argv[0]);
    if (!word.starts_with("--")) {
      if (!options.folder.empty())
        throw std::runtime_error("checkpoint: several directories; expected one, got \"" + options.folder +
                                 "\" and \"" + word + "\"");
      options.folder = word;
      if (is_gguf(word)) {
        options.gguf = word;
        const std::size_t slash = word.rfind('/');
        options.folder = slash == word.npos ? "." : word.substr(0, slash + 1);
        options.metadata = gguf_metadata(word);
      }
      continue;
    }
    if (word == "--numbers") {
      options.shows_numbers = true;
      continue;
    }
    if (i + 1 == argc)
      throw std::runtime_error(word + ": unknown option, or no value; see --help");
    const std::string value = argv[++i];
    auto whole = [&](double least, double most) { return number(word, value, least, most, true); };
    if (word == "--prompt")
      options.prompt = value;
    else if (word == "--template")
      options.form = chat_form(value).name;
    else if (word == "--system")
      options.system = value;
    else if (word == "--tokens")
      options.tokens = static_cast<std::size_t>(whole(1, many));
    else if (word == "--temperature")
      options.sampling.temperature = number(word, value, 0, 100, false);
    else if (word == "--top-k")
      options.sampling.top_k = static_cast<std::size_t>(whole(0, many));
    else if (word == "--top-p")
      options.sampling.top_p = number(word, value, 0, 1, false);
    else if (word == "--seed")
      options.sampling.seed = static_cast<std::uint64_t>(whole(0, 9e15));
    else if (word == "--threads")
      options.threads = static_cast<unsigned>(whole(1, 1024));
    else if (word == "--ids")
      options.ids = tokens_of_numbers(value);
    else if (word == "--guesses")
      options.guesses = static_cast<std::size_t>(whole(1, 64));
    else
      throw std::runtime_error(word + ": unknown option; see --help");
  }
  if (options.folder.empty())
    throw std::runtime_error("checkpoint: no directory given; see --help");
  return options;
}

} // namespace support
