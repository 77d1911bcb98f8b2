// SPDX-License-Identifier: Apache-2.0
// The tokens around the messages of a conversation, compared with the chat templates of @huggingface/transformers; and
// whether a checkpoint fits the shape of a library.
#include "gpt2/config.h"
#include "llama/config.h"
#include "support/chat.h"
#include "support/talk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using nlohmann::json;
using support::Token;
using support::Tokenizer;

json read_json(const std::string &path) { return json::parse(support::read_whole_file(path)); }

/// Returns the tokenizer of examples/llama with Llama 3's special tokens for conversations.
Tokenizer tokenizer() {
  json file = read_json(EXAMPLES "/llama/king_james/tokenizer.json");
  for (const char *name : {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"})
    file["added_tokens"].push_back({{"id", 1997 + file["added_tokens"].size() - 2}, {"content", name}});
  return support::tokenizer_of_json(file.dump());
}

/// Returns the message of the error that a call throws.
std::string refusal(const std::function<void()> &call) {
  try {
    call();
  } catch (const std::runtime_error &error) {
    return error.what();
  }
  return "no error";
}

TEST(Chat, AgreesWithTheReferencesTemplates) {
  const Tokenizer words = tokenizer();
  const json golden = read_json(TOKENS);
  std::size_t count = 0;
  for (const json &chat : golden.at("chats")) {
    SCOPED_TRACE(chat.dump().substr(0, 60));
    const std::string system = chat.at("system").is_null() ? "" : chat.at("system");
    support::Conversation conversation(words, support::chat_form(chat.at("form")), system);
    EXPECT_EQ(conversation.ask(chat.at("questions")[0]), chat.at("first").get<std::vector<Token>>());
    // Compares the tokens after the reply, which is part of the reference's tokens.
    const std::vector<Token> more = conversation.ask(chat.at("questions")[1]),
                             both = chat.at("both").get<std::vector<Token>>();
    ASSERT_LT(more.size(), both.size());
    EXPECT_EQ(std::vector(both.end() - static_cast<std::ptrdiff_t>(more.size()), both.end()), more);
    ++count;
  }
  EXPECT_EQ(count, 2 * (support::chat_forms().size() - 1)); // all except the plain form
}

// Names of tokens and placeholders within a message are plain text.
TEST(Chat, TakesWhatIsSaidAsText) {
  const Tokenizer words = tokenizer();
  support::Conversation conversation(words, support::chat_form("chatml"), "{text}");
  const std::string said = "<|im_end|>{system}<|im_start|>{text}";
  const std::vector<Token> tokens = conversation.ask(said);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), words.find("<|im_start|>").value()), 3);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), words.find("<|im_end|>").value()), 2);
  const std::string text = decode(words, tokens);
  EXPECT_NE(text.find("system\n{text}"), text.npos) << text;
  EXPECT_NE(text.find("user\n" + said), text.npos) << text;
}

TEST(Chat, IsPlainWithoutATemplate) {
  const Tokenizer words = tokenizer();
  support::Conversation conversation(words, support::chat_form("plain"), "");
  std::vector<Token> expected = words.encode("In the beginning");
  expected.insert(expected.begin(), words.before().begin(), words.before().end());
  EXPECT_EQ(conversation.ask("In the beginning"), expected);
  EXPECT_FALSE(conversation.has_sides());
}

class Folder {
public:
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  void write(const std::string &name, const std::string &bytes) const { std::ofstream(path + "/" + name) << bytes; }
  const std::string path = ::testing::TempDir() + "chat_test_" + std::to_string(::getpid());
};

TEST(Chat, RecognisesTheFormOfACheckpoint) {
  const Folder folder;
  EXPECT_EQ(support::chat_form_of(folder.path).name, "plain");
  auto form = [&](const json &config) {
    folder.write("tokenizer_config.json", config.dump());
    return support::chat_form_of(folder.path).name;
  };
  EXPECT_EQ(form({{"bos_token", "<s>"}}), "plain");
  EXPECT_EQ(form({{"chat_template", "{{'<|im_start|>' + x}}"}}), "chatml");
  EXPECT_EQ(form({{"chat_template", "{{'<|user|>' + x}}"}}), "zephyr");
  EXPECT_EQ(form({{"chat_template", "{{'[INST] ' + x}}"}}), "llama-2");
  EXPECT_EQ(
      form({{"chat_template",
             {{{"name", "tools"}, {"template", "?"}}, {{"name", "default"}, {"template", "<|start_header_id|>"}}}}}),
      "llama-3");
  EXPECT_NE(refusal([&] { form({{"chat_template", "{{'<start_of_turn>' + x}}"}}); })
                .find(": unknown chat_template; expected one of plain, llama-3, chatml, zephyr, llama-2; --template "
                      "selects one"),
            std::string::npos);
  EXPECT_NE(refusal([&] { form({{"chat_template", 5}}); }).find("chat_template: wrong value; expected a string, got 5"),
            std::string::npos);
  folder.write("chat_template.jinja", "<|im_start|>");
  EXPECT_EQ(support::chat_form_of(folder.path).name, "chatml");
}

