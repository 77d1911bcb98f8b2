// SPDX-License-Identifier: Apache-2.0
// Command lines and texts of the programs of encoder-only models.
#include "kiln/runtime.h"

#include "models/support/texts.h"

#include <gtest/gtest.h>

namespace {

using Tokens = std::vector<support::Token>;

TextOptions options_of(std::vector<std::string> words) {
  words.insert(words.begin(), "program");
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  return text_options(static_cast<int>(arguments.size()), arguments.data());
}

template <class Function> std::string refusal(Function function) {
  try {
    function();
    return "";
  } catch (const std::runtime_error &error) {
    return error.what();
  }
}

TEST(Texts, FollowTheFolder) {
  const TextOptions options = options_of({"folder", "--numbers", "a text", "another"});
  EXPECT_EQ(options.folder, "folder");
  EXPECT_EQ(options.texts, (std::vector<std::string>{"a text", "another"}));
  EXPECT_TRUE(options.shows_numbers);
  EXPECT_FALSE(options.are_ids);
  EXPECT_TRUE(options_of({"folder", "--ids", "1 2"}).are_ids);
  EXPECT_EQ(refusal([] { options_of({"folder"}); }),
            "program: missing arguments; expected the directory of a checkpoint and what to read");
  EXPECT_EQ(refusal([] { options_of({"folder", "--id", "1"}); }), "--id: unknown option; expected --ids or --numbers");
}

TEST(Texts, BecomeTokensBetweenSpecialTokens) {
  const std::optional<support::Tokenizer> tokenizer =
      support::tokenizer_of_pieces("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\n", true);
  EXPECT_EQ(tokens_of("The thes", tokenizer, 6), (Tokens{2, 5, 5, 6, 3}));
  EXPECT_EQ(tokens_of("7 8", std::nullopt, 2), (Tokens{7, 8}));
  EXPECT_EQ(refusal([&] { tokens_of("the the", tokenizer, 3); }),
            "text: wrong number of tokens; expected 1 to 3, got 4: \"the the\"");
}

} // namespace
