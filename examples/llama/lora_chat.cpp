// SPDX-License-Identifier: Apache-2.0
//
// Chats with a checkpoint with adapters: llama_lora_chat ADAPTERS DIRECTORY [OPTION ...], with llama_chat's options.
#include "lora.h" // before what uses its types

#include <algorithm>

int main(int argc, char **argv) try {
  if (argc < 3)
    support::stop("llama_lora_chat: too few arguments; expected a file of adapters and the directory of a checkpoint");
  std::vector<char *> others(argv, argv + argc);
  others.erase(others.begin() + 1);
  const support::TalkOptions options = support::talk_options(argc - 1, others.data());
  llama::check_config(support::Config::read(options.folder + "/config.json"), llama::tuned_shape);

  support::Session session(
      std::max(LLAMA_LORA_PREFILL_ARENA_BYTES(options.threads), LLAMA_LORA_DECODE_ARENA_BYTES(options.threads)));
  kiln_pool_t *pool = nullptr;
  session.check(llama_lora_pool_create(options.threads, &pool, &session.error));
  session.call.executor = llama_lora_pool_executor(pool);
  const std::string adapters = support::read_file(argv[1]);
  support::talk_with<llama::TunedModel>(
      options, session, llama::tuned_sizes, std::function([&](llama::TunedModel &model) {
        session.check(model.bind_adapters(options.folder, std::as_bytes(std::span(adapters)), &session.error));
      }));
  llama_lora_pool_destroy(pool);
} catch (const std::exception &error) {
  support::stop(error.what());
}
