// SPDX-License-Identifier: Apache-2.0
// The programs of examples/llama and examples/gpt2 on the checkpoints that are trained there: the most likely tokens
// must be PyTorch's, and the text must be that of these tokens. Llama is also tested as a GGUF file with its tokenizer,
// and quantised.
#include "support/config.h"
#include "support/tokenizer.h"
#include "third_party_files.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>

namespace {

using nlohmann::json;
using support::Token;

/// Returns the standard output of a program; with `isAll` also the standard error.
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

/// checkpoint: the program's argument, if it is not the folder itself.
void expect_what_pytorch_writes(const std::string &program, const std::string &folder, std::string checkpoint = "") {
  if (checkpoint.empty())
    checkpoint = folder;
  const json expected = json::parse(support::read_whole_file(folder + "/expected.json"));
  const support::Tokenizer tokenizer = support::load_tokenizer(folder);
  for (const json &entry : expected.at("cases")) {
    const std::string text = entry.at("text"), form = entry.at("template");
    const auto prompt = entry.at("prompt").get<std::vector<Token>>(),
               reply = entry.at("reply").get<std::vector<Token>>();
    SCOPED_TRACE(form + ": " + text);
    const std::string command = program + " " + checkpoint + " --temperature 0 --tokens " +
                                std::to_string(reply.size()) + " --template " + form + " --prompt '" + text + "'";
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

/// Encodes GGUF metadata: an array of strings.
std::string texts(const std::vector<std::string> &values) {
  std::string bytes;
  kiln_test::append<std::uint32_t>(bytes, 8);
  kiln_test::append<std::uint64_t>(bytes, values.size());
  for (const std::string &value : values)
    kiln_test::appendText(bytes, value);
  return bytes;
}
template <class T> std::string array(std::uint32_t type, const std::vector<T> &values) {
  std::string bytes;
  kiln_test::append(bytes, type);
  kiln_test::append<std::uint64_t>(bytes, values.size());
  return bytes + kiln_test::bytesOf(values);
}

/// Returns the metadata that llama.cpp's converter writes for the shape and the tokenizer of examples/llama/king_james.
std::vector<std::string> metadata_of(const std::string &folder) {
  const json config = json::parse(support::read_whole_file(folder + "/config.json")),
             tokenizer = json::parse(support::read_whole_file(folder + "/tokenizer.json")),
             chat = json::parse(support::read_whole_file(folder + "/tokenizer_config.json"));
  const json &vocabulary = tokenizer.at("model").at("vocab"), &merges = tokenizer.at("model").at("merges");
  std::vector<std::string> tokens(config.at("vocab_size").get<std::size_t>());
  std::vector<float> scores(tokens.size(), -1e6f);
  std::vector<std::int32_t> kinds(tokens.size(), 1);
  for (const auto &[text, token] : vocabulary.items()) {
    tokens[token.get<std::size_t>()] = text;
    if (text.size() == 6 && text.starts_with("<0x"))
      kinds[token.get<std::size_t>()] = 6;
  }
  for (const json &added : tokenizer.at("added_tokens")) {
    tokens[added.at("id").get<std::size_t>()] = added.at("content");
    kinds[added.at("id").get<std::size_t>()] = added.at("content") == "<unk>" ? 2 : 3;
  }
  for (std::size_t i = merges.size(); i-- > 0;) { // "a b"
    std::string merged = merges[i].get<std::string>();
    merged.erase(merged.find(' '), 1);
    scores[vocabulary.at(merged).get<std::size_t>()] = -1.0f - static_cast<float>(i);
  }
  auto text = [](const std::string &key, const std::string &value) {
    std::string bytes;
    kiln_test::appendText(bytes, value);
    return kiln_test::metadata(key, 8, bytes);
  };
  auto number = [&](const std::string &key, const char *field) {
    return kiln_test::metadata("llama." + key, 4, config.at(field).get<std::uint32_t>());
  };
  return {text("general.architecture", "llama"),
          number("block_count", "num_hidden_layers"),
          number("embedding_length", "hidden_size"),
          number("feed_forward_length", "intermediate_size"),
          number("attention.head_count", "num_attention_heads"),
          number("attention.head_count_kv", "num_key_value_heads"),
          number("context_length", "max_position_embeddings"),
          kiln_test::metadata("llama.attention.layer_norm_rms_epsilon", 6, config.at("rms_norm_eps").get<float>()),
          kiln_test::metadata("llama.rope.freq_base", 6, config.at("rope_theta").get<float>()),
          text("tokenizer.ggml.model", "llama"),
          kiln_test::metadata("tokenizer.ggml.tokens", 9, texts(tokens)),
          kiln_test::metadata("tokenizer.ggml.scores", 9, array(6, scores)),
          kiln_test::metadata("tokenizer.ggml.token_type", 9, array(5, kinds)),
          kiln_test::metadata<std::uint32_t>("tokenizer.ggml.bos_token_id", 4, 1),
          kiln_test::metadata<std::uint32_t>("tokenizer.ggml.eos_token_id", 4, 2),
          text("tokenizer.chat_template", chat.at("chat_template"))};
}

/// Returns its f16 tensors under llama.cpp's names, with the rows of each rotary head in pairs.
std::vector<kiln_test::GgufTensor> tensors_of(const std::string &folder) {
  const std::string bytes = support::read_whole_file(folder + "/model.safetensors");
  std::uint64_t header_bytes;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const json header = json::parse(bytes.substr(8, header_bytes));
  const std::pair<const char *, const char *> parts[] = {{"model.embed_tokens", "token_embd"},
                                                         {"model.norm", "output_norm"},
                                                         {"lm_head", "output"},
                                                         {"input_layernorm", "attn_norm"},
                                                         {"self_attn.q_proj", "attn_q"},
                                                         {"self_attn.k_proj", "attn_k"},
                                                         {"post_attention_layernorm", "ffn_norm"},
                                                         {"self_attn.v_proj", "attn_v"},
                                                         {"self_attn.o_proj", "attn_output"},
                                                         {"mlp.gate_proj", "ffn_gate"},
                                                         {"mlp.up_proj", "ffn_up"},
                                                         {"mlp.down_proj", "ffn_down"}};
  std::vector<kiln_test::GgufTensor> tensors;
  for (const auto &[name, tensor] : header.items()) {
    if (name == "__metadata__")
      continue;
    const auto extents = tensor.at("shape").get<std::vector<std::uint64_t>>();
    const auto begin = tensor.at("data_offsets")[0].get<std::size_t>(),
               end = tensor.at("data_offsets")[1].get<std::size_t>();
    std::string data = bytes.substr(8 + header_bytes + begin, end - begin), called;
    for (const auto &[ours, theirs] : parts)
      if (name.find(std::string(ours) + ".weight") != name.npos)
        called = theirs;
    const bool isLayer = name.starts_with("model.layers.");
    const std::string number = isLayer ? name.substr(13, name.find('.', 13) - 13) : "";
    if (called == "attn_q" || called == "attn_k") {
      const std::size_t row = extents[1] * 2, head = 32; // rows
      const std::string from = data;
      for (std::size_t i = 0; i < extents[0]; ++i)
        data.replace(i * row, row, from, (i / head * head + i % head / 2 + i % 2 * head / 2) * row, row);
    }
    tensors.push_back({(isLayer ? "blk." + number + "." : "") + called + ".weight",
                       {extents.rbegin(), extents.rend()},
                       kiln_test::GgufF16,
                       data});
  }
  return tensors;
}

TEST(ChatProgram, LlamaFromAGgufFileWritesWhatPyTorchWrites) {
  const std::string folder = EXAMPLES "/llama/king_james",
                    own = ::testing::TempDir() + "chat_program" + std::to_string(getpid());
  std::filesystem::create_directory(own);
  const std::string file = own + "/king_james.gguf", none = own + "/none.gguf";
  std::ofstream(file, std::ios::binary) << kiln_test::makeGguf(tensors_of(folder), metadata_of(folder));
  expect_what_pytorch_writes(LLAMA_CHAT, folder, file);

  std::vector<std::string> metadata = metadata_of(folder);
  metadata.erase(metadata.begin() + 9); // tokenizer.ggml.model
  metadata[2] = kiln_test::metadata<std::uint32_t>("llama.embedding_length", 4, 64);
  std::ofstream(none, std::ios::binary) << kiln_test::makeGguf({}, metadata);
  EXPECT_EQ(output(LLAMA_CHAT " " + none, true), "none.gguf: hidden_size is 64, the library was built for 128\n");
  metadata[2] = kiln_test::metadata<std::uint32_t>("llama.embedding_length", 4, 128);
  std::ofstream(none, std::ios::binary) << kiln_test::makeGguf({}, metadata);
  EXPECT_NE(output(LLAMA_CHAT " " + none, true).find("has no tokenizer.json"), std::string::npos);
  std::ofstream(none, std::ios::binary) << "GGUF";
  EXPECT_EQ(output(LLAMA_CHAT " " + none, true),
            "none.gguf: truncated metadata; expected more bytes, got the end of the file\n");
  EXPECT_EQ(output(GPT2_CHAT " " + none, true),
            "none.gguf: truncated metadata; expected more bytes, got the end of the file\n");
  std::filesystem::remove_all(own);
}

/// Returns the nearest 4-bit matrix with a scale and a zero point per 32 inputs.
kiln_test::Int4Matrix nearest(const std::vector<float> &values, std::int64_t outputs, std::int64_t inputs) {
  kiln_test::Int4Matrix matrix(outputs, inputs, 32, 1);
  for (std::int64_t n = 0; n < outputs; ++n)
    for (std::int64_t g = 0; g < inputs / 32; ++g) {
      const auto first = values.begin() + n * inputs + g * 32;
      const float least = std::min(0.0f, *std::min_element(first, first + 32)),
                  most = std::max(0.0f, *std::max_element(first, first + 32));
      const std::uint16_t scale = kiln_test::rounded(KILN_F16, (most - least) / 15);
      const double step = kiln_test::valueOfHalf(scale);
      auto within = [](double value) { return static_cast<int>(std::min(15.0, std::max(0.0, std::round(value)))); };
      const int zero = within(-least / step);
      matrix.Scales[g * outputs + n] = scale;
      matrix.Zeros[g * outputs + n] = zero;
      for (int i = 0; i < 32; ++i)
        matrix.Elements[n * inputs + g * 32 + i] = within(first[i] / step + zero);
    }
  return matrix;
}

// The program loads a quantised directory, and must write the same as with a directory of the same values in f32.
TEST(ChatProgram, LlamaOfGptqAndAwqWritesWhatItsNumbersWrite) {
  const std::string from = EXAMPLES "/llama/king_james", bytes = support::read_whole_file(from + "/model.safetensors"),
                    own = ::testing::TempDir() + "chat_quantized" + std::to_string(getpid());
  std::uint64_t header_bytes;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  std::map<std::string, std::vector<kiln_test::Tensor>> files; // by quantisation method
  const json header = json::parse(bytes.substr(8, header_bytes));
  for (const auto &[name, tensor] : header.items()) {
    if (name == "__metadata__")
      continue;
    const auto extents = tensor.at("shape").get<std::vector<std::int64_t>>();
    const auto begin = tensor.at("data_offsets")[0].get<std::size_t>(),
               end = tensor.at("data_offsets")[1].get<std::size_t>();
    const std::string data = bytes.substr(8 + header_bytes + begin, end - begin);
    const std::size_t at = name.find("_proj.weight");
    if (at == name.npos) {
      for (const char *method : {"", "gptq", "gptq_v2", "awq"})
        files[method].push_back({name, "F16", extents, data});
      continue;
    }
    std::vector<float> values;
    for (std::size_t i = 0; i < data.size(); i += 2) {
      std::uint16_t half;
      std::memcpy(&half, data.data() + i, sizeof half);
      values.push_back(static_cast<float>(kiln_test::valueOfHalf(half)));
    }
    const kiln_test::Int4Matrix matrix = nearest(values, extents[0], extents[1]);
    const std::string base = name.substr(0, at + 5);
    files[""].push_back({name, "F32", extents, kiln_test::bytesOf(matrix.values())});
    for (auto [method, tensors] :
         {std::pair{"gptq", matrix.gptq(base)}, {"gptq_v2", matrix.gptq(base, 0, false)}, {"awq", matrix.awq(base)}})
      files[method].insert(files[method].end(), tensors.begin(), tensors.end());
  }
  std::string expected;
  for (const auto &[method, tensors] : files) { // the unquantised one first
    const std::string folder = own + method;
    std::filesystem::create_directory(folder);
    for (const char *file : {"tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy_file(from + "/" + file, folder + "/" + file);
    json config = json::parse(support::read_whole_file(from + "/config.json"));
    if (!method.empty())
      config["quantization_config"] = {{"quant_method", method == "awq" ? "awq" : "gptq"},
                                       {"bits", 4},
                                       {"group_size", 32},
                                       {"checkpoint_format", method}};
    std::ofstream(folder + "/config.json") << config.dump();
    std::ofstream(folder + "/model.safetensors", std::ios::binary) << kiln_test::imageOf(tensors);
    const std::string tokens =
        output(LLAMA_CHAT " " + folder + " --temperature 0 --tokens 40 --numbers --prompt 'And God said,'");
    if (method.empty())
      expected = tokens;
    EXPECT_EQ(tokens, expected) << method;
    EXPECT_NE(tokens.find("reply: "), tokens.npos) << tokens;
    std::filesystem::remove_all(folder);
  }
}

// Speculative decoding gives the same text, greedy or sampled, for any number of draft tokens; and some of these are
// accepted.
TEST(ChatProgram, SpeculationChangesNoToken) {
  const std::string model = EXAMPLES "/gpt2/king_james", draft = model + "/draft";
  for (const std::string options :
       {"--temperature 0 --tokens 60", "--tokens 200 --seed 3", "--tokens 240 --threads 2"}) {
    const std::string rest = " " + options + " --prompt 'And the LORD said' --numbers",
                      alone = output(GPT2_CHAT " " + model + rest);
    EXPECT_NE(alone.find("reply: "), alone.npos) << alone;
    for (const char *guesses : {"1", "4", "9"}) {
      SCOPED_TRACE(options + ", " + guesses + " guesses");
      EXPECT_EQ(output(GPT2_SPECULATIVE " " + draft + " " + model + rest + " --guesses " + guesses), alone);
    }
  }
  const std::string said = output(
      GPT2_SPECULATIVE " " + draft + " " + model + " --temperature 0 --tokens 100 --prompt 'In the beginning'", true);
  std::size_t right = 0, guessed = 0, calls = 0;
  const std::size_t at = said.rfind("\n", said.find(" guesses were right")) + 1;
  ASSERT_EQ(std::sscanf(said.c_str() + at, "%zu of %zu guesses were right; %zu calls", &right, &guessed, &calls), 3)
      << said;
  EXPECT_GT(right, 0u);
  EXPECT_LE(calls + right, 100u);
}

// Each line is a question; the second one has the first in its context.
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
