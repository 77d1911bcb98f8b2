// SPDX-License-Identifier: Apache-2.0
// Checkpoints in the usual layouts, loaded with the tables of the examples: prefixes, extra tensors, other element
// types, several files with an index, concatenated projections; and the error messages for invalid ones.
#include "bert/checkpoint.h"
#include "bert_words.h"
#include "gpt2/checkpoint.h"
#include "gpt2_tiny.h"
#include "llama.h"
#include "llama/checkpoint.h"
#include "session.h"
#include "support.h"
#include "vit/checkpoint.h"
#include "vit_tiny.h"

#include <bit>
#include <filesystem>
#include <fstream>
#include <functional>

namespace kiln::testing {
namespace {

using support::load_checkpoint;
using support::Rule;

/// A tensor of a checkpoint: the counter's values for its name, truncated to its type.
struct Stored {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string type = "F32";

  std::int64_t count() const {
    std::int64_t product = 1;
    for (std::int64_t extent : shape)
      product *= extent;
    return product;
  }
  float value(std::int64_t i) const {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(counter_weight(name, shape, static_cast<std::uint64_t>(i)));
    if (type == "BF16")
      return std::bit_cast<float>(bits & 0xFFFF0000);
    if (type == "F16") // 10 bits of a normal number, or 0
      return (bits >> 23 & 255) <= 112 ? 0.0f : std::bit_cast<float>(bits & 0xFFFFE000);
    return std::bit_cast<float>(bits);
  }
  void write(std::string &bytes, std::int64_t i) const {
    std::uint32_t bits = std::bit_cast<std::uint32_t>(value(i));
    if (type == "BF16")
      bits >>= 16;
    if (type == "F16" && bits != 0)
      bits = (bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 1023);
    bytes.append(reinterpret_cast<const char *>(&bits), type == "F32" ? 4 : 2);
  }
};

class Folder {
public:
  Folder() : path(std::filesystem::path(::testing::TempDir()) / ("checkpoint" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }

  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return (path / name).string();
  }
  std::string write(const std::string &name, const std::vector<Stored> &tensors) const {
    std::string header = "{\"__metadata__\": {\"format\": \"pt\"}", data;
    for (const Stored &tensor : tensors) {
      header += ", \"" + tensor.name + "\": {\"dtype\": \"" + tensor.type + "\", \"shape\": [";
      for (std::size_t i = 0; i < tensor.shape.size(); ++i)
        header += (i ? ", " : "") + std::to_string(tensor.shape[i]);
      header += "], \"data_offsets\": [" + std::to_string(data.size()) + ", ";
      for (std::int64_t i = 0; i < tensor.count(); ++i)
        tensor.write(data, i);
      header += std::to_string(data.size()) + "]}";
    }
    header += "}";
    std::string size(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(size.data(), &length, sizeof length);
    return write(name, size + header + data);
  }

private:
  std::filesystem::path path;
};

/// Expects that the image has exactly the model's weights, with values from the tensors that `find` names.
template <class Handle>
void expectWeights(const Library<Handle> &library, const std::vector<std::byte> &image,
                   const std::vector<Stored> &stored, const std::function<std::string(const std::string &)> &find) {
  std::vector<Weight> wanted = counterWeights(library.weights);
  for (Weight &weight : wanted) {
    const std::string from = find(weight.name);
    auto source = std::find_if(stored.begin(), stored.end(), [&](const Stored &tensor) { return tensor.name == from; });
    ASSERT_NE(source, stored.end()) << from;
    for (std::size_t i = 0; i < weight.values.size(); ++i)
      weight.values[i] = source->value(static_cast<std::int64_t>(i));
  }
  Handle *handle = nullptr;
  kiln_error_t error{};
  ASSERT_EQ(library.create(nullptr, &handle, &error), KILN_OK) << error.message;
  EXPECT_EQ(library.bind(handle, image.data(), image.size(), &error), KILN_OK) << error.message;
  library.destroy(handle);
  // The same tensors in any order.
  std::uint64_t size;
  std::memcpy(&size, image.data(), sizeof size);
  const support::Json header =
      support::JsonReader(std::string_view(reinterpret_cast<const char *>(image.data()) + sizeof size, size)).read();
  EXPECT_EQ(header.members.size(), wanted.size());
  for (const Weight &weight : wanted) {
    const std::size_t begin = header.at(weight.name).at("data_offsets").items.at(0).number();
    EXPECT_EQ(std::memcmp(image.data() + sizeof size + size + begin, weight.values.data(), 4 * weight.values.size()), 0)
        << weight.name;
  }
}

/// Returns tensors in the layout of GPT-2's repository: Conv1D weights [in, out], one for queries, keys and values.
std::vector<Stored> gpt2Tensors(const std::string &prefix) {
  std::vector<Stored> tensors{{prefix + "wte.weight", {67, 48}}, {prefix + "wpe.weight", {32, 48}}};
  for (int i = 0; i < 2; ++i) {
    const std::string h = prefix + "h." + std::to_string(i) + ".";
    for (const char *norm : {"ln_1", "ln_2"})
      tensors.insert(tensors.end(), {{h + norm + ".weight", {48}}, {h + norm + ".bias", {48}}});
    for (auto [name, in, out] :
         {std::tuple{"attn.c_attn", 48, 144}, {"attn.c_proj", 48, 48}, {"mlp.c_fc", 48, 192}, {"mlp.c_proj", 192, 48}})
      tensors.insert(tensors.end(), {{h + name + ".weight", {in, out}}, {h + name + ".bias", {out}}});
    tensors.push_back({h + "attn.bias", {1, 1, 32, 32}}); // the causal mask
    tensors.push_back({h + "attn.masked_bias", {}});
  }
  tensors.insert(tensors.end(), {{prefix + "ln_f.weight", {48}}, {prefix + "ln_f.bias", {48}}});
  return tensors;
}

auto gpt2() { return KILN_TEST_LIBRARY(gpt2_tiny, GPT2_TINY_WEIGHTS); }

TEST(Checkpoint, OfGpt2) {
  const Folder folder;
  const std::vector<Stored> plain = gpt2Tensors("");
  expectWeights(gpt2(), load_checkpoint(folder.write("model.safetensors", plain), specs::gpt2_checkpoint), plain,
                [](const std::string &name) { return name; });
  std::vector<Stored> prefixed = gpt2Tensors("transformer.");
  prefixed.push_back({"lm_head.weight", {67, 48}});
  expectWeights(gpt2(), load_checkpoint(folder.write("model.safetensors", prefixed), specs::gpt2_checkpoint), prefixed,
                [](const std::string &name) { return "transformer." + name; });
}

TEST(Checkpoint, OfBert) {
  std::vector<Stored> tensors;
  auto linear = [&](const std::string &name, std::int64_t out, std::int64_t in) {
    tensors.insert(tensors.end(), {{name + ".weight", {out, in}}, {name + ".bias", {out}}});
  };
  auto norm = [&](const std::string &name) { // the names of the first checkpoints
    tensors.insert(tensors.end(), {{name + ".gamma", {96}}, {name + ".beta", {96}}});
  };
  const std::string embeddings = "bert.embeddings.";
  for (auto [name, rows] : {std::pair{"word", 601}, {"position", 512}, {"token_type", 2}})
    tensors.push_back({embeddings + name + "_embeddings.weight", {rows, 96}, "F16"});
  norm(embeddings + "LayerNorm");
  for (int i = 0; i < 3; ++i) {
    const std::string layer = "bert.encoder.layer." + std::to_string(i) + ".";
    for (const char *part : {"query", "key", "value"})
      linear(layer + "attention.self." + part, 96, 96);
    linear(layer + "attention.output.dense", 96, 96);
    norm(layer + "attention.output.LayerNorm");
    linear(layer + "intermediate.dense", 384, 96);
    linear(layer + "output.dense", 96, 384);
    norm(layer + "output.LayerNorm");
  }
  linear("cls.predictions.transform.dense", 96, 96);
  norm("cls.predictions.transform.LayerNorm");
  tensors.push_back({"cls.predictions.bias", {601}});
  tensors.push_back({"cls.predictions.decoder.weight", {601, 96}});
  linear("bert.pooler.dense", 96, 96);
  linear("cls.seq_relationship", 2, 96);

  const Folder folder;
  const auto library = KILN_TEST_LIBRARY(bert_words, BERT_WORDS_WEIGHTS);
  expectWeights(library, load_checkpoint(folder.write("model.safetensors", tensors), specs::bert_checkpoint), tensors,
                [](std::string name) {
                  if (name.find("LayerNorm.weight") != name.npos)
                    name.replace(name.rfind("weight"), 6, "gamma");
                  if (name.find("LayerNorm.bias") != name.npos)
                    name.replace(name.rfind("bias"), 4, "beta");
                  return name;
                });
}

TEST(Checkpoint, OfVit) {
  std::vector<Stored> tensors{{"vit.embeddings.cls_token", {1, 1, 48}},
                              {"vit.embeddings.position_embeddings", {1, 17, 48}},
                              {"vit.embeddings.patch_embeddings.projection.weight", {48, 3, 8, 8}},
                              {"vit.embeddings.patch_embeddings.projection.bias", {48}}};
  auto linear = [&](const std::string &name, std::int64_t out, std::int64_t in) {
    tensors.insert(tensors.end(), {{name + ".weight", {out, in}}, {name + ".bias", {out}}});
  };
  for (int i = 0; i < 2; ++i) {
    const std::string layer = "vit.encoder.layer." + std::to_string(i) + ".";
    for (const char *norm : {"layernorm_before", "layernorm_after"})
      tensors.insert(tensors.end(), {{layer + norm + ".weight", {48}}, {layer + norm + ".bias", {48}}});
    for (const char *part : {"attention.attention.query", "attention.attention.key", "attention.attention.value",
                             "attention.output.dense"})
      linear(layer + part, 48, 48);
    linear(layer + "intermediate.dense", 192, 48);
    linear(layer + "output.dense", 48, 192);
  }
  tensors.insert(tensors.end(), {{"vit.layernorm.weight", {48}}, {"vit.layernorm.bias", {48}}});
  linear("classifier", 10, 48);
  linear("vit.pooler.dense", 48, 48);

  const Folder folder;
  const auto library = KILN_TEST_LIBRARY(vit_tiny, VIT_TINY_WEIGHTS);
  expectWeights(library, load_checkpoint(folder.write("model.safetensors", tensors), specs::vit_checkpoint), tensors,
                [](const std::string &name) { return name; });
}

std::vector<Stored> llamaTensors() {
  std::vector<Stored> tensors{{"model.embed_tokens.weight", {512, 128}, "BF16"},
                              {"model.norm.weight", {128}, "BF16"},
                              {"lm_head.weight", {512, 128}, "BF16"}};
  for (int i = 0; i < 4; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    for (const char *norm : {"input_layernorm", "post_attention_layernorm"})
      tensors.push_back({layer + norm + ".weight", {128}, "BF16"});
    for (auto [name, out, in] : {std::tuple{"self_attn.q_proj", 128, 128},
                                 {"self_attn.k_proj", 32, 128},
                                 {"self_attn.v_proj", 32, 128},
                                 {"self_attn.o_proj", 128, 128},
                                 {"mlp.gate_proj", 352, 128},
                                 {"mlp.up_proj", 352, 128},
                                 {"mlp.down_proj", 128, 352}})
      tensors.push_back({layer + name + ".weight", {out, in}, "BF16"});
    tensors.push_back({layer + "self_attn.rotary_emb.inv_freq", {8}});
  }
  return tensors;
}

// Two files, and an index that maps tensors to files.
TEST(Checkpoint, OfLlamaInSeveralFiles) {
  const Folder folder;
  const std::vector<Stored> tensors = llamaTensors();
  const std::vector<Stored> parts[] = {{tensors.begin(), tensors.begin() + 17}, {tensors.begin() + 17, tensors.end()}};
  std::string index = "{\"metadata\": {\"total_size\": 1234}, \"weight_map\": {";
  for (int i = 0; i < 2; ++i) {
    const std::string file = "model-0000" + std::to_string(i + 1) + "-of-00002.safetensors";
    folder.write(file, parts[i]);
    for (const Stored &tensor : parts[i])
      index += (index.back() == '{' ? "\"" : ", \"") + tensor.name + "\": \"" + file + "\"";
  }
  const std::string path = folder.write("model.safetensors.index.json", index + "}}\n");
  const auto library = KILN_TEST_LIBRARY(llama, LLAMA_WEIGHTS);
  expectWeights(library, load_checkpoint(path, specs::llama_checkpoint), tensors,
                [](const std::string &name) { return name; });
}

// One tensor for three projections, and matrices [in, out] for [out, in]: each part has its rows.
TEST(Checkpoint, SplitsAndTransposes) {
  const Folder folder;
  const Stored joined{"a.qkv.weight", {6, 4}}, swapped{"b.qkv.weight", {4, 6}}, bias{"a.qkv.bias", {6}};
  const std::vector<Rule> rules{{"a.qkv.*", {"q.*", "k.*", "v.*"}}, {"b.qkv.*", {"Q.*", "K.*", "V.*"}, true}};
  const auto image = load_checkpoint(folder.write("model.safetensors", {joined, swapped, bias}), rules);
  std::uint64_t size;
  std::memcpy(&size, image.data(), sizeof size);
  const support::Json header =
      support::JsonReader(std::string_view(reinterpret_cast<const char *>(image.data()) + sizeof size, size)).read();
  ASSERT_EQ(header.members.size(), 9u);
  auto value = [&](const std::string &name, std::size_t i) {
    float result;
    std::memcpy(&result,
                image.data() + sizeof size + size + header.at(name).at("data_offsets").items[0].number() + 4 * i, 4);
    return result;
  };
  for (std::int64_t part = 0; part < 3; ++part)
    for (std::int64_t row = 0; row < 2; ++row) {
      EXPECT_EQ(value(std::string(1, "qkv"[part]) + ".bias", row), bias.value(part * 2 + row));
      for (std::int64_t column = 0; column < 4; ++column) {
        EXPECT_EQ(value(std::string(1, "qkv"[part]) + ".weight", row * 4 + column),
                  joined.value((part * 2 + row) * 4 + column));
        EXPECT_EQ(value(std::string(1, "QKV"[part]) + ".weight", row * 4 + column),
                  swapped.value(column * 6 + part * 2 + row));
      }
    }
}

/// Returns the status and the message of binding a checkpoint.
std::pair<kiln_status_t, std::string> bound(const std::vector<std::byte> &image) {
  const auto library = gpt2();
  gpt2_tiny_t *handle = nullptr;
  kiln_error_t error{};
  EXPECT_EQ(library.create(nullptr, &handle, &error), KILN_OK);
  const kiln_status_t status = library.bind(handle, image.data(), image.size(), &error);
  library.destroy(handle);
  return {status, error.message};
}

TEST(Checkpoint, LacksATensorOrHasAnotherOrOfAnotherShape) {
  const Folder folder;
  auto load = [&](const std::vector<Stored> &tensors) {
    return bound(load_checkpoint(folder.write("model.safetensors", tensors), specs::gpt2_checkpoint));
  };
  std::vector<Stored> tensors = gpt2Tensors("transformer.");
  tensors.erase(tensors.begin() + 3);
  auto [missing, missingWords] = load(tensors);
  EXPECT_EQ(missing, KILN_WEIGHT_MISSING);
  EXPECT_NE(missingWords.find("h.0.ln_1.bias"), missingWords.npos) << missingWords;
  tensors = gpt2Tensors("transformer.");
  tensors.push_back({"transformer.h.0.adapter.weight", {4, 4}});
  auto [extra, extraWords] = load(tensors);
  EXPECT_EQ(extra, KILN_WEIGHT_UNEXPECTED);
  EXPECT_NE(extraWords.find("h.0.adapter.weight"), extraWords.npos) << extraWords;
  tensors = gpt2Tensors("transformer.");
  tensors[0].shape = {68, 48};
  auto [shape, shapeWords] = load(tensors);
  EXPECT_EQ(shape, KILN_WEIGHT_SHAPE);
  EXPECT_NE(shapeWords.find("wte.weight"), shapeWords.npos) << shapeWords;
}

void expectRefused(const std::string &path, const std::vector<Rule> &rules, const std::string &words) {
  try {
    load_checkpoint(path, rules);
    ADD_FAILURE() << "was accepted, not refused with " << words;
  } catch (const std::runtime_error &error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(Checkpoint, IsRefusedWithWords) {
  const Folder folder;
  expectRefused("/nonexistent/model.safetensors", {}, "cannot read \"/nonexistent/model.safetensors\"");
  expectRefused(folder.write("a.safetensors", "short"), {}, "is no safetensors file");
  expectRefused(folder.write("a.json", "{\"weight_map\": {\"a\": \"gone.safetensors\"}}"), {}, "gone.safetensors");
  expectRefused(folder.write("b.json", "{\"metadata\": {}}"), {}, "lacks \"weight_map\"");
  expectRefused(folder.write("c.json", "{\"weight_map\""), {}, "no JSON at byte");
  expectRefused(folder.write("d.json", std::string(1000000, '[')), {}, "no JSON at byte");
  const std::string two = folder.write("b.safetensors", {{"x.weight", {5, 2}}, {"y.weight", {5, 2}}});
  expectRefused(two, {{"x.*", {"z.*"}}, {"y.*", {"z.*"}}},
                "\"z.weight\": several tensors of the checkpoint have this name");
  expectRefused(two, {{"x.weight", {"p", "q"}}}, "\"x.weight\": cannot be split; expected 2 equal parts");
  expectRefused(folder.write("c.safetensors", {{"x", {2}, "I8"}}), {},
                "unsupported element type; expected F32, F16 or BF16, got I8");
}

} // namespace
} // namespace kiln::testing
