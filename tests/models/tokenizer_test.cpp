// SPDX-License-Identifier: Apache-2.0
// The tokenizers of examples/support: tokens equal those of the npm package @huggingface/transformers, decoding
// restores the text, and errors in a file are named.
#include "support/bpe.h"
#include "support/config.h"
#include "support/tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace {

using nlohmann::json;
using support::Token;
using support::Tokenizer;

json tokenizer_file(const std::string &name) {
  return json::parse(support::read_whole_file(EXAMPLES "/" + name + "/king_james/tokenizer.json"));
}

/// Replaces these members of the file; within "model", its members.
json changed(json file, const json &change) {
  for (const auto &[member, value] : change.items()) {
    json &target = file[member];
    if (member == "model")
      target.update(value);
    else
      target = value;
  }
  return file;
}

Tokenizer tokenizer(const std::string &name, const json &change = json::object()) {
  return support::tokenizer_of_json(changed(tokenizer_file(name), change).dump());
}

/// Returns the text that a stream of these tokens shows.
std::string shown(const Tokenizer &tokenizer, const std::vector<Token> &tokens) {
  support::TextStream stream(tokenizer);
  std::string text;
  for (Token token : tokens)
    text += stream.push(token);
  return text + stream.finish();
}

TEST(Tokenizer, AgreesWithTheReference) {
  const json golden = json::parse(support::read_whole_file(TOKENS));
  std::size_t count = 0;
  for (const json &group : golden.at("cases")) {
    SCOPED_TRACE(group.at("name").get<std::string>() + " " + group.at("change").dump());
    const Tokenizer ours = tokenizer(group.at("name"), group.at("change"));
    EXPECT_EQ(ours.before(), group.at("texts")[0].at("before").get<std::vector<Token>>());
    for (const json &entry : group.at("texts")) {
      const std::string text = entry.at("text");
      const std::vector<Token> tokens = ours.encode(text);
      EXPECT_EQ(tokens, entry.at("tokens").get<std::vector<Token>>()) << entry.at("text");
      EXPECT_EQ(shown(ours, tokens), entry.value("shown", text)) << entry.at("text");
      ++count;
    }
  }
  EXPECT_GT(count, 500u);
}

// Any bytes, valid UTF-8 or not, are restored.
TEST(Tokenizer, GivesBackWhatItTook) {
  for (const char *name : {"llama", "gpt2"}) {
    SCOPED_TRACE(name);
    const Tokenizer ours = tokenizer(name);
    std::mt19937 random(1611);
    for (int i = 0; i < 2000; ++i) {
      std::string text(random() % 40, ' ');
      const unsigned highest = std::array{0x7Fu, 0xFFu}[random() % 2];
      for (char &byte : text)
        byte = static_cast<char>(random() % (highest + 1));
      const std::vector<Token> tokens = ours.encode(text, support::Specials::text);
      ASSERT_EQ(decode(ours, tokens), text);
      for (Token token : tokens)
        ASSERT_LT(static_cast<std::size_t>(token), ours.size());
    }
  }
}

std::string utf8_of(char32_t code) {
  if (code < 0x80)
    return {static_cast<char>(code)};
  std::string text;
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  for (int i = 0; i < more; ++i, code >>= 6)
    text.insert(text.begin(), static_cast<char>(0x80 | (code & 0x3F)));
  text.insert(text.begin(), static_cast<char>(std::array{0, 0xC0, 0xE0, 0xF0}[more] | code));
  return text;
}

// A stream holds a character back until all its bytes have arrived, however they are split into tokens.
TEST(Tokenizer, StreamsWholeCharacters) {
  for (const char *name : {"llama", "gpt2"}) {
    SCOPED_TRACE(name);
    const Tokenizer ours = tokenizer(name);
    std::mt19937 random(7);
    for (int i = 0; i < 500; ++i) {
      std::string text;
      for (unsigned n = random() % 20; n > 0; --n) {
        const char32_t code = random() % std::array{0x80u, 0x800u, 0x10000u, 0x110000u}[random() % 4];
        text += utf8_of(code >= 0xD800 && code < 0xE000 ? U'x' : code);
      }
      support::TextStream stream(ours);
      std::string shown;
      for (Token token : ours.encode(text, support::Specials::text)) {
        const std::string part = stream.push(token);
        for (std::size_t at = 0; at < part.size();) {
          const support::detail::Utf8 first = support::detail::first_character(std::string_view(part).substr(at));
          ASSERT_EQ(first.kind, support::detail::Utf8::whole) << text;
          at += first.bytes;
        }
        shown += part;
      }
      ASSERT_EQ(shown + stream.finish(), text);
    }
  }
}

