// SPDX-License-Identifier: Apache-2.0
//
// Chats with a released checkpoint: llama_chat DIRECTORY|FILE.gguf [OPTION ...]. The build selects its shape,
// LLAMA_SHAPE.
#include "llama_writer.hpp" // before what uses its types

#include "quantized.h"

#include <algorithm>

int main(int argc, char **argv) try {
  constexpr llama::Shape shape = llama::LLAMA_SHAPE;
  const support::TalkOptions options = support::talk_options(argc, argv);
  const support::Config config = options.metadata ? llama::config_of_gguf(*options.metadata)
                                                  : support::Config::read(options.folder + "/config.json");
  llama::check_config(config, shape);

  support::Session session(
      std::max(LLAMA_WRITER_PREFILL_ARENA_BYTES(options.threads), LLAMA_WRITER_DECODE_ARENA_BYTES(options.threads)));
  kiln_pool_t *pool = nullptr;
  session.check(llama_writer_pool_create(options.threads, &pool, &session.error));
  session.call.executor = llama_writer_pool_executor(pool);
  support::talk_with<llama_writer::Model>(
      options, session, {shape.vocabulary, LLAMA_WRITER_PREFILL_TOKENS_MAX, shape.context},
      std::function([&](llama_writer::Model &model) { llama::bind(model, session, options, config, shape); }));
  llama_writer_pool_destroy(pool);
} catch (const std::exception &error) {
  support::stop(error.what());
}
