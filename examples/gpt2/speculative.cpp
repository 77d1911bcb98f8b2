// SPDX-License-Identifier: Apache-2.0
//
// Writes the same tokens as gpt2_king_james_chat with fewer calls of the model, by speculative decoding with a smaller
// one. gpt2_king_james_speculative DRAFT DIRECTORY [OPTION ...]
#include "checkpoint.h"
#include "config.h"
#include "gpt2_draft.hpp"
#include "gpt2_writer.hpp"
#include "support/speculate.h"
#include "support/writer.h"

namespace {

using support::Token;

constexpr specs::Gpt2Shape shape = specs::gpt2_king_james, draft_shape = specs::gpt2_king_james_draft;

/// Returns the function that computes the logits after each token of a call.
support::Speculator::ReadAll all_rows(const gpt2_writer::Model &model, const support::Session &session) {
  return
      [&model, &session, logits = std::vector<float>()](std::span<const Token> tokens, std::int64_t context) mutable {
        logits.resize(tokens.size() * shape.vocabulary);
        session.check(model.verify(session.call, context, {tokens.data(), tokens.size()},
                                   {logits.data(), static_cast<std::int64_t>(tokens.size())}));
        return std::span<const float>(logits);
      };
}

} // namespace

int main(int argc, char **argv) try {
  if (argc < 3) {
    support::talk_options(argc, argv);
    throw std::runtime_error("too few directories; expected those of a draft and of a checkpoint; see --help");
  }
  const std::string draft_folder = argv[1];
  const support::TalkOptions options = support::talk_options(argc - 1, argv + 1);
  specs::check_config(support::Config::read(options.folder + "/config.json"), shape);
  specs::check_config(support::Config::read(draft_folder + "/config.json"), draft_shape);
  const support::Tokenizer tokenizer = support::load_tokenizer(options.folder);

  support::Session session(
      std::max({GPT2_WRITER_PREFILL_ARENA_BYTES(options.threads), GPT2_WRITER_DECODE_ARENA_BYTES(options.threads),
                GPT2_WRITER_VERIFY_ARENA_BYTES(options.threads)})),
      draft_session(
          std::max(GPT2_DRAFT_PREFILL_ARENA_BYTES(options.threads), GPT2_DRAFT_DECODE_ARENA_BYTES(options.threads)));
  kiln_pool_t *pool = nullptr;
  session.check(gpt2_writer_pool_create(options.threads, &pool, &session.error));
  session.call.executor = draft_session.call.executor = gpt2_writer_pool_executor(pool);
  gpt2_writer::Model model;
  gpt2_draft::Model draft;
  bind_checkpoint(model, session, support::weight_file(options.folder), specs::gpt2_checkpoint);
  bind_checkpoint(draft, draft_session, support::weight_file(draft_folder), specs::gpt2_checkpoint);

  support::Speculator speculator(
      writer_of(model, session, {shape.vocabulary, GPT2_WRITER_PREFILL_TOKENS_MAX, shape.context}),
      all_rows(model, session),
      writer_of(draft, draft_session, {draft_shape.vocabulary, GPT2_DRAFT_PREFILL_TOKENS_MAX, draft_shape.context}),
      options.guesses);
  support::talk(options, tokenizer, speculator.writer());
  std::fprintf(stderr, "%zu of %zu guesses were right; %zu calls of the model\n", speculator.right(),
               speculator.guessed(), speculator.calls());
  gpt2_writer_pool_destroy(pool);
} catch (const std::exception &error) {
  support::stop(error.what());
}
