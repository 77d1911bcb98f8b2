// SPDX-License-Identifier: Apache-2.0
// How the Whisper program begins a text, by the files of a checkpoint.
#include "models/whisper/speech.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

namespace {

using Beginning = std::vector<std::optional<support::Token>>;
using Tokens = std::set<support::Token>;

SpeechRules read(const std::string &config, const std::string &generation = "") {
  std::string folder = ::testing::TempDir() + "kiln-speech-XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/config.json") << config;
  if (!generation.empty())
    std::ofstream(folder + "/generation_config.json") << generation;
  return SpeechReader(folder, 100).read();
}

std::string refusal(const std::string &config) {
  try {
    read(config);
    return "";
  } catch (const std::runtime_error &error) {
    return error.what();
  }
}

const std::string old = R"({"decoder_start_token_id": 50, "eos_token_id": 49, "suppress_tokens": [1, 2],
                            "begin_suppress_tokens": [3], "forced_decoder_ids": [[1, 51], [2, 60], [3, 63]]})";
const std::string languages = R"("lang_to_id": {"<|de|>": 52, "<|en|>": 53})";

TEST(SpeechRules, AreOfConfigJson) {
  const SpeechRules rules = read(old);
  EXPECT_EQ(rules.beginning, (Beginning{50, 51, 60, 63}));
  EXPECT_EQ(rules.ends, (Tokens{49}));
  EXPECT_EQ(rules.never, (Tokens{1, 2}));
  EXPECT_EQ(rules.not_first, (Tokens{3}));
}

// Keys are overridden one by one; a language of null is to be detected, and no timestamps are written.
TEST(SpeechRules, AreOfGenerationConfigJsonBefore) {
  const SpeechRules rules = read(old, R"({"forced_decoder_ids": [[1, null], [2, 59]], "suppress_tokens": [],
                                          "eos_token_id": [48, 49], "no_timestamps_token_id": 64, )" +
                                          languages + "}");
  EXPECT_EQ(rules.beginning, (Beginning{50, std::nullopt, 59, 64}));
  EXPECT_EQ(rules.languages, (Tokens{52, 53}));
  EXPECT_EQ(rules.ends, (Tokens{48, 49}));
  EXPECT_EQ(rules.never, Tokens());
  EXPECT_EQ(rules.not_first, (Tokens{3}));
}

TEST(SpeechRules, DoWithoutForcedTokens) {
  const std::string start = R"({"decoder_start_token_id": 50, "no_timestamps_token_id": 64)",
                    tasks = R"(, "task_to_id": {"transcribe": 59, "translate": 58}, )";
  EXPECT_EQ(read(start + "}").beginning, (Beginning{50, 64})); // a checkpoint for one language
  EXPECT_EQ(read(start + tasks + languages + "}").beginning, (Beginning{50, std::nullopt, 59, 64}));
  EXPECT_EQ(read(start + R"(, "forced_decoder_ids": [])" + tasks + languages + "}").beginning,
            (Beginning{50, std::nullopt, 59, 64}));
}

TEST(SpeechRules, SayWhatIsWrong) {
  auto expect = [](const std::string &config, const std::string &words) {
    EXPECT_NE(refusal(config).find(words), std::string::npos) << refusal(config) << "\nwanted: " << words;
  };
  expect("{}", "config.json: the file lacks \"decoder_start_token_id\"");
  expect(R"({"decoder_start_token_id": 100})",
         "decoder_start_token_id: wrong value; expected a token from 0 to 99, got 100");
  expect(R"({"decoder_start_token_id": 5, "suppress_tokens": [-1]})",
         "suppress_tokens[0]: wrong value; expected a token from 0 to 99, got -1");
  expect(R"({"decoder_start_token_id": 5, "forced_decoder_ids": [[2, 7]]})",
         "forced_decoder_ids[0]: wrong value; expected position 1 and a token, got [2,7]");
  expect(R"({"decoder_start_token_id": 5, "forced_decoder_ids": [[1, null]]})",
         "forced_decoder_ids[0][1]: wrong value; expected a token, since lang_to_id has none, got null");
}

} // namespace
