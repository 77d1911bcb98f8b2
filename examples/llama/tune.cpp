// SPDX-License-Identifier: Apache-2.0
//
// Fine-tunes a small Llama that was trained only on the Bible on Debian's licences, by adapters on its frozen weights:
// llama_fine_tuner [CHECKPOINT] [--steps 800] [--out lora.safetensors] [--data FOLDER] ... It can be stopped at any
// time: the same command resumes it. Apache-2.0 is held out.
#include "lora.h" // before the headers that use its types

#include "licences.h"
#include "support/trainer.h"

#include <algorithm>
#include <optional>

namespace {

using Tokens = std::vector<support::Token>;
constexpr int windows = LLAMA_LORA_TRAIN_WINDOWS_MAX, context = llama::tuned_shape.context;
constexpr int notHere = 77; // exit status of a skipped test
constexpr const char *heldOut = "Apache-2.0", *prompt = "In the beginning";

struct Texts {
  Tokens tuned, held_out;
};

std::optional<Texts> read_texts(const std::string &folder, const support::Tokenizer &tokenizer, support::Token end) {
  Texts texts;
  for (auto &[name, tokens] : llama::read_licences(folder, tokenizer, end))
    if (name == heldOut)
      texts.held_out = tokens;
    else
      texts.tuned.insert(texts.tuned.end(), tokens.begin(), tokens.end());
  return std::min(texts.tuned.size(), texts.held_out.size()) > context ? std::optional(texts) : std::nullopt;
}

/// A is random and B zero, so that the model initially equals the checkpoint.
std::vector<std::byte> first_adapters(int seed) {
  random_t random = {static_cast<std::uint64_t>(seed)};
  return llama::make_adapters([&](const support::Tensor &tensor, std::span<float> values) {
    if (tensor.name.ends_with("lora_A.weight"))
      for (float &value : values) // with the variance of PyTorch's initialisation
        value = static_cast<float>(random_normal(&random) / std::sqrt(3.0 * static_cast<double>(tensor.shape[1])));
  });
}

/// Windows of a text, and the next token of each token.
struct Windows {
  Tokens tokens = Tokens(windows * context), targets = tokens;

  void take(int window, const support::Token *begin) {
    std::copy(begin, begin + context, &tokens[window * context]);
    std::copy(begin + 1, begin + context + 1, &targets[window * context]);
  }
};

double measure(const llama::TunedModel &model, support::Session &session, const Tokens &text) {
  const int all = (static_cast<int>(text.size()) - 1) / context;
  Windows parts;
  double sum = 0;
  for (int first = 0; first < all; first += windows) {
    const int count = std::min(windows, all - first);
    float loss;
    for (int i = 0; i < count; ++i)
      parts.take(i, &text[(first + i) * context]);
    session.check(model.evaluate(session.call, {parts.tokens.data(), count}, {parts.targets.data(), count}, &loss));
    sum += count * loss;
  }
  return sum / all;
}

/// Prints text generated with the current adapters.
void write(const llama::TunedModel &model, support::Session &session, const support::Tokenizer &tokenizer,
           const std::string &folder) {
  support::TalkOptions options;
  options.folder = folder, options.prompt = prompt, options.form = "plain", options.tokens = 60;
  support::talk(options, tokenizer, support::writer_of(model, session, llama::tuned_sizes));
}

} // namespace

int main(int argc, char **argv) try {
  const bool isNamed = argc > 1 && *argv[1] != '-';
  const std::string folder = isNamed ? argv[1] : LLAMA_FOLDER;
  support::TrainingPlan plan{.program = "llama_fine_tuner",
                             .out = "lora.safetensors",
                             .data = "/usr/share/common-licenses",
                             .steps = 800,
                             .rate = 8e-3,
                             .unit = "cross-entropy",
                             .things = "tokens",
                             .per_step = windows * context,
                             .warm_up = 50};
  support::read_options(argc - isNamed, argv + isNamed, plan);
  const support::Config config = support::Config::read(folder + "/config.json");
  llama::check_config(config, llama::tuned_shape);
  const support::Tokenizer tokenizer = support::load_tokenizer(folder);
  const auto texts = read_texts(plan.data, tokenizer, static_cast<support::Token>(config.at("eos_token_id").integer()));
  if (!texts) {
    std::printf("skipped: no %s among other licences in %s\n", heldOut, plan.data.c_str());
    return notHere;
  }

  support::Session session(LLAMA_LORA_TRAIN_ARENA_BYTES(plan.threads)),
      other(std::max({LLAMA_LORA_EVALUATE_ARENA_BYTES(plan.threads), LLAMA_LORA_PREFILL_ARENA_BYTES(plan.threads),
                      LLAMA_LORA_DECODE_ARENA_BYTES(plan.threads)}));
  llama::TunedModel model;
  kiln_pool_t *pool;
  session.check(llama_lora_pool_create(static_cast<std::uint32_t>(plan.threads), &pool, &session.error));
  session.call.executor = other.call.executor = llama_lora_pool_executor(pool);

  auto begin = [&] {
    session.check(model.bind_adapters(folder, first_adapters(plan.seed), &session.error));
    std::printf("%zu tokens to tune on, %zu held out: cross-entropy %.4f; so the model writes:\n", texts->tuned.size(),
                texts->held_out.size(), measure(model, other, texts->held_out));
    write(model, other, tokenizer, folder);
  };
  Windows parts;
  auto step = [&](const kiln_training_t &training, float rate, random_t random) {
    float loss, norm;
    for (int i = 0; i < windows; ++i)
      parts.take(i, &texts->tuned[random_bits(&random) % (texts->tuned.size() - context)]);
    session.check(model.train(session.call, {parts.tokens.data(), windows}, {parts.targets.data(), windows}, &rate,
                              &training.step, &loss, &norm));
    return loss;
  };
  support::train(model, session, plan, begin, step, [&] { return measure(model, other, texts->held_out); });
  write(model, other, tokenizer, folder);
  llama_lora_pool_destroy(pool);
  return 0;
} catch (const std::exception &error) {
  support::stop(error.what());
}