// The replacements of Unicode's section 3.9, table 3-11 and similar ones, in one piece and byte by byte.
TEST(Tokenizer, StreamsReplaceWhatIsNoUtf8) {
  const std::pair<const char *, const char *> cases[] = {
      {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd"},
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xED\xA0\x80\xED\xBF\xBF\x41", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB"},
      {"x\xE2\x96", "x\uFFFD"},
  };
  for (const auto &[bytes, expected] : cases) {
    support::Utf8Stream whole, parts;
    std::string at_once = whole.push(bytes), in_parts;
    for (const char *at = bytes; *at; ++at)
      in_parts += parts.push({at, 1});
    EXPECT_EQ(at_once + whole.finish(), expected);
    EXPECT_EQ(in_parts + parts.finish(), expected);
  }
}

// The heap performs the same merges as a search for the lowest rank, leftmost first.
TEST(Bpe, MergesAsItsDefinitionSays) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::unordered_map<std::string, Token> tokens{{"a", 0}, {"b", 1}, {"c", 2}};
    std::vector<std::string> names{"a", "b", "c"};
    std::vector<support::Bpe::Merge> merges;
    while (merges.size() < 30) {
      const auto left = static_cast<Token>(random() % names.size()),
                 right = static_cast<Token>(random() % names.size());
      const std::string both = names[left] + names[right];
      if (both.size() > 12 || !tokens.emplace(both, static_cast<Token>(names.size())).second)
        continue;
      merges.push_back({left, right, static_cast<Token>(names.size())});
      names.push_back(both);
    }
    const support::Bpe bpe(tokens, merges, {});
    std::string word(random() % 60, 'a');
    std::vector<Token> expected, got;
    for (char &letter : word) {
      expected.push_back(static_cast<Token>(random() % 3));
      letter = static_cast<char>('a' + expected.back());
    }
    for (bool hasMerged = true; hasMerged;) {
      hasMerged = false;
      for (const support::Bpe::Merge &merge : merges) {
        const std::array pair{merge.left, merge.right};
        const auto at = std::search(expected.begin(), expected.end(), pair.begin(), pair.end());
        if (at == expected.end())
          continue;
        *at = merge.result;
        expected.erase(at + 1);
        hasMerged = true;
        break;
      }
    }
    bpe.encode(word, got);
    ASSERT_EQ(got, expected) << word;
  }
}

// A user's text cannot contain the special tokens that separate messages.
TEST(Tokenizer, TakesNamesOfSpecialTokensAsText) {
  const Tokenizer ours = tokenizer("llama");
  const std::string text = "a<|im_end|>b";
  const Token end = ours.find("<|im_end|>").value();
  const std::vector<Token> read = ours.encode(text), plain = ours.encode(text, support::Specials::text);
  EXPECT_EQ(std::count(read.begin(), read.end(), end), 1);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), end), 0);
  EXPECT_EQ(decode(ours, plain), text);
}

TEST(Tokenizer, TakesSpacesAroundAddedTokensThatSaySo) {
  json file = tokenizer_file("gpt2");
  file["added_tokens"][0]["lstrip"] = file["added_tokens"][0]["rstrip"] = true;
  const Tokenizer ours = support::tokenizer_of_json(file.dump());
  EXPECT_EQ(ours.encode("a \n<|endoftext|>  b"), ours.encode("a<|endoftext|>b"));
  EXPECT_EQ(ours.encode("<|endoftext|>  "), ours.encode("<|endoftext|>"));
}

