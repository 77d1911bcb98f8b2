// SPDX-License-Identifier: Apache-2.0
//
// The page's expected results, from native libraries of the same models: native PROMPT COUNT, as JSON.
#include "char_gpt/vocabulary.h"
#include "looker.hpp"
#include "support/session.h"
#include "writer.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

int main(int argc, char **argv) try {
  support::Session session(std::max(WRITER_PREFILL_ARENA_BYTES(1), LOOKER_LOOK_ARENA_BYTES(1)));
  writer::Model gpt;
  session.check(gpt.bind(EXAMPLES "/char_gpt/char_gpt.safetensors", &session.error));
  const std::string prompt = argc > 1 ? argv[1] : "";
  const long count = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 0;
  std::vector<std::int32_t> tokens;
  for (char c : prompt)
    tokens.push_back(static_cast<std::int32_t>(char_gpt::vocabulary.find(c)));
  std::vector<float> logits(char_gpt::vocabulary.size());
  std::string text = prompt;
  for (std::size_t known = 0; text.size() < prompt.size() + static_cast<std::size_t>(count);) {
    session.check(gpt.prefill(session.call, static_cast<std::int64_t>(tokens.size()),
                              std::span<const std::int32_t>(tokens).subspan(known), logits.data()));
    known = tokens.size();
    tokens.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    text += char_gpt::vocabulary[static_cast<std::size_t>(tokens.back())];
  }
  for (char &c : text)
    c = c == '\n' ? '|' : c; // JSON strings have no line breaks
  std::printf("{\"text\": \"%s\", \"pictures\": [", text.c_str());

  looker::Model vit;
  session.check(vit.bind(EXAMPLES "/fashion_vit/fashion_vit.safetensors", &session.error));
  std::ifstream file(EXAMPLES "/web/pictures.bin", std::ios::binary);
  const std::string pixels{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t at = 0; at + 28 * 28 <= pixels.size(); at += 28 * 28) {
    float picture[28 * 28], results[10 + 4 * 49];
    for (std::size_t i = 0; i < 28 * 28; ++i)
      picture[i] = static_cast<float>(static_cast<unsigned char>(pixels[at + i])) / 255;
    session.check(vit.look(session.call, picture, results, results + 10));
    std::printf("%s[", at ? ", " : "");
    for (std::size_t i = 0; i < std::size(results); ++i)
      std::printf("%s%.9g", i ? ", " : "", results[i]);
    std::printf("]");
  }
  std::printf("]}\n");
} catch (const std::exception &error) {
  support::stop(error.what());
}
