// SPDX-License-Identifier: Apache-2.0
//
// The program of talk.h with a generated library that has the entries `prefill` and `decode`.
#pragma once

#include "checkpoint.h"
#include "session.h"
#include "talk.h"

#include <algorithm>
#include <memory>

namespace support {

/// The sizes that a library was built for.
struct WriterSizes {
  std::size_t vocabulary;
  std::size_t most;    // tokens of a call of `prefill`
  std::size_t context; // tokens of the longest context
};

template <class Model> Writer writer_of(const Model &model, const Session &session, const WriterSizes &sizes) {
  auto logits = std::make_shared<std::vector<float>>(sizes.vocabulary);
  auto read = [&model, &session, logits](std::span<const Token> tokens, std::int64_t context) {
    if (tokens.size() == 1)
      session.check(model.decode(session.call, context, tokens.data(), logits->data()));
    else
      session.check(model.prefill(session.call, context, {tokens.data(), tokens.size()}, logits->data()));
    return std::span<const float>(*logits);
  };
  return {read, sizes.most, sizes.context};
}

/// Binds a checkpoint directly, without a copy; or, if its tensors have other names or it has several files, after
/// applying `rules`.
template <class Model>
void bind_checkpoint(Model &model, Session &session, const std::string &path, const std::vector<Rule> &rules) {
  if (model.bind(path.c_str(), &session.error) != KILN_OK)
    session.check(model.bind(load_checkpoint(path, rules), &session.error));
}

/// Prints the logits after these tokens, the last of which is read by itself.
inline void print_logits(const Writer &writer, std::span<const Token> tokens) {
  const std::size_t before = tokens.size() - 1;
  for (std::size_t at = 0; at < before; at += std::min(writer.most, before - at))
    writer.read(tokens.subspan(at, std::min(writer.most, before - at)),
                static_cast<std::int64_t>(std::min(at + writer.most, before)));
  for (float logit : writer.read(tokens.last(1), static_cast<std::int64_t>(tokens.size())))
    std::printf("%.9g ", static_cast<double>(logit));
  std::puts("");
}

/// Loads the tokenizer of the options, binds a model's weights with `bind`, then talks. `session` has an arena for both
/// entries.
template <class Model>
void talk_with(const TalkOptions &options, Session &session, const WriterSizes &sizes,
               const std::function<void(Model &)> &bind) {
  Model model;
  if (!options.ids.empty()) {
    bind(model);
    return print_logits(writer_of(model, session, sizes), options.ids);
  }
  const Tokenizer tokenizer = load_tokenizer(options);
  if (tokenizer.size() > sizes.vocabulary)
    throw std::runtime_error("tokenizer: more tokens than the model; expected at most " +
                             std::to_string(sizes.vocabulary) + ", got " + std::to_string(tokenizer.size()));
  bind(model);
  talk(options, tokenizer, writer_of(model, session, sizes));
}

/// Binds the weights of the options' folder, whose names `rules` map to the model's, then talks.
template <class Model>
void talk_with(const TalkOptions &options, Session &session, const WriterSizes &sizes, const std::vector<Rule> &rules) {
  if (!options.gguf.empty())
    throw std::runtime_error("\"" + options.gguf + "\": GGUF is not supported for this model; expected a directory");
  talk_with<Model>(options, session, sizes, std::function([&](Model &model) {
                     bind_checkpoint(model, session, weight_file(options.folder), rules);
                   }));
}

} // namespace support
