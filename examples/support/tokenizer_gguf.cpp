// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer in the metadata of a GGUF file, if it is sentencepiece's ("llama"): pieces with scores. Of all adjacent
// pairs whose text is a piece, the pair with the highest score merges; this is equivalent to a tokenizer.json with
// these pairs as merges, in the order of the scores.
#include "gguf.h"
#include "utf8.h"

#include <algorithm>
#include <numeric>

namespace support {

namespace {

using nlohmann::json;

/// The token types of tokenizer.ggml.token_type.
enum TokenKind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct Piece {
  std::string text;
  double score;
  std::int64_t kind;
};

std::vector<Piece> pieces_of(const Config &metadata) {
  const std::vector<Config> texts = metadata.at("tokenizer.ggml.tokens").elements(),
                            scores = metadata.at("tokenizer.ggml.scores").elements(),
                            kinds = metadata.at("tokenizer.ggml.token_type").elements();
  if (scores.size() != texts.size() || kinds.size() != texts.size())
    metadata.at("tokenizer.ggml.model").refuse("as many tokens as scores and types");
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < texts.size(); ++i)
    pieces.push_back({texts[i].text(), scores[i].number(), kinds[i].integer()});
  return pieces;
}

/// Returns all pairs of pieces that form a piece, in order of descending scores.
json merges_of(const std::vector<Piece> &pieces, const json &vocabulary) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pieces[a].score > pieces[b].score; });
  json merges = json::array();
  for (const std::size_t i : order) {
    const std::string &text = pieces[i].text;
    if (pieces[i].kind != normal)
      continue;
    for (std::size_t at = character_bytes(text); at < text.size();
         at += character_bytes(std::string_view(text).substr(at)))
      if (vocabulary.contains(text.substr(0, at)) && vocabulary.contains(text.substr(at)))
        merges.push_back({text.substr(0, at), text.substr(at)});
  }
  return merges;
}

} // namespace

bool has_tokenizer(const Config &metadata) { return metadata.text("tokenizer.ggml.model", "") == "llama"; }

Tokenizer tokenizer_of_gguf(const Config &metadata) {
  const std::vector<Piece> pieces = pieces_of(metadata);
  json vocabulary = json::object();
  json file{{"added_tokens", json::array()}};
  json model{{"type", "BPE"}, {"fuse_unk", true}, {"byte_fallback", false}};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece &piece = pieces[i];
    vocabulary[piece.text] = i;
    if (piece.kind == unknown)
      model["unk_token"] = piece.text;
    if (piece.kind == byte)
      model["byte_fallback"] = true;
    if (piece.kind == unknown || piece.kind == control || piece.kind == user_defined)
      file["added_tokens"].push_back({{"id", i}, {"content", piece.text}, {"special", piece.kind != user_defined}});
  }
  model["merges"] = merges_of(pieces, vocabulary);
  model["vocab"] = std::move(vocabulary);
  file["model"] = std::move(model);

  const std::string mark = "\u2581";
  json before = json::array(), after = json::array();
  const bool isSpaced = metadata.boolean("tokenizer.ggml.add_space_prefix", true);
  if (isSpaced)
    before.push_back({{"type", "Prepend"}, {"prepend", mark}});
  before.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", mark}});
  after.push_back({{"type", "Replace"}, {"pattern", {{"String", mark}}}, {"content", " "}});
  if (isSpaced)
    after.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", before}};
  file["decoder"] = {{"type", "Sequence"}, {"decoders", after}};
  if (metadata.boolean("tokenizer.ggml.add_bos_token", true) && metadata.has("tokenizer.ggml.bos_token_id")) {
    const std::int64_t first = metadata.integer("tokenizer.ggml.bos_token_id", 0);
    if (first < 0 || static_cast<std::size_t>(first) >= pieces.size())
      metadata.at("tokenizer.ggml.bos_token_id").refuse("a token");
    file["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", {{{"SpecialToken", {{"id", pieces[first].text}}}}, {{"Sequence", {{"id", "A"}}}}}}};
  }
  return tokenizer_of_json(file.dump());
}

} // namespace support
