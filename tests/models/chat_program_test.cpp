// SPDX-License-Identifier: Apache-2.0
// The programs of examples/llama and examples/gpt2 on the checkpoints that are trained there: the likeliest tokens are
// PyTorch's, and text is what these tokens say.
#include "support/config.h"
#include "support/tokenizer.h"

#include <array>
#include <cstdio>
#include <gtest/gtest.h>

namespace {

using nlohmann::json;
using support::Token;

/// What a program writes to the standard output; both of its outputs with `isAll`.
std::string output(const std::string &command, bool isAll = false) {
  std::FILE *pipe = ::popen((command + (isAll ? " 2>&1" : " 2>/dev/null")).c_str(), "r");
  std::string text;
  std::array<char, 4096> part;
  for (std::size_t count; (count = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), count);
  ::pclose(pipe);
  return text;
}

std::string numbers(const std::vector<Token> &tokens) {
  std::string text;
  for (Token token : tokens)
    text += " " + std::to_string(token);
  return text;
}

void expect_what_pytorch_writes(const std::string &program, const std::string &folder) {
  const json expected = json::parse(support::read_whole_file(folder + "/expected.json"));
  const support::Tokenizer tokenizer = support::load_tokenizer(folder);
  for (const json &entry : expected.at("cases")) {
    const std::string text = entry.at("text"), form = entry.at("template");
    const auto prompt = entry.at("prompt").get<std::vector<Token>>(),
               reply = entry.at("reply").get<std::vector<Token>>();
    SCOPED_TRACE(form + ": " + text);
    const std::string command = program + " " + folder + " --temperature 0 --tokens " + std::to_string(reply.size()) +
                                " --template " + form + " --prompt '" + text + "'";
    EXPECT_EQ(output(command + " --numbers"), "prompt:" + numbers(prompt) + "\nreply:" + numbers(reply) + "\n");
    EXPECT_EQ(output(command + " --numbers --threads 2"), output(command + " --numbers"));

    support::TextStream stream(tokenizer);
    std::string shown;
    if (form == "plain")
      for (Token token : prompt)
        shown += stream.push(token);
    for (Token token : reply)
      shown += stream.push(token);
    EXPECT_EQ(output(command), shown + stream.finish() + "\n");
  }
  EXPECT_GE(expected.at("cases").size(), 2u);
}

TEST(ChatProgram, LlamaWritesWhatPyTorchWrites) {
  expect_what_pytorch_writes(LLAMA_CHAT, EXAMPLES "/llama/king_james");
}

TEST(ChatProgram, Gpt2WritesWhatPyTorchWrites) { expect_what_pytorch_writes(GPT2_CHAT, EXAMPLES "/gpt2/king_james"); }

// Each line is a question; the second one finds the first in the context.
TEST(ChatProgram, TalksLineByLine) {
  const std::string one = output("printf 'And God said,\\n' | " LLAMA_CHAT " " EXAMPLES "/llama/king_james --tokens 8",
                                 true),
                    two = output("printf 'And God said,\\nAnd he said,\\n' | " LLAMA_CHAT " " EXAMPLES
                                 "/llama/king_james --tokens 8",
                                 true);
  auto count = [](const std::string &text) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(" tokens per second; context ", at)) != text.npos; ++at)
      ++found;
    return found;
  };
  EXPECT_EQ(count(one), 1u) << one;
  EXPECT_EQ(count(two), 2u) << two;
}

TEST(ChatProgram, NamesACheckpointOfAnotherShape) {
  const std::string words = output(LLAMA_CHAT " " EXAMPLES "/gpt2/king_james --prompt x", true);
  EXPECT_NE(words.find("config.json: model_type is gpt2, the library was built for llama"), words.npos) << words;
  EXPECT_NE(words.find("config.json: hidden_size is missing, the library was built for 128"), words.npos) << words;
  EXPECT_NE(output(LLAMA_CHAT " /nonexistent", true).find("cannot read \"/nonexistent/config.json\""),
            std::string::npos);
}

} // namespace
