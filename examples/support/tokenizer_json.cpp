// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: the steps from "normalizer" to "post_processor", and the model between them, a BPE or a WordPiece.
#include "bpe.h"
#include "config.h"
#include "splitter.h"
#include "tokenizer.h"
#include "wordpiece.h"

#include <array>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace support {

namespace {

constexpr Token token_limit = 1 << 22; // limits memory for invalid token numbers
const std::string space_mark = "\u2581";

/// Returns the byte of each character in tokens that are written with one character per byte: printable ones of Latin-1
/// represent themselves, those from U+0100 on the other bytes, in order.
std::unordered_map<std::string, char> byte_characters() {
  std::unordered_map<std::string, char> table;
  auto utf8 = [](int code) {
    return code < 0x80 ? std::string(1, static_cast<char>(code))
                       : std::string{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  };
  for (int byte = 0, next = 0x100; byte < 256; ++byte) {
    const bool isShown = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    table[utf8(isShown ? byte : next++)] = static_cast<char>(byte);
  }
  return table;
}

/// Returns the bytes of such a token, or nothing if it is not one.
std::optional<std::string> bytes_of_characters(const std::string &written) {
  static const std::unordered_map<std::string, char> table = byte_characters();
  std::string bytes;
  for (std::size_t at = 0; at < written.size();) {
    const std::size_t length = character_bytes(std::string_view(written).substr(at));
    const auto found = table.find(written.substr(at, length));
    if (found == table.end())
      return std::nullopt;
    bytes += found->second;
    at += length;
  }
  return bytes;
}

std::string byte_name(int byte) {
  constexpr const char *digits = "0123456789ABCDEF";
  return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
}

class Reader {
public:
  explicit Reader(const Config &file) : file(file), model(file.at("model")) {
    isOfPieces = model.text("type", "BPE") == "WordPiece";
    if (!isOfPieces)
      splitter = std::make_shared<Splitter>(file);
  }

  Tokenizer read() {
    if (!isOfPieces && model.text("type", "BPE") != "BPE")
      model.at("type").refuse("BPE or WordPiece");
    read_vocabulary();
    parts.encode = isOfPieces ? word_pieces() : byte_pairs();
    read_added_tokens();
    if (file.has("post_processor"))
      read_post_processor(file.at("post_processor"));
    if (isOfPieces)
      set_names();
    else
      set_bytes();
    if (file.has("decoder"))
      read_decoder(file.at("decoder"));
    return Tokenizer(std::move(parts));
  }

private:
  void name(const std::string &content, const Config &number) {
    const std::int64_t token = number.integer();
    if (token < 0 || token >= token_limit)
      number.refuse("a token from 0 to " + std::to_string(token_limit - 1));
    if (static_cast<std::size_t>(token) >= parts.bytes.size())
      parts.bytes.resize(static_cast<std::size_t>(token) + 1);
    parts.names[content] = static_cast<Token>(token);
  }

  void read_vocabulary() {
    for (const auto &[content, number] : model.at("vocab").members())
      name(content, number);
    if (parts.names.empty())
      model.at("vocab").refuse("tokens");
  }

  Tokenizer::Encode byte_pairs() const {
    if (const std::string prefix = "continuing_subword_prefix"; !model.text(prefix, "").empty())
      model.at(prefix).refuse("none");
    auto bpe = std::make_shared<Bpe>(units(), merges(), options());
    return [bpe, splitter = splitter](std::string_view text, bool isFirst, std::vector<Token> &out) {
      (*splitter)(text, isFirst, [&](std::string_view word) { bpe->encode(word, out); });
    };
  }

  Tokenizer::Encode word_pieces() const {
    WordPiece::Options options;
    const Config normalizer = file.at("normalizer"), words = file.at("pre_tokenizer");
    if (normalizer.text("type", "") != "BertNormalizer")
      normalizer.refuse("BertNormalizer");
    if (words.text("type", "") != "BertPreTokenizer")
      words.refuse("BertPreTokenizer");
    options.cleans = normalizer.boolean("clean_text", true);
    options.parts_chinese = normalizer.boolean("handle_chinese_chars", true);
    options.lowers = normalizer.boolean("lowercase", true);
    options.strips_accents = normalizer.boolean("strip_accents", options.lowers);
    options.inner = model.text("continuing_subword_prefix", "##");
    options.longest = static_cast<std::size_t>(model.integer("max_input_chars_per_word", 100));
    const Config unknown = model.at("unk_token");
    if (const std::optional<Token> token = find(unknown.text()))
      options.unknown = *token;
    else
      unknown.refuse("a token of the vocabulary");
    auto pieces = std::make_shared<WordPiece>(parts.names, options);
    return [pieces](std::string_view text, bool, std::vector<Token> &out) { pieces->encode(text, out); };
  }

  /// Returns the units of words, as the splitter returns them.
  std::unordered_map<std::string, Token> units() const {
    if (!splitter->is_of_bytes())
      return parts.names;
    std::unordered_map<std::string, Token> result;
    for (const auto &[content, token] : parts.names)
      if (auto bytes = bytes_of_characters(content))
        result.emplace(*bytes, token);
    for (int byte = 0; byte < 256; ++byte)
      if (!result.contains(std::string(1, static_cast<char>(byte))) && !model.has("unk_token"))
        throw std::runtime_error("tokenizer.json: model.vocab lacks a token of the byte " + byte_name(byte));
    return result;
  }

  std::vector<Bpe::Merge> merges() const {
    std::vector<Bpe::Merge> result;
    for (const Config &merge : model.at("merges").elements()) {
      std::string left, right;
      if (merge.is_text()) { // "a b"
        const std::string both = merge.text();
        const std::size_t space = both.find(' ');
        if (space == both.npos || both.find(' ', space + 1) != both.npos)
          merge.refuse("two tokens with a space between them");
        left = both.substr(0, space), right = both.substr(space + 1);
      } else { // ["a", "b"]
        const std::vector<Config> both = merge.elements();
        if (both.size() != 2)
          merge.refuse("two tokens");
        left = both[0].text(), right = both[1].text();
      }
      auto token = [&](const std::string &content) {
        const auto found = parts.names.find(content);
        if (found == parts.names.end())
          merge.refuse("tokens of the vocabulary, which lacks \"" + content + "\"");
        return found->second;
      };
      result.push_back({token(left), token(right), token(left + right)});
    }
    return result;
  }

  Bpe::Options options() const {
    Bpe::Options result;
    result.unit = splitter->is_of_bytes() ? Unit::byte : Unit::character;
    result.joins_unknown = model.boolean("fuse_unk", false);
    result.takes_whole_words = model.boolean("ignore_merges", false);
    result.end_of_word = model.text("end_of_word_suffix", "");
    for (int byte = 0; model.boolean("byte_fallback", false) && byte < 256; ++byte) {
      const auto found = parts.names.find(byte_name(byte));
      if (found == parts.names.end())
        throw std::runtime_error("tokenizer.json: model.byte_fallback: missing token; expected " + byte_name(byte));
      result.bytes.push_back(found->second);
    }
    if (model.has("unk_token")) {
      const auto found = parts.names.find(model.at("unk_token").text());
      if (found == parts.names.end())
        model.at("unk_token").refuse("a token of the vocabulary");
      result.unknown = found->second;
    } else if (!splitter->is_of_bytes() && result.bytes.empty()) {
      throw std::runtime_error(
          "tokenizer.json: model: no token for unknown text; expected byte_fallback or an unk_token, got neither");
    }
    return result;
  }

  void read_added_tokens() {
    if (!file.has("added_tokens"))
      return;
    for (const Config &added : file.at("added_tokens").elements()) {
      const std::string content = added.at("content").text();
      if (content.empty())
        added.at("content").refuse("a name");
      name(content, added.at("id"));
      parts.added.push_back({content, parts.names[content], added.boolean("special", true),
                             added.boolean("lstrip", false), added.boolean("rstrip", false)});
    }
  }

  void read_post_processor(const Config &stage) {
    const std::string type = stage.at("type").text();
    if (type == "Sequence") {
      for (const Config &part : stage.at("processors").elements())
        read_post_processor(part);
    } else if (type == "TemplateProcessing") {
      bool isAfter = false;
      for (const Config &piece : stage.at("single").elements()) {
        if (piece.has("Sequence")) {
          isAfter = true;
          continue;
        }
        const Config special = piece.at("SpecialToken").at("id");
        const std::optional<Token> token = find(special.text());
        if (!token)
          special.refuse("a token of the vocabulary");
        (isAfter ? parts.after : parts.before).push_back(*token);
      }
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      parts.before.push_back(first_of(stage.at("cls")));
      parts.after.push_back(first_of(stage.at("sep")));
    } else if (type != "ByteLevel") {
      stage.refuse("BertProcessing, ByteLevel, RobertaProcessing, TemplateProcessing, or a Sequence of these");
    }
  }

  /// Returns the token of a pair of its name and its number.
  Token first_of(const Config &pair) const {
    const std::vector<Config> both = pair.elements();
    if (both.size() != 2)
      pair.refuse("a token's name and number");
    const std::optional<Token> token = find(both[0].text());
    if (!token)
      both[0].refuse("a token of the vocabulary");
    return *token;
  }

  void read_decoder(const Config &stage) {
    const std::string type = stage.at("type").text();
    if (type == "Sequence") {
      for (const Config &part : stage.at("decoders").elements())
        read_decoder(part);
    } else if (type == "Replace") {
      if (stage.at("pattern").at("String").text() != space_mark || stage.at("content").text() != " ")
        stage.refuse("a space for " + space_mark);
    } else if (type == "Strip") {
      if (stage.at("content").text() != " " || stage.integer("start", 0) > 1 || stage.integer("stop", 0) != 0)
        stage.refuse("the first space");
      parts.drops_first_space = stage.integer("start", 0) == 1;
    } else if (type == "Metaspace") {
      const std::string scheme =
          stage.text("prepend_scheme", stage.boolean("add_prefix_space", true) ? "always" : "never");
      parts.drops_first_space = scheme != "never";
    } else if (type != "ByteLevel" && type != "ByteFallback" && type != "Fuse" &&
               !(isOfPieces && type == "WordPiece")) {
      stage.refuse("ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip, or a Sequence of these");
    }
  }

  std::optional<Token> find(const std::string &content) const {
    const auto found = parts.names.find(content);
    return found == parts.names.end() ? std::nullopt : std::optional(found->second);
  }

  /// The text of a word piece is its name.
  void set_names() {
    for (const auto &[content, token] : parts.names)
      parts.bytes[token] = content;
  }

  void set_bytes() {
    for (const auto &[content, token] : parts.names)
      parts.bytes[token] = splitter->is_of_bytes() ? bytes_of_characters(content).value_or(content) : spaced(content);
    if (model.boolean("byte_fallback", false))
      for (int byte = 0; byte < 256; ++byte)
        parts.bytes[*find(byte_name(byte))] = std::string(1, static_cast<char>(byte));
    for (const Tokenizer::Added &added : parts.added)
      parts.bytes[added.token] = added.is_special ? "" : added.name;
    if (model.has("unk_token") && !parts.added.empty())
      parts.bytes[*find(model.at("unk_token").text())].clear();
  }

  static std::string spaced(std::string content) {
    for (std::size_t at = 0; (at = content.find(space_mark, at)) != content.npos; ++at)
      content.replace(at, space_mark.size(), " ");
    return content;
  }

  Config file, model;
  bool isOfPieces = false;
  std::shared_ptr<const Splitter> splitter; // of a BPE
  Tokenizer::Parts parts;
};

} // namespace

Tokenizer tokenizer_of_json(const std::string &json) { return Reader(Config::parse("tokenizer.json", json)).read(); }

Tokenizer tokenizer_of_merges(const std::string &vocab_json, const std::string &merges_txt) {
  const Config vocabulary = Config::parse("vocab.json", vocab_json);
  nlohmann::json merges = nlohmann::json::array(), added = nlohmann::json::array(), tokens;
  for (const auto &[content, number] : vocabulary.members())
    tokens[content] = number.integer();
  for (std::size_t at = 0; at < merges_txt.size();) {
    const std::size_t end = std::min(merges_txt.find('\n', at), merges_txt.size());
    std::string line = merges_txt.substr(at, end - at);
    if (line.ends_with('\r'))
      line.pop_back();
    if (!line.empty() && !(at == 0 && line.starts_with("#version")))
      merges.push_back(line);
    at = end + 1;
  }
  if (tokens.contains("<|endoftext|>"))
    added.push_back({{"id", tokens["<|endoftext|>"]}, {"content", "<|endoftext|>"}});
  const nlohmann::json stage{{"type", "ByteLevel"}, {"add_prefix_space", false}};
  return Reader(Config("vocab.json and merges.txt", {{"model", {{"vocab", tokens}, {"merges", merges}}},
                                                     {"added_tokens", added},
                                                     {"pre_tokenizer", stage}}))
      .read();
}

Tokenizer tokenizer_of_pieces(const std::string &vocab_txt, bool lowers) {
  nlohmann::json tokens, added = nlohmann::json::array();
  std::istringstream lines(vocab_txt);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    if (line.ends_with('\r'))
      line.pop_back();
    tokens[line] = number;
    if (line.starts_with('[') && line.ends_with(']') && line.size() > 2 && line.find("unused") == line.npos)
      added.push_back({{"id", number}, {"content", line}});
  }
  const nlohmann::json model{{"type", "WordPiece"}, {"vocab", tokens}, {"unk_token", "[UNK]"}},
      normalizer{{"type", "BertNormalizer"}, {"lowercase", lowers}}, words{{"type", "BertPreTokenizer"}},
      around{{"type", "BertProcessing"}, {"cls", {"[CLS]", 0}}, {"sep", {"[SEP]", 0}}};
  return Reader(Config("vocab.txt", {{"model", model},
                                     {"added_tokens", added},
                                     {"normalizer", normalizer},
                                     {"pre_tokenizer", words},
                                     {"post_processor", around}}))
      .read();
}

} // namespace support