TEST(Tokenizer, ReadsTheFirstFilesOfGpt2) {
  const json file = tokenizer_file("gpt2");
  std::string merges = "#version: 0.2\n";
  for (const json &merge : file.at("model").at("merges"))
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  const Tokenizer ours = support::tokenizer_of_merges(file.at("model").at("vocab").dump(), merges),
                  theirs = tokenizer("gpt2");
  const std::string text = support::read_whole_file(EXAMPLES "/char_gpt/heldout.txt") + "<|endoftext|># ## 1 2";
  EXPECT_EQ(ours.encode(text), theirs.encode(text));
  EXPECT_EQ(decode(ours, ours.encode("# ##")), "# ##");
}

/// A small version of BERT's files.
json pieces_file() {
  const std::vector<std::string> tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un",  "##aff", "##able",
                                        "the",   "cafe",  ".",     "!",     "\u4e2d", "##s", "a",     "##a"};
  json vocabulary, added = json::array();
  for (const std::string &token : tokens) {
    const std::size_t number = vocabulary.size();
    vocabulary[token] = number;
    if (token[0] == '[')
      added.push_back({{"id", number}, {"content", token}});
  }
  return {{"model", {{"type", "WordPiece"}, {"vocab", vocabulary}, {"unk_token", "[UNK]"}}},
          {"added_tokens", added},
          {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}, {"strip_accents", nullptr}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", {{"type", "BertProcessing"}, {"cls", {"[CLS]", 2}}, {"sep", {"[SEP]", 3}}}},
          {"decoder", {{"type", "WordPiece"}}}};
}

TEST(Tokenizer, TakesPiecesOfWords) {
  const Tokenizer ours = support::tokenizer_of_json(pieces_file().dump());
  EXPECT_EQ(ours.before(), std::vector<Token>{2});
  EXPECT_EQ(ours.after(), std::vector<Token>{3});
  const std::pair<std::string, std::vector<Token>> texts[] = {
      {"unaffable", {5, 6, 7}},
      {"The UNAFFABLE  caf\u00e9s!", {8, 5, 6, 7, 9, 13, 11}},  // lower case, no accents
      {"cafe\u0301.the\u4e2d\u4e2dthe", {9, 10, 8, 12, 12, 8}}, // punctuation and Chinese characters are words
      {"the\u00a0cafe\t\n a\u200ba", {8, 9, 14, 15}},           // kinds of spaces; invisible characters are dropped
      {"unaffablex the", {1, 8}},                               // an unknown part makes the whole word unknown
      {"the [MASK]!", {8, 4, 11}},
      {"", {}},
      {std::string(101, 'a'), {1}}, // too long
  };
  for (const auto &[text, tokens] : texts)
    EXPECT_EQ(ours.encode(text), tokens) << text;
  json cased = pieces_file();
  cased["normalizer"]["lowercase"] = false;
  EXPECT_EQ(support::tokenizer_of_json(cased.dump()).encode("The caf\u00e9"), (std::vector<Token>{1, 1}));
}

TEST(Tokenizer, ReadsTheFileOfPieces) {
  std::string lines;
  std::vector<std::string> tokens(16);
  const json file = pieces_file();
  for (const auto &[token, number] : file.at("model").at("vocab").items())
    tokens[number.get<std::size_t>()] = token;
  for (const std::string &token : tokens)
    lines += token + "\n";
  const Tokenizer ours = support::tokenizer_of_pieces(lines, true);
  EXPECT_EQ(ours.encode("The [MASK] caf\u00e9s!"), (std::vector<Token>{8, 4, 9, 13, 11}));
  EXPECT_EQ(ours.before(), std::vector<Token>{2});
  EXPECT_EQ(ours.after(), std::vector<Token>{3});
}

