// SPDX-License-Identifier: Apache-2.0
//
// Text to tokens and back, by the files of a checkpoint:
//
//   tokenizer.json            byte-pair encoding of bytes (GPT-2, Llama 3) or of characters (Llama 2, TinyLlama), or
//                             WordPiece (BERT)
//   vocab.json, merges.txt    the format of GPT-2's first files
//   vocab.txt                 the format of BERT's files
//   tokenizer.model           sentencepiece, by its library, if the program was built with it; also spiece.model (T5)
//
// A file that cannot be read is an error, std::runtime_error, that names the file and the location.
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

/// Whether names of special tokens are encoded as these tokens, or as plain text, as in user input.
enum class Specials { recognised, text };

class Tokenizer {
public:
  /// A token that is in the text under its own name.
  struct Added {
    std::string name;
    Token token;
    bool is_special = true; // not part of the output
    bool takes_space_before = false, takes_space_after = false;
  };
  /// Appends the tokens of a text without added tokens; `isFirst`: whether it begins the whole text.
  using Encode = std::function<void(std::string_view text, bool isFirst, std::vector<Token> &out)>;
  struct Parts {
    std::unordered_map<std::string, Token> names; // of all tokens
    std::vector<std::string> bytes;               // of each token; a special one has none
    std::vector<Added> added;
    std::vector<Token> before, after; // added by the model's convention around a text
    bool drops_first_space = false;   // that `encode` puts before the text
    Encode encode;
  };

  explicit Tokenizer(Parts parts);

  /// `isFirst`: whether the text begins the model's input, which some tokenizers mark.
  std::vector<Token> encode(std::string_view text, Specials specials = Specials::recognised, bool isFirst = true) const;
  /// Return the special tokens that the model expects before and after a text.
  const std::vector<Token> &before() const { return parts.before; }
  const std::vector<Token> &after() const { return parts.after; }
  /// Returns the token of this name.
  std::optional<Token> find(const std::string &name) const;
  /// Returns one more than the largest token.
  std::size_t size() const { return parts.bytes.size(); }
  /// Returns the bytes of a token, which may be a part of a character.
  std::string_view bytes(Token token) const;
  bool drops_first_space() const { return parts.drops_first_space; }

private:
  Parts parts; // `added` has the longest names first
};

/// Converts tokens to valid UTF-8 as they arrive.
class TextStream {
public:
  explicit TextStream(const Tokenizer &tokenizer) : tokenizer(tokenizer), isFirst(tokenizer.drops_first_space()) {}

  /// Returns the text that this token adds; nothing while a character is incomplete.
  std::string push(Token token);
  /// Returns the rest at the end.
  std::string finish() { return stream.finish(); }

private:
  const Tokenizer &tokenizer;
  Utf8Stream stream;
  bool isFirst;
};

/// Returns the bytes of all tokens; they are valid UTF-8 only if they encode a text that was.
std::string decode(const Tokenizer &tokenizer, const std::vector<Token> &tokens);

/// Loads the first of the above files in a checkpoint's folder.
Tokenizer load_tokenizer(const std::string &folder);
/// Loads the bytes of a tokenizer.json.
Tokenizer tokenizer_of_json(const std::string &json);
/// Loads GPT-2's two files.
Tokenizer tokenizer_of_merges(const std::string &vocab_json, const std::string &merges_txt);
/// Loads BERT's file; `lowers` converts text to lower case.
Tokenizer tokenizer_of_pieces(const std::string &vocab_txt, bool lowers);
/// Loads a tokenizer.model.
Tokenizer tokenizer_of_sentencepiece(const std::string &path);

} // namespace support
