// SPDX-License-Identifier: Apache-2.0
//
// Continues a text with a released checkpoint: gpt2_chat DIRECTORY [OPTION ...]. The build selects its shape,
// GPT2_SHAPE.
#include "checkpoint.h"
#include "config.h"
#include "gpt2_writer.hpp"
#include "support/writer.h"

#include <algorithm>

int main(int argc, char **argv) try {
  constexpr specs::Gpt2Shape shape = specs::GPT2_SHAPE;
  const support::TalkOptions options = support::talk_options(argc, argv);
  specs::check_config(support::Config::read(options.folder + "/config.json"), shape);

  support::Session session(
      std::max(GPT2_WRITER_PREFILL_ARENA_BYTES(options.threads), GPT2_WRITER_DECODE_ARENA_BYTES(options.threads)));
  kiln_pool_t *pool = nullptr;
  session.check(gpt2_writer_pool_create(options.threads, &pool, &session.error));
  session.call.executor = gpt2_writer_pool_executor(pool);
  support::talk_with<gpt2_writer::Model>(
      options, session, {shape.vocabulary, GPT2_WRITER_PREFILL_TOKENS_MAX, shape.context}, specs::gpt2_checkpoint);
  gpt2_writer_pool_destroy(pool);
} catch (const std::exception &error) {
  support::stop(error.what());
}
