// SPDX-License-Identifier: Apache-2.0
//
// Trains the character LSTM on the King James Bible, with 48 parallel streams of the text and a piece of 96 characters
// per step: char_lstm_trainer [--steps 8000] [--out char_lstm.safetensors] [--data FILE] [--rate 0.004] [--threads 2]
// ... The model's states are carried from step to step, and saved with the rest: the program can be stopped at any
// time, and the same command resumes it. The last 5 % of the text are held out.
#include "char_lstm_train.hpp"

#include "char_gpt/vocabulary.h"
#include "support/king_james.h"
#include "support/trainer.h"

#include <algorithm>
#include <span>
#include <vector>

namespace {

constexpr std::size_t streams = 48, piece = CHAR_LSTM_TRAIN_EVALUATE_STEPS_MAX, measured = 8;
constexpr int notHere = 77; // exit status of a skipped test

/// PyTorch's initialisation: all weights but the character table are within 1 / sqrt(256).
float first_value(random_t *random, const char *name, int, const long *) {
  const bool isTable = std::string_view(name).starts_with("embedding");
  return static_cast<float>(isTable ? random_normal(random) : (2 * random_uniform(random) - 1) / 16);
}

void bind_first_weights(char_lstm_train::Model &model, support::Session &session, const support::TrainingPlan &plan) {
  support::bind_first_weights(model, session, plan, first_value, [](first_weights_t *file) {
#define ADD(...) FIRST_WEIGHTS_ADD(file, __VA_ARGS__)
    CHAR_LSTM_TRAIN_WEIGHTS(ADD)
  });
}

/// Returns the characters of a file, or of the Bible, as tokens; `cut` is the start of the held-out part.
std::vector<std::int32_t> read_tokens(const std::string &file, std::size_t &cut) {
  text_t text = {};
  text.alphabet = char_gpt::vocabulary.data();
  std::vector<std::int32_t> tokens;
  if (king_james_read(&text, file.empty() ? nullptr : file.c_str()))
    cut = king_james_cut(&text);
  for (char character : std::string_view(text.characters, text.count))
    tokens.push_back(static_cast<std::int32_t>(char_gpt::vocabulary.find(character)));
  std::free(text.characters);
  return tokens;
}

/// Text is read in parallel streams, each an equal part of it.
using Text = std::span<const std::int32_t>;
std::size_t stream_length(Text text) { return text.size() / streams; }

/// The next characters of all streams, [steps, streams], and the character after each of them.
struct Piece {
  std::size_t steps;
  float keep; // 0 at the beginning of the text
  std::vector<std::int32_t> tokens{}, targets{};
};
Piece take_piece(Text text, std::size_t number) {
  const std::size_t length = stream_length(text), first = number * piece;
  Piece result{std::min(piece, length - 1 - first), number == 0 ? 0.0f : 1.0f};
  for (std::size_t at = first; at < first + result.steps; ++at)
    for (std::size_t stream = 0; stream < streams; ++stream) {
      result.tokens.push_back(text[stream * length + at]);
      result.targets.push_back(text[stream * length + at + 1]);
    }
  return result;
}

/// Returns bits per character of the beginning of a text.
double measure(const char_lstm_train::Model &model, const support::Session &session, Text text) {
  double bits = 0;
  std::size_t steps = 0;
  for (std::size_t number = 0; number < measured && number * piece + 1 < stream_length(text); ++number) {
    const Piece next = take_piece(text, number);
    float loss;
    session.check(model.evaluate(session.call, {next.tokens.data(), next.steps}, {next.targets.data(), next.steps},
                                 &next.keep, &loss));
    bits += static_cast<double>(next.steps) * static_cast<double>(loss) / std::log(2.0);
    steps += next.steps;
  }
  return bits / static_cast<double>(steps);
}

} // namespace

int main(int argc, char **argv) try {
  support::TrainingPlan plan{.program = "char_lstm_trainer",
                             .out = "char_lstm.safetensors",
                             .data = "",
                             .steps = 8000,
                             .rate = 4e-3,
                             .unit = "bits per character",
                             .things = "characters",
                             .per_step = streams * piece};
  support::read_options(argc, argv, plan);
  std::size_t cut = 0;
  const std::vector<std::int32_t> tokens = read_tokens(plan.data, cut);
  if (tokens.empty()) {
    std::printf("skipped: no text from `bible` (package bible-kjv); --data FILE reads another\n");
    return notHere;
  }
  const Text trained = Text(tokens).first(cut), heldOut = Text(tokens).subspan(cut);
  if (stream_length(trained) <= piece || stream_length(heldOut) < 2)
    support::stop("the text is too short");
  const std::size_t pieces = (stream_length(trained) - 1) / piece;

  support::Session session(CHAR_LSTM_TRAIN_TRAIN_ARENA_BYTES(plan.threads)),
      measuring(CHAR_LSTM_TRAIN_EVALUATE_ARENA_BYTES(plan.threads));
  char_lstm_train::Model model;
  kiln_pool_t *pool;
  session.check(char_lstm_train_pool_create(static_cast<std::uint32_t>(plan.threads), &pool, &session.error));
  session.call.executor = measuring.call.executor = char_lstm_train_pool_executor(pool);
  auto step = [&](const kiln_training_t &training, float rate, random_t) {
    const Piece next = take_piece(trained, static_cast<std::size_t>(training.step - 1) % pieces);
    float loss, norm;
    session.check(model.train(session.call, next.tokens.data(), next.targets.data(), &next.keep, &rate, &training.step,
                              &loss, &norm));
    return loss / std::log(2.0);
  };
  support::train(
      model, session, plan, [&] { bind_first_weights(model, session, plan); }, step,
      [&] { return measure(model, measuring, heldOut); });
  char_lstm_train_pool_destroy(pool);
  return 0;
} catch (const std::exception &error) {
  support::stop(error.what());
}