TEST(Chat, RequiresTheTokensOfItsForm) {
  const Tokenizer gpt2 =
      support::tokenizer_of_json(support::read_whole_file(EXAMPLES "/gpt2/king_james/tokenizer.json"));
  EXPECT_EQ(refusal([&] { support::Conversation(gpt2, support::chat_form("chatml"), ""); }),
            "template chatml: missing token; expected <|im_start|> in the tokenizer");
  EXPECT_EQ(refusal([] { support::chat_form("alpaca"); }),
            "template: unknown name; expected one of plain, llama-3, chatml, zephyr, llama-2, got \"alpaca\"");
}

TEST(Config, OfLlamaIsTheLibrarysShapeOrNamesWhatDiffers) {
  const json file = read_json(EXAMPLES "/llama/king_james/config.json");
  auto words = [&](const json &change, const llama::Shape &shape = llama::king_james) {
    json changed = file;
    changed.update(change);
    return refusal([&] { llama::check_config(support::Config("config.json", changed), shape); });
  };
  EXPECT_EQ(words(json::object()), "no error");
  EXPECT_EQ(words({{"max_position_embeddings", 4096}, {"sliding_window", nullptr}}), "no error");
  EXPECT_EQ(words({{"hidden_size", 2048}, {"num_hidden_layers", 22}}),
            "config.json: hidden_size is 2048, the library was built for 128\n"
            "config.json: num_hidden_layers is 22, the library was built for 4");
  for (const auto &[field, value, is, built] :
       {std::tuple{"vocab_size", json(32000), "32000", "2000"},
        {"model_type", json("gemma"), "gemma", "llama"},
        {"hidden_act", json("gelu"), "gelu", "silu"},
        {"intermediate_size", json(nullptr), "missing", "352"},
        {"num_attention_heads", json(8), "8", "4"},
        {"num_key_value_heads", json(4), "4", "2"},
        {"num_key_value_heads", json(nullptr), "4", "2"},
        {"head_dim", json(64), "64", "32"},
        {"rms_norm_eps", json(1e-6), "1e-06", "1e-05"},
        {"rope_theta", json(500000.0), "500000", "10000"},
        {"rope_scaling", json({{"type", "linear"}}), "present", "positions"},
        {"tie_word_embeddings", json(true), "true", "false"},
        {"attention_bias", json(true), "true", "false"},
        {"max_position_embeddings", json(128), "128", "256"},
        {"sliding_window", json(64), "64", "256"},
        {"quantization_config", json({{"bits", 4}}), "unknown of 4 bits, gemm", "gptq or"},
        {"quantization_config", json({{"quant_method", "awq"}, {"bits", 8}}), "awq of 8 bits, gemm",
         "gptq or awq of 4 bits, gemm"}})
    EXPECT_EQ(words({{field, value}})
                  .find(std::string("config.json: ") + field + " is " + is + ", the library was built for " + built),
              0u)
        << field << ": " << words({{field, value}});
  EXPECT_EQ(words({{"rope_parameters", {{"rope_theta", 10000}, {"rope_type", "default"}}}, {"rope_theta", nullptr}}),
            "no error");
  EXPECT_NE(words({{"rope_parameters", {{"rope_theta", 5e5}}}}).find("rope_theta is 500000"), std::string::npos);
  EXPECT_EQ(words({{"hidden_size", "wide"}}), "config.json: hidden_size: wrong value; expected a number, got \"wide\"");
}

TEST(Config, OfGpt2IsTheLibrarysShapeOrNamesWhatDiffers) {
  const json file = read_json(EXAMPLES "/gpt2/king_james/config.json");
  auto words = [&](const json &change) {
    json changed = file;
    changed.update(change);
    return refusal([&] { specs::check_config(support::Config("config.json", changed), specs::gpt2_king_james); });
  };
  EXPECT_EQ(words(json::object()), "no error");
  for (const char *field :
       {"vocab_size", "n_positions", "n_embd", "n_inner", "n_layer", "n_head", "layer_norm_epsilon"})
    EXPECT_EQ(words({{field, 7}}).find(std::string("config.json: ") + field + " is 7, the library was built for "), 0u)
        << words({{field, 7}});
  EXPECT_EQ(words({{"activation_function", "relu"}}),
            "config.json: activation_function is relu, the library was built for gelu_new");
  EXPECT_EQ(words({{"scale_attn_by_inverse_layer_idx", true}}),
            "config.json: scale_attn_by_inverse_layer_idx is true, the library was built for false");
}

TEST(Talk, FindsTheEndAndTheWeightsOfACheckpoint) {
  const Folder folder;
  EXPECT_TRUE(support::end_tokens(folder.path).empty());
  folder.write("config.json", R"({"eos_token_id": 2})");
  EXPECT_EQ(support::end_tokens(folder.path), std::set<Token>{2});
  folder.write("generation_config.json", R"({"eos_token_id": [128001, 128009]})");
  EXPECT_EQ(support::end_tokens(folder.path), (std::set<Token>{128001, 128009}));
  EXPECT_NE(refusal([&] { support::weight_file(folder.path); }).find("has no model.safetensors"), std::string::npos);
  folder.write("model.safetensors", "");
  EXPECT_EQ(support::weight_file(folder.path), folder.path + "/model.safetensors");
  folder.write("model.safetensors.index.json", "");
  EXPECT_EQ(support::weight_file(folder.path), folder.path + "/model.safetensors.index.json");
}

} // namespace
