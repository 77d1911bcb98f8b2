// SPDX-License-Identifier: Apache-2.0
//
// Text to tokens and back, as a published checkpoint's files say:
//
//   tokenizer.json            byte-pair encoding of bytes (GPT-2, Llama 3) or of characters (Llama 2, TinyLlama), or
//                             WordPiece (BERT)
//   vocab.json, merges.txt    that of GPT-2's first files
//   vocab.txt                 that of BERT's
//   tokenizer.model           sentencepiece, by its library, if the program was built with it; also spiece.model (T5)
//
// What cannot be read is an error, std::runtime_error, that names the file and the place.
#pragma once

#include "utf8.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace support {

using Token = std::int32_t;

/// Whether the names of special tokens stand for these tokens, or are text like any other, as in what a user says.
enum class Specials { recognised, text };

class Tokenizer {
public:
  /// A token that stands in the text under a name of its own.
  struct Added {
    std::string name;
    Token token;
    bool is_special = true; // not part of what is shown
    bool takes_space_before = false, takes_space_behind = false;
  };
  /// Appends the tokens of a text without added ones; `isFirst`: it begins the whole text.
  using Encode = std::function<void(std::string_view text, bool isFirst, std::vector<Token> &out)>;
  struct Parts {
    std::unordered_map<std::string, Token> names; // of all tokens
    std::vector<std::string> bytes;               // that each token stands for; a special one has none
    std::vector<Added> added;
    std::vector<Token> before, behind; // what the model expects around a text
    bool drops_first_space = false;    // that `encode` put before the text
    Encode encode;
  };

  explicit Tokenizer(Parts parts);

  /// `isFirst`: the text begins what the model reads, which some tokenizers mark.
  std::vector<Token> encode(std::string_view text, Specials specials = Specials::recognised, bool isFirst = true) const;
  /// Special tokens that the model expects before and behind a text.
  const std::vector<Token> &before() const { return parts.before; }
  const std::vector<Token> &behind() const { return parts.behind; }
  /// The token of this name.
  std::optional<Token> find(const std::string &name) const;
  /// One more than the largest token.
  std::size_t size() const { return parts.bytes.size(); }
  /// The bytes that a token stands for: part of a character, it may be.
  std::string_view bytes(Token token) const;
  bool drops_first_space() const { return parts.drops_first_space; }

private:
  Parts parts; // `added` has the longest names first
};

/// Tokens as they come, as valid UTF-8.
class TextStream {
public:
  explicit TextStream(const Tokenizer &tokenizer) : tokenizer(tokenizer), isFirst(tokenizer.drops_first_space()) {}

  /// What this token adds to the text; nothing while a character lacks bytes.
  std::string push(Token token);
  /// What is left at the end.
  std::string finish() { return stream.finish(); }

private:
  const Tokenizer &tokenizer;
  Utf8Stream stream;
  bool isFirst;
};

/// The bytes of all tokens; only a text that was valid UTF-8 is so again.
std::string decode(const Tokenizer &tokenizer, const std::vector<Token> &tokens);

/// From the files of a checkpoint's folder, the first of the above that it has.
Tokenizer load_tokenizer(const std::string &folder);
/// From the bytes of a tokenizer.json.
Tokenizer tokenizer_of_json(const std::string &json);
/// From those of GPT-2's two files.
Tokenizer tokenizer_of_merges(const std::string &vocab_json, const std::string &merges_txt);
/// From that of BERT's, where a text is in lower case or not.
Tokenizer tokenizer_of_pieces(const std::string &vocab_txt, bool lowers);
/// From a tokenizer.model.
Tokenizer tokenizer_of_sentencepiece(const std::string &path);

} // namespace support