// CLIP's form: words end with an end-of-word suffix, and spaces are dropped.
TEST(Tokenizer, EndsWords) {
  json vocabulary, split{{"type", "Split"},
                         {"pattern", {{"Regex", R"([\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)"}}},
                         {"behavior", "Removed"},
                         {"invert", true}};
  for (const char *token : {"c", "a", "t", "c</w>", "a</w>", "t</w>", "ca", "cat</w>", "<|endoftext|>"})
    vocabulary[token] = vocabulary.size();
  const json file{
      {"model",
       {{"type", "BPE"},
        {"vocab", vocabulary},
        {"merges", {"c a", "ca t</w>"}},
        {"unk_token", "<|endoftext|>"},
        {"end_of_word_suffix", "</w>"}}},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         {{{"type", "NFC"}},
          {{"type", "Replace"}, {"pattern", {{"Regex", R"(\s+)"}}}, {"content", " "}},
          {{"type", "Lowercase"}}}}}},
      {"pre_tokenizer",
       {{"type", "Sequence"}, {"pretokenizers", {split, {{"type", "ByteLevel"}, {"add_prefix_space", false}}}}}},
      {"post_processor",
       {{"type", "RobertaProcessing"}, {"cls", {"<|endoftext|>", 8}}, {"sep", {"<|endoftext|>", 8}}}}};
  const Tokenizer ours = support::tokenizer_of_json(file.dump());
  EXPECT_EQ(ours.encode("Cat  cA\n a"), (std::vector<Token>{7, 0, 4, 4}));
  EXPECT_EQ(ours.encode("catcat"), (std::vector<Token>{6, 2, 7}));
  EXPECT_EQ(ours.before(), std::vector<Token>{8});
}

/// Returns the error message for the file after `change`.
std::string refusal(const char *name, const std::function<void(json &)> &change) {
  json file = tokenizer_file(name);
  change(file);
  try {
    support::tokenizer_of_json(file.dump());
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "no error";
}

TEST(Tokenizer, NamesWhatIsWrongInAFile) {
  using Change = std::function<void(json &)>;
  const std::tuple<const char *, Change, const char *> cases[] = {
      {"gpt2", [](json &f) { f = 5; }, "tokenizer.json: wrong value; expected an object, got 5"},
      {"gpt2", [](json &f) { f.erase("model"); }, "tokenizer.json: the file lacks \"model\""},
      {"gpt2", [](json &f) { f["model"]["type"] = "Unigram"; },
       "tokenizer.json: model.type: wrong value; expected BPE or WordPiece, got \"Unigram\""},
      {"gpt2", [](json &f) { f["model"].erase("vocab"); }, "tokenizer.json: model lacks \"vocab\""},
      {"gpt2", [](json &f) { f["model"]["vocab"]["a"] = -1; },
       "model.vocab.a: wrong value; expected a token from 0 to 4194303, got -1"},
      {"gpt2", [](json &f) { f["model"]["vocab"]["a"] = 1e300; },
       "model.vocab.a: wrong value; expected an integer, got 1e+300"},
      {"gpt2", [](json &f) { f["model"]["vocab"]["a"] = "x"; },
       "model.vocab.a: wrong value; expected an integer, got \"x\""},
      {"gpt2", [](json &f) { f["model"]["vocab"].erase("A"); }, "model.vocab lacks a token of the byte <0x41>"},
      {"gpt2", [](json &f) { f["model"]["merges"][7] = 3; }, "model.merges[7]: wrong value; expected an array, got 3"},
      {"gpt2", [](json &f) { f["model"]["merges"][7] = "abc"; },
       "model.merges[7]: wrong value; expected two tokens with a space"},
      {"gpt2", [](json &f) { f["model"]["merges"][7] = {"a", "??"}; },
       "model.merges[7]: wrong value; expected tokens of the vocabulary, "
       "which lacks \"??\""},
      {"gpt2", [](json &f) { f["model"]["continuing_subword_prefix"] = "##"; },
       "model.continuing_subword_prefix: wrong value; expected none, got"},
      {"gpt2", [](json &f) { f["added_tokens"][0]["content"] = ""; },
       "added_tokens[0].content: wrong value; expected a name"},
      {"gpt2", [](json &f) { f["normalizer"] = {{"type", "NFD"}}; },
       "normalizer: wrong value; expected Lowercase, NFC, Prepend, Replace, or a Sequence"},
      {"gpt2", [](json &f) { f["pre_tokenizer"] = {{"type", "Bert"}}; },
       "pre_tokenizer: wrong value; expected ByteLevel, Digits"},
      {"gpt2",
       [](json &f) {
         f["pre_tokenizer"] = {{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "a(b"}}}};
       },
       "pre_tokenizer.pattern.Regex: wrong value; expected an expression that ICU reads (U_REGEX_MISMATCHED_PAREN at "
       "character 3), got"},
      {"gpt2",
       [](json &f) {
         f["pre_tokenizer"] = {{"type", "Split"}, {"behavior", "Removed"}, {"pattern", {{"Regex", "a"}}}};
       },
       "pre_tokenizer: wrong value; expected the behavior Isolated"},
      {"gpt2", [](json &f) { f["decoder"] = {{"type", "WordPiece"}}; },
       "decoder: wrong value; expected ByteFallback, ByteLevel"},
      {"llama", [](json &f) { f["model"]["vocab"].erase("<0x0A>"); },
       "model.byte_fallback: missing token; expected <0x0A>"},
      {"llama", [](json &f) { f["model"]["unk_token"] = "??"; },
       "model.unk_token: wrong value; expected a token of the vocabulary"},
      {"llama",
       [](json &f) {
         f["model"]["byte_fallback"] = false;
         f["model"]["unk_token"] = nullptr;
       },
       "model: no token for unknown text; expected byte_fallback or an unk_token"},
      {"llama", [](json &f) { f["post_processor"]["single"][0]["SpecialToken"]["id"] = "??"; },
       "post_processor.single[0].SpecialToken.id: wrong value; expected a token of the vocabulary, got \"??\""},
  };
  for (const auto &[name, change, words] : cases)
    EXPECT_NE(refusal(name, change).find(words), std::string::npos) << words << "\ngot: " << refusal(name, change);
  EXPECT_EQ(refusal("llama", [](json &) {}), "no error");
}

