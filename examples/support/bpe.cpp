// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding of a word:
//
// 1. The word becomes a doubly linked list of symbols.
// 2. A heap holds the adjacent pairs that can merge, by rank and position.
// 3. The heap's first pair merges into its left symbol, unless one of the two has merged meanwhile; the two new pairs
//    are added to the heap.
#include "bpe.h"
#include "utf8.h"

#include <algorithm>
#include <queue>

namespace support {

namespace {

constexpr std::uint32_t none = ~0u;
constexpr Token merged = -1; // the token of a symbol that has merged into the previous one

std::uint64_t key_of(Token left, Token right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

} // namespace

/// An adjacent pair that can merge, in its state when it was added to the heap.
struct Bpe::Candidate {
  std::uint32_t rank, position;
  Token left, right, result;

  /// Orders a heap whose first element is the lowest.
  bool operator<(const Candidate &other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

Bpe::Bpe(std::unordered_map<std::string, Token> tokens, const std::vector<Merge> &merges, Options options)
    : tokens(std::move(tokens)), options(std::move(options)) {
  this->merges.reserve(merges.size());
  for (const Merge &merge : merges)
    this->merges.insert(
        {key_of(merge.left, merge.right), {static_cast<std::uint32_t>(this->merges.size()), merge.result}});
}

const Bpe::Ranked *Bpe::find(Token left, Token right) const {
  const auto found = merges.find(key_of(left, right));
  return found == merges.end() ? nullptr : &found->second;
}

std::vector<Bpe::Symbol> Bpe::units_of(std::string_view word) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  auto push = [&](Token token) {
    const auto at = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back({token, at - 1, at + 1});
  };
  std::string unit;
  bool wasUnknown = false;
  for (std::size_t at = 0; at < word.size(); at += unit.size()) {
    unit = word.substr(at, options.unit == Unit::byte ? 1 : character_bytes(word.substr(at)));
    const bool isLast = at + unit.size() == word.size();
    const auto found = tokens.find(isLast ? unit + options.end_of_word : unit);
    const bool isUnknown = found == tokens.end() && options.bytes.empty();
    if (found != tokens.end())
      push(found->second);
    else if (!isUnknown)
      for (char byte : unit)
        push(options.bytes[static_cast<unsigned char>(byte)]);
    else if (!wasUnknown || !options.joins_unknown)
      push(options.unknown);
    wasUnknown = isUnknown;
  }
  if (!symbols.empty())
    symbols.back().next = none;
  return symbols;
}

void Bpe::merge(std::vector<Symbol> &symbols) const {
  std::priority_queue<Candidate> heap;
  auto propose = [&](std::uint32_t left) {
    const std::uint32_t right = left == none ? none : symbols[left].next;
    if (right == none)
      return;
    const Token a = symbols[left].token, b = symbols[right].token;
    if (const Ranked *ranked = find(a, b))
      heap.push({ranked->rank, left, a, b, ranked->result});
  };
  for (std::uint32_t i = 0; i < symbols.size(); ++i)
    propose(i);
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    Symbol &left = symbols[best.position];
    if (left.token != best.left || left.next == none || symbols[left.next].token != best.right)
      continue;
    Symbol &right = symbols[left.next];
    left.token = best.result;
    left.next = right.next;
    right.token = merged;
    if (left.next != none)
      symbols[left.next].previous = best.position;
    propose(left.previous);
    propose(best.position);
  }
}

void Bpe::encode(std::string_view word, std::vector<Token> &out) const {
  if (options.takes_whole_words)
    if (const auto found = tokens.find(std::string(word)); found != tokens.end()) {
      out.push_back(found->second);
      return;
    }
  std::vector<Symbol> symbols = units_of(word);
  merge(symbols);
  for (const Symbol &symbol : symbols)
    if (symbol.token != merged)
      out.push_back(symbol.token);
}

} // namespace support
