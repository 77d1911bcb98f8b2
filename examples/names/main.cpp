// SPDX-License-Identifier: Apache-2.0
//
// Translates English names to French with both models, and counts how many test names are correct, compared with
// PyTorch's counts: names_demo [--data FOLDER] [--picture FILE.svg] [KIND:NAME ...]. Names are those of Debian's
// iso-codes.
#include "names_recurrent.hpp"
#include "names_transformer.hpp"

#include "catalogue.h"
#include "support/picture.h"
#include "support/session.h"

#include <algorithm>

namespace {

constexpr int notHere = 77; // exit status of a skipped test

struct Translation {
  std::vector<std::int32_t> tokens; // without the end
  std::vector<float> seen;          // attention to each source token before each token and the end
};

/// Repeatedly writes the most likely next token.
template <class Model> class Translator {
public:
  Translator(const std::string &weights, std::size_t arenaBytes, std::size_t memoryWidth)
      : session(arenaBytes), memory(names::source_tokens * memoryWidth), logits(names::vocabulary) {
    session.check(model.bind(weights.c_str(), &session.error));
  }

  Translation operator()(const std::vector<std::int32_t> &source) {
    session.check(model.encode(session.call, {source.data(), source.size()}, {memory.data(), source.size()}));
    Translation result;
    std::vector<float> seen(source.size());
    for (std::int32_t token = names::start; token != names::end && result.tokens.size() <= names::longest;) {
      const auto count = static_cast<std::int64_t>(result.tokens.size()) + 1;
      const kiln::View<float, 1, kiln::dynamic> row{seen.data(), seen.size()};
      if constexpr (requires { model.step(session.call, count, &token, logits.data(), row); })
        session.check(model.step(session.call, count, &token, logits.data(), row));
      else
        session.check(model.step(session.call, &token, logits.data(), row));
      result.seen.insert(result.seen.end(), seen.begin(), seen.end());
      token = static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      if (token != names::end)
        result.tokens.push_back(token);
    }
    return result;
  }

private:
  support::Session session;
  Model model;
  std::vector<float> memory, logits;
};

std::string text_of(const Translation &translation) {
  std::string text;
  for (std::int32_t token : translation.tokens)
    text += names::text_of(token);
  return text;
}

/// Parses "language:Old French"; a name without a kind is a place.
names::Pair parse(const std::string &word) {
  const std::size_t colon = word.find(':');
  names::Pair pair{0, colon == std::string::npos ? word : word.substr(colon + 1), ""};
  if (colon != std::string::npos) {
    const auto *found = std::find(std::begin(names::kinds), std::end(names::kinds), word.substr(0, colon));
    if (found == std::end(names::kinds))
      support::stop("\"" + word + "\": unknown kind of name; expected place, language, currency or script");
    pair.kind = static_cast<int>(found - names::kinds);
  }
  if (names::tokens_of(pair.english).empty())
    support::stop("\"" + pair.english + "\": not a name; expected 1 to 40 characters below U+0180");
  return pair;
}

support::Matrix matrix(const char *title, const names::Pair &pair, const Translation &translation) {
  support::Matrix result{title, {}, {names::kinds[pair.kind]}, translation.seen};
  for (std::int32_t token : names::tokens_of(pair.english))
    result.columns.push_back(names::text_of(token));
  result.columns.push_back("end");
  for (std::int32_t token : translation.tokens)
    result.rows.push_back(names::text_of(token));
  if (translation.seen.size() > result.rows.size() * result.columns.size())
    result.rows.push_back("end");
  return result;
}

} // namespace

int main(int argc, char **argv) try {
  std::string folder = names::catalogues, picture;
  std::vector<names::Pair> asked;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--") && (i + 1 == argc || (word != "--data" && word != "--picture")))
      support::stop("names_demo [--data FOLDER] [--picture FILE.svg] [KIND:NAME ...]");
    if (word == "--data")
      folder = argv[++i];
    else if (word == "--picture")
      picture = argv[++i];
    else
      asked.push_back(parse(word));
  }
  Translator<names_recurrent::Model> recurrent(
      NAMES_FOLDER "/recurrent.safetensors",
      std::max(NAMES_RECURRENT_ENCODE_ARENA_BYTES(1), NAMES_RECURRENT_STEP_ARENA_BYTES(1)), 256);
  Translator<names_transformer::Model> transformer(
      NAMES_FOLDER "/transformer.safetensors",
      std::max(NAMES_TRANSFORMER_ENCODE_ARENA_BYTES(1), NAMES_TRANSFORMER_STEP_ARENA_BYTES(1)), 128);

  const bool isAsked = !asked.empty();
  if (!isAsked)
    asked = {parse("language:Southern Amami"), parse("place:South Sandwich Islands"), parse("currency:Maltese Dollar")};
  for (const names::Pair &pair : asked) {
    const std::vector<std::int32_t> source = names::source_of(pair.kind, pair.english);
    const Translation first = recurrent(source), second = transformer(source);
    std::printf("%s \"%s\": \"%s\", \"%s\"\n", names::kinds[pair.kind], pair.english.c_str(), text_of(first).c_str(),
                text_of(second).c_str());
    if (!picture.empty() && &pair == &asked.front()) {
      const std::vector<support::Matrix> both{matrix("recurrent", pair, first), matrix("Transformer", pair, second)};
      if (!support::draw(picture, both))
        support::stop("cannot write " + picture);
      std::printf("%s\n", picture.c_str());
    }
  }
  if (isAsked)
    return 0;

  const std::vector<names::Pair> pairs = names::read_pairs(folder).test;
  if (pairs.empty()) {
    std::printf("skipped: no French catalogues in %s (package iso-codes)\n", folder.c_str());
    return notHere;
  }
  std::size_t right[2] = {};
  for (const names::Pair &pair : pairs) {
    const std::vector<std::int32_t> source = names::source_of(pair.kind, pair.english);
    right[0] += text_of(recurrent(source)) == pair.french;
    right[1] += text_of(transformer(source)) == pair.french;
  }
  bool isEqual = pairs.size() == support::read_number(NAMES_FOLDER "/expected.json", "names");
  const char *models[] = {"recurrent", "transformer"};
  for (int i = 0; i < 2; ++i) {
    const std::size_t expected = support::read_number(NAMES_FOLDER "/expected.json", std::string(models[i]) + "_right");
    std::printf("%s: %zu of %zu test names right; PyTorch: %zu\n", models[i], right[i], pairs.size(), expected);
    isEqual = isEqual && right[i] == expected;
  }
  if (!isEqual)
    support::stop("PyTorch has another number of them right");
} catch (const std::exception &error) {
  support::stop(error.what());
}