TEST(Tokenizer, NamesAFileThatIsNoJsonOrMissing) {
  auto message = [](const std::function<void()> &call) -> std::string {
    try {
      call();
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message([] {
              support::tokenizer_of_json("{\"model\": ");
            }).find("tokenizer.json: no JSON: parse error at line 1"),
            std::string::npos);
  EXPECT_NE(message([] { support::tokenizer_of_json(std::string(1000000, '[')); }).find("no JSON"), std::string::npos);
  EXPECT_NE(message([] { support::load_tokenizer("/nonexistent"); }).find("\"/nonexistent\" has no tokenizer.json"),
            std::string::npos);
  EXPECT_NE(message([] { support::tokenizer_of_merges("[]", ""); }).find("vocab.json: wrong value; expected an object"),
            std::string::npos);
}

#ifdef SUPPORT_SENTENCEPIECE
// The token ids are those of the library's own program, spm_encode --output_format=id.
TEST(Tokenizer, ReadsASentencepieceModel) {
  const Tokenizer ours = support::tokenizer_of_sentencepiece(SENTENCEPIECE_MODEL);
  const std::string text = "  two  spaces \u00E9 \u6F22 \U0001F642 <s> 12";
  const std::vector<Token> expected{546, 546, 539, 551, 546, 426, 550, 564, 283, 546, 198, 172, 546, 233,
                                    191, 165, 546, 243, 162, 156, 133, 546, 63,  553, 65,  546, 52,  53};
  const std::vector<Token> tokens = ours.encode(text, support::Specials::text);
  EXPECT_EQ(tokens, expected);
  EXPECT_EQ(shown(ours, tokens), text);
  EXPECT_EQ(ours.before(), std::vector<Token>{1});
  const std::vector<Token> read = ours.encode(text);
  EXPECT_EQ(std::count(read.begin(), read.end(), 1), 1);
}

TEST(Tokenizer, RefusesWhatIsNoSentencepieceModel) {
  try {
    support::tokenizer_of_sentencepiece(EXAMPLES "/README.md");
    ADD_FAILURE() << "was accepted";
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what()).find("sentencepiece cannot read"), std::string::npos) << error.what();
  }
}
#endif

} // namespace
