// SPDX-License-Identifier: Apache-2.0
//
// Speculative decoding (Leviathan et al. 2023): a small draft model guesses the next tokens one by one; the large model
// verifies all of them in one call, which reads its weights once. Up to the first wrong guess the logits of that call
// are those that it would have computed token by token, with the same bits if its library is batch-invariant, so that
// the text is the same for any draft and any sampler.
//
//   context ... t              draft: g1 g2 g3        the large model reads t g1 g2 g3: logits after each
//   chosen: g1, g2, x          the third guess was wrong; the rows of g3 are overwritten
#pragma once

#include "talk.h"

#include <algorithm>

namespace support {

class Speculator {
public:
  /// Reads tokens as Writer::read does, and returns the logits after each of them, one row after another.
  using ReadAll = std::function<std::span<const float>(std::span<const Token> tokens, std::int64_t context)>;

  Speculator(Writer large, ReadAll large_rows, Writer draft, std::size_t guesses)
      : large(std::move(large)), large_rows(std::move(large_rows)), draft(std::move(draft)), most_guesses(guesses) {}

  /// Returns a writer with the logits of the large model. It must not outlive this object.
  Writer writer() {
    return {[this](std::span<const Token> tokens, std::int64_t context) { return read(tokens, context); }, large.most,
            std::min(large.context, draft.context)};
  }

  std::size_t calls() const { return call_count; } // verification calls of the large model
  std::size_t guessed() const { return guess_count; }
  std::size_t right() const { return right_count; }

private:
  std::span<const float> read(std::span<const Token> tokens, std::int64_t context) {
    const auto before = static_cast<std::size_t>(context) - tokens.size();
    if (before < known.size())
      known.resize(before); // the caller rolls back
    known.insert(known.end(), tokens.begin(), tokens.end());
    if (tokens.size() == 1 && next < guesses.size() && first_guess + next == before && guesses[next] == tokens[0]) {
      ++right_count;
      return row(++next);
    }
    in_draft = std::min(in_draft, before); // later tokens in the draft's context were wrong guesses
    if (tokens.size() == 1)
      return guess(tokens[0], context);
    guesses.clear();
    return large.read(tokens, context);
  }

  /// Reads the token together with guesses of the following ones.
  std::span<const float> guess(Token token, std::int64_t context) {
    first_guess = static_cast<std::size_t>(context);
    guesses.clear();
    next = 0;
    const std::size_t room = writer().context - first_guess, count = std::min({most_guesses, room, large.most - 1});
    std::vector<Token> read_by_draft(known.begin() + static_cast<std::ptrdiff_t>(in_draft), known.end());
    while (guesses.size() < count) {
      guesses.push_back(likeliest(read_by_draft));
      read_by_draft = {guesses.back()};
    }
    // The draft's context has all guesses but the last one; if they are wrong, the caller rolls back.
    std::vector<Token> tokens{token};
    tokens.insert(tokens.end(), guesses.begin(), guesses.end());
    rows = large_rows(tokens, context + static_cast<std::int64_t>(guesses.size()));
    vocabulary = rows.size() / tokens.size();
    ++call_count;
    guess_count += guesses.size();
    return row(0);
  }

  /// Reads these tokens with the draft. Returns its most likely next token.
  Token likeliest(std::span<const Token> tokens) {
    std::span<const float> logits;
    for (; !tokens.empty(); tokens = tokens.subspan(std::min(draft.most, tokens.size()))) {
      const std::span<const Token> part = tokens.first(std::min(draft.most, tokens.size()));
      in_draft += part.size();
      logits = draft.read(part, static_cast<std::int64_t>(in_draft));
    }
    return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }

  std::span<const float> row(std::size_t number) const { return rows.subspan(number * vocabulary, vocabulary); }

  Writer large;
  ReadAll large_rows;
  Writer draft;
  std::size_t most_guesses;
  std::vector<Token> known;              // the context
  std::size_t in_draft = 0;              // tokens of the context that the draft has read
  std::vector<Token> guesses;            // of the last call
  std::size_t first_guess = 0, next = 0; // position of the first one in the context; number of correct ones so far
  std::span<const float> rows;
  std::size_t vocabulary = 0;
  std::size_t call_count = 0, guess_count = 0, right_count = 0;
};

} // namespace support
