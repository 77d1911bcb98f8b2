// SPDX-License-Identifier: Apache-2.0
// The program around a model, with a scripted model: how a prompt is split into calls, when a reply ends, what happens
// when the context is full, and the options.
#include "support/talk.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>

namespace {

using support::Token;
using support::Tokenizer;

const std::string folder = EXAMPLES "/llama/king_james";

/// A fake model that repeats `reply` and records what it reads.
struct Parrot {
  std::vector<Token> reply;
  std::size_t most, context;
  std::size_t silent = 0; // calls before the reply
  std::vector<std::vector<Token>> calls{};
  std::vector<std::int64_t> contexts{};
  std::size_t said = 0;
  std::vector<float> logits{};

  support::Writer writer(const Tokenizer &tokenizer) {
    logits.resize(tokenizer.size());
    return {[this](std::span<const Token> tokens, std::int64_t length) {
              calls.emplace_back(tokens.begin(), tokens.end());
              contexts.push_back(length);
              std::fill(logits.begin(), logits.end(), 0.0f);
              if (calls.size() > silent)
                logits[reply[said++ % reply.size()]] = 1;
              return std::span<const float>(logits);
            },
            most, context};
  }
};

/// Returns the standard output of a conversation.
std::string written(const support::TalkOptions &options, Parrot &parrot) {
  const Tokenizer tokenizer = support::load_tokenizer(options.folder);
  const support::Writer writer = parrot.writer(tokenizer);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  std::string error;
  try {
    talk(options, tokenizer, writer);
  } catch (const std::runtime_error &refusal) {
    error = refusal.what();
  }
  ::testing::internal::GetCapturedStderr();
  return ::testing::internal::GetCapturedStdout() + error;
}

support::TalkOptions options(const std::string &prompt, const std::string &form) {
  support::TalkOptions result;
  result.folder = folder;
  result.prompt = prompt;
  result.form = form;
  result.sampling.temperature = 0;
  return result;
}

TEST(Talk, ReadsAPromptInPartsAndWritesUpToTheEnd) {
  const Tokenizer tokenizer = support::load_tokenizer(folder);
  Parrot parrot{tokenizer.encode("the sea \u00E9\u4E16.", support::Specials::text), 4, 100};
  const std::vector<Token> said = parrot.reply;
  parrot.reply.push_back(*tokenizer.find("</s>"));
  parrot.silent = tokenizer.encode("In the beginning God created the heaven").size() / 4; // and one more token, <s>
  EXPECT_EQ(written(options("In the beginning God created the heaven", "plain"), parrot),
            "In the beginning God created the heaven the sea \u00E9\u4E16.\n");

  std::vector<Token> read, expected = tokenizer.encode("In the beginning God created the heaven");
  expected.insert(expected.begin(), *tokenizer.find("<s>"));
  const std::size_t prompt = expected.size();
  expected.insert(expected.end(), said.begin(), said.end()); // the end token itself is not read
  for (std::size_t i = 0; i < parrot.calls.size(); ++i) {
    read.insert(read.end(), parrot.calls[i].begin(), parrot.calls[i].end());
    EXPECT_EQ(parrot.contexts[i], static_cast<std::int64_t>(read.size()));
    EXPECT_LE(parrot.calls[i].size(), 4u);
  }
  EXPECT_EQ(read, expected);
  EXPECT_EQ(parrot.calls.size(), (prompt + 3) / 4 + said.size());
}

TEST(Talk, EndsAReplyWithTheTokenOfItsForm) {
  const Tokenizer tokenizer = support::load_tokenizer(folder);
  Parrot parrot{tokenizer.encode("Here am I.", support::Specials::text), 256, 256};
  parrot.reply.push_back(*tokenizer.find("<|im_end|>"));
  EXPECT_EQ(written(options("Where art thou?", ""), parrot), "Here am I.\n"); // the form that the checkpoint states
}

TEST(Talk, EndsAPlainTextWithAnySpecialToken) {
  const Tokenizer tokenizer = support::load_tokenizer(folder);
  Parrot parrot{{tokenizer.encode("sea")[0], *tokenizer.find("<|im_start|>")}, 256, 256};
  written(options("a b c", "plain"), parrot);
  EXPECT_EQ(parrot.said, 2u);
}

TEST(Talk, EndsAReplyWhereTheContextIsFullOrTheTokensAreAll) {
  const Tokenizer tokenizer = support::load_tokenizer(folder);
  const std::vector<Token> sea = tokenizer.encode("sea", support::Specials::text);
  const std::size_t prompt = 1 + tokenizer.encode("a b c").size();
  Parrot full{{sea[0]}, 256, prompt + 5};
  written(options("a b c", "plain"), full);
  EXPECT_EQ(full.said, 6u); // the last token is written, but not read
  EXPECT_EQ(full.contexts.back(), static_cast<std::int64_t>(prompt + 5));

  Parrot few{{sea[0]}, 256, 256};
  support::TalkOptions three = options("a b c", "plain");
  three.tokens = 3;
  written(three, few);
  EXPECT_EQ(few.said, 3u);

  Parrot small{{sea[0]}, 256, prompt - 1};
  EXPECT_EQ(written(options("a b c", "plain"), small), "prompt: too many tokens; expected at most " +
                                                           std::to_string(prompt - 1) + ", got " +
                                                           std::to_string(prompt));
}

TEST(Talk, ShowsTokensInPlaceOfText) {
  const Tokenizer tokenizer = support::load_tokenizer(folder);
  Parrot parrot{{5, *tokenizer.find("</s>")}, 256, 256};
  support::TalkOptions numbers = options("a", "plain");
  numbers.shows_numbers = true;
  const std::vector<Token> a = tokenizer.encode("a");
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(written(numbers, parrot), "prompt: 1 " + std::to_string(a[0]) + "\nreply: 5 2\n");
}

support::TalkOptions parsed(std::vector<std::string> words) {
  words.insert(words.begin(), "chat");
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  return support::talk_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Talk, TakesItsOptions) {
  const support::TalkOptions all =
      parsed({"folder", "--prompt", "--x", "--template", "zephyr", "--system", "s", "--tokens",  "7", "--temperature",
              "0.5",    "--top-k",  "3",   "--top-p",    "0.25",   "--seed",   "9", "--threads", "2", "--numbers"});
  EXPECT_EQ(all.folder, "folder");
  EXPECT_EQ(all.prompt, "--x");
  EXPECT_EQ(all.form, "zephyr");
  EXPECT_EQ(all.system, "s");
  EXPECT_EQ(all.tokens, 7u);
  EXPECT_EQ(all.sampling.temperature, 0.5);
  EXPECT_EQ(all.sampling.top_k, 3u);
  EXPECT_EQ(all.sampling.top_p, 0.25);
  EXPECT_EQ(all.sampling.seed, 9u);
  EXPECT_EQ(all.threads, 2u);
  EXPECT_TRUE(all.shows_numbers);
}

TEST(Talk, RefusesOtherOptionsWithWords) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{}, "checkpoint: no directory given; see --help"},
      {{"a", "b"}, "checkpoint: several directories; expected one, got \"a\" and \"b\""},
      {{"a", "--prompt"}, "--prompt: unknown option, or no value"},
      {{"a", "--colour", "red"}, "--colour: unknown option; see"},
      {{"a", "--tokens", "0"}, "--tokens: wrong value; expected an integer from 1 to 1073741824, got \"0\""},
      {{"a", "--tokens", "1.5"}, "--tokens: wrong value; expected an integer"},
      {{"a", "--top-k", "many"}, "--top-k: wrong value; expected an integer from 0 to"},
      {{"a", "--temperature", "-1"}, "--temperature: wrong value; expected a number from 0 to 100, got \"-1\""},
      {{"a", "--temperature", "nan"}, "--temperature: wrong value; expected a number"},
      {{"a", "--top-p", "2"}, "--top-p: wrong value; expected a number from 0 to 1, got \"2\""},
      {{"a", "--threads", ""}, "--threads: wrong value; expected an integer from 1 to 1024, got \"\""},
      {{"a", "--template", "x"}, "template: unknown name; expected one of plain"},
  };
  for (const auto &[words, expected] : cases)
    try {
      parsed(words);
      ADD_FAILURE() << "was accepted, not refused with " << expected;
    } catch (const std::runtime_error &error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
}

} // namespace
