// SPDX-License-Identifier: Apache-2.0
//
// Decodes a target from a source with random weights: greedily, and by beam search with 1 to 8 beams. One beam is
// greedy decoding, and more beams find targets that are at least as likely here. Each beam is a session: a copy of its
// parent's states.
#include "translator.hpp"

#include "support/random_weights.h"
#include "support/session.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace {

constexpr std::size_t vocabulary = 100, width = 64, longest = 12;
constexpr std::int32_t start = 1, end = 2;

using States = std::shared_ptr<const std::vector<unsigned char>>;

struct Target {
  std::vector<std::int32_t> tokens{start};
  double logarithm = 0; // log probability
  States states{};      // after all tokens but the last

  bool isFinished() const { return tokens.back() == end || tokens.size() == longest + 1; }
};

class Decoder {
public:
  explicit Decoder(const std::vector<std::int32_t> &source)
      : session(std::max(TRANSLATOR_ENCODE_ARENA_BYTES(1), TRANSLATOR_STEP_ARENA_BYTES(1))), count(source.size()),
        logits(vocabulary) {
    std::vector<float> memory(count * width);
    session.check(model.bind(support::random_weights({TRANSLATOR_WEIGHTS(SUPPORT_WEIGHT)}, 3), &session.error));
    session.check(model.encode(session.call, {source.data(), count}, {memory.data(), count}));
    begin.states = states();
  }

  Target greedy() {
    Target target = begin;
    while (!target.isFinished()) {
      const std::vector<double> next = goOn(target);
      const auto best = std::max_element(next.begin(), next.end());
      target.logarithm += *best;
      target.tokens.push_back(static_cast<std::int32_t>(best - next.begin()));
    }
    return target;
  }

  /// Keeps the most likely `beams` targets of each length.
  Target search(std::size_t beams) {
    std::vector<Target> kept{begin};
    auto isLikelier = [](const Target &a, const Target &b) { return a.logarithm > b.logarithm; };
    while (std::any_of(kept.begin(), kept.end(), [](const Target &target) { return !target.isFinished(); })) {
      std::vector<Target> longer;
      for (Target &target : kept) {
        if (target.isFinished()) {
          longer.push_back(target);
          continue;
        }
        const std::vector<double> next = goOn(target);
        for (std::size_t token = 0; token < vocabulary; ++token) {
          longer.push_back(target);
          longer.back().tokens.push_back(static_cast<std::int32_t>(token));
          longer.back().logarithm += next[token];
        }
      }
      std::stable_sort(longer.begin(), longer.end(), isLikelier);
      longer.resize(std::min(longer.size(), beams));
      kept = std::move(longer);
    }
    return kept.front();
  }

private:
  States states() const {
    const auto *first = static_cast<const unsigned char *>(session.call.arena);
    return std::make_shared<std::vector<unsigned char>>(first, first + TRANSLATOR_STATE_BYTES);
  }

  /// Appends the last token to the target's states. Returns the log probability of each next token.
  std::vector<double> goOn(Target &target) {
    std::copy(target.states->begin(), target.states->end(), static_cast<unsigned char *>(session.call.arena));
    const auto n = static_cast<std::int64_t>(target.tokens.size());
    session.check(
        model.step(session.call, static_cast<std::int64_t>(count), n, {&target.tokens.back(), 1}, logits.data()));
    target.states = states();
    const float *last = logits.data();
    const double largest = static_cast<double>(*std::max_element(last, last + vocabulary));
    double sum = 0;
    for (std::size_t i = 0; i < vocabulary; ++i)
      sum += std::exp(static_cast<double>(last[i]) - largest);
    std::vector<double> result(vocabulary);
    for (std::size_t i = 0; i < vocabulary; ++i)
      result[i] = static_cast<double>(last[i]) - largest - std::log(sum);
    return result;
  }

  support::Session session;
  translator::Model model;
  Target begin;
  std::size_t count;
  std::vector<float> logits;
};

void print(const char *how, const Target &target) {
  std::printf("%-9s %8.4f :", how, target.logarithm);
  for (std::int32_t token : target.tokens)
    std::printf(" %d", token);
  std::printf("\n");
}

} // namespace

int main() {
  Decoder decoder({17, 42, 5, 99, 63, 8, end});
  const Target greedy = decoder.greedy();
  print("greedy", greedy);
  for (std::size_t beams : {1, 2, 4, 8}) {
    const Target found = decoder.search(beams);
    print((std::to_string(beams) + (beams == 1 ? " beam" : " beams")).c_str(), found);
    if (beams == 1 && found.tokens != greedy.tokens)
      support::stop("one beam is not greedy decoding");
  }
}
