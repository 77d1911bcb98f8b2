// SPDX-License-Identifier: Apache-2.0
// `kiln new`: the projects that it writes for the cases in models/, and the errors for unsupported checkpoints.
#include "../read_file.h"
#include "kiln/frequencies.h"
#include "tools/new/New.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <sstream>

namespace kiln::newproject {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

using kiln::testing::readFile;

void writeText(const fs::path &path, const std::string &text) { std::ofstream(path, std::ios::binary) << text; }

/// Returns a safetensors file's length and header; nothing else of it is read.
std::string tensorFile(const json &header) {
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  return std::string(reinterpret_cast<const char *>(&size), sizeof size) + text;
}

/// Returns the folders of all families' cases by the cases' names.
const std::map<std::string, fs::path> &cases() {
  static const std::map<std::string, fs::path> all = [] {
    std::map<std::string, fs::path> found;
    for (const fs::directory_entry &family : fs::directory_iterator(fs::path(KILN_SOURCE) / "models")) {
      if (!fs::is_directory(family.path() / "cases"))
        continue;
      for (const fs::directory_entry &entry : fs::directory_iterator(family.path() / "cases"))
        EXPECT_TRUE(found.emplace(entry.path().filename().string(), entry.path()).second) << entry.path();
    }
    return found;
  }();
  return all;
}

/// A modifiable copy of a case's checkpoint, and a folder for its project.
class Checkpoint {
public:
  explicit Checkpoint(const std::string &name) {
    std::string path = ::testing::TempDir() + "kiln-new-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    root = path;
    options.folder = root / name;
    options.out = root / "project";
    options.source = KILN_SOURCE;
    fs::copy(cases().at(name), options.folder);
    config = json::parse(readFile(options.folder / "config.json"));
    std::ifstream lines(options.folder / "tensors.txt");
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string tensor, type;
      words >> tensor >> type;
      header[tensor] = {{"dtype", "F32"}, {"shape", json::array()}, {"data_offsets", {0, 0}}};
      for (std::int64_t extent; words >> extent;)
        header[tensor]["shape"].push_back(extent);
    }
    write("model.safetensors", tensorFile(header));
  }
  ~Checkpoint() { fs::remove_all(root); }
  Checkpoint(const Checkpoint &) = delete;
  Checkpoint &operator=(const Checkpoint &) = delete;

  void write(const std::string &file, const std::string &text) const { writeText(options.folder / file, text); }
  std::string project(const std::string &file) const { return readFile(options.out / file); }

  /// Returns the output for the user: notes, or the error message.
  std::string create(const json &change = json::object()) {
    json changed = config;
    changed.merge_patch(change);
    write("config.json", changed.dump());
    return createAsItIs();
  }
  std::string createAsItIs() {
    try {
      std::string words;
      for (const std::string &note : createProject(options))
        words += note + "\n";
      return words;
    } catch (const Refusal &refusal) {
      return std::string("refused: ") + refusal.what();
    }
  }

  fs::path root;
  Options options;
  json config, header;
};

TEST(New, WritesASpec) {
  Checkpoint checkpoint("qwen3");
  EXPECT_EQ(checkpoint.create(), "");
  EXPECT_EQ(checkpoint.project("spec.cpp"), R"(// SPDX-License-Identifier: Apache-2.0
//
// The model of "qwen3", by its config.json.
#include "llama.h"
#include <kiln/generator.h>

inline constexpr llama::Shape shape{
    .vocabulary = 67,
    .layers = 2,
    .width = 32,
    .heads = 4,
    .key_value_heads = 2,
    .hidden = 48,
    .context = 64,
    .head = 16,
    .is_tied = true,
    .has_qk_norm = true,
    .base = 1000000,
    .epsilon = 1e-06,
};

using Model = llama::Writer<shape>;
KILN_MODEL(qwen3, Model)
)");
  const std::string config = checkpoint.project("config.h"), renames = checkpoint.project("checkpoint.h");
  EXPECT_NE(config.find("  check.number(\"hidden_size\", 32);\n"), config.npos) << config;
  EXPECT_NE(config.find("  check.number(\"rope_theta\", 10000, 1000000);\n"), config.npos) << config;
  EXPECT_NE(config.find("  check.at_least(\"max_position_embeddings\", 64);\n"), config.npos) << config;
  EXPECT_NE(renames.find("    {\"lm_head.weight\", {}},\n"), renames.npos) << renames;
}

// The files that docs/adding-a-model-family.md lists.
TEST(New, FindsTheFilesOfAFamily) {
  for (const fs::directory_entry &family : fs::directory_iterator(fs::path(KILN_SOURCE) / "models")) {
    if (!fs::exists(family.path() / "CMakeLists.txt"))
      continue; // files that families share
    for (const char *file : {"Reader.cpp", "cases", "oracle.py", "refusals.json"})
      EXPECT_TRUE(fs::exists(family.path() / file)) << family.path() / file;
  }
  for (const auto &[name, folder] : cases())
    for (const char *file : {"config.json", "golden.txt", "tensors.txt"})
      EXPECT_TRUE(fs::exists(folder / file)) << folder / file;
}

// All placeholders of a template are replaced, and every header that a file includes in quotes exists, except for the
// library's own.
TEST(New, WritesAllThatAProjectNeeds) {
  for (const auto &[name, folder] : cases()) {
    SCOPED_TRACE(name);
    Checkpoint checkpoint(name);
    EXPECT_EQ(checkpoint.create(), "");
    for (const fs::directory_entry &file : fs::recursive_directory_iterator(checkpoint.options.out)) {
      if (!file.is_regular_file())
        continue;
      SCOPED_TRACE(file.path());
      std::istringstream lines(readFile(file.path()));
      for (std::string line; std::getline(lines, line);) {
        EXPECT_EQ(line.find('@'), line.npos) << line;
        const std::string word = "#include \"";
        const std::string header =
            line.starts_with(word) ? line.substr(word.size(), line.rfind('"') - word.size()) : "";
        if (!header.empty() && header != name + ".hpp" && !header.starts_with("kiln/")) {
          EXPECT_TRUE(fs::exists(checkpoint.options.out / header) || fs::exists(file.path().parent_path() / header))
              << header;
        }
      }
    }
  }
  EXPECT_GE(cases().size(), 13u);
}

TEST(New, ChoosesANameAndAContext) {
  Checkpoint checkpoint("llama");
  fs::rename(checkpoint.options.folder, checkpoint.root / "2-Llama.v1");
  checkpoint.options.folder = checkpoint.root / "2-Llama.v1";
  checkpoint.options.context = 40;
  EXPECT_NE(checkpoint.create().find("texts have up to 40 tokens, of 64"), std::string::npos);
  EXPECT_EQ(checkpoint.options.name, "model_2_llama_v1");
  EXPECT_NE(checkpoint.project("spec.cpp").find("    .context = 40,\n"), std::string::npos);
}

// A context that the user gives is never reduced silently; the default one is.
TEST(New, RefusesAContextThatTheCheckpointDoesNotAllow) {
  for (const auto &[name, most] :
       {std::pair("llama", 64), {"mistral", 32}, {"phi", 64}, {"gpt2", 0}, {"roberta", 0}, {"t5", 512}}) {
    SCOPED_TRACE(name);
    Checkpoint checkpoint(name);
    checkpoint.options.context = 99999;
    checkpoint.options.hasContext = true;
    const std::string words = checkpoint.create(), beginning = "refused: --context: too large; expected at most ";
    EXPECT_EQ(words.find(beginning + (most ? std::to_string(most) + ", which the checkpoint allows, got 99999" : "")),
              0u)
        << words;
    checkpoint.options.hasContext = false;
    EXPECT_EQ(checkpoint.create().find("--context: too large"), std::string::npos);
  }
}

// Within a sliding window each token sees all previous ones, so the context is limited to the window.
TEST(New, KeepsWithinASlidingWindow) {
  Checkpoint checkpoint("mistral");
  checkpoint.create();
  EXPECT_NE(checkpoint.project("spec.cpp").find("    .context = 32,\n"), std::string::npos);
}

/// Returns the value of a member of the spec's shape, or "" if there is none.
std::string memberOf(const Checkpoint &checkpoint, const std::string &name) {
  const std::string spec = checkpoint.project("spec.cpp"), word = "    ." + name + " = ";
  const std::size_t at = spec.find(word);
  return at == spec.npos ? "" : spec.substr(at + word.size(), spec.find(",\n", at) - at - word.size());
}

// tests/dsl/frequencies_test.cpp computes frequencies; here they are those of an oracle.
// oracle: PyTorch's, in frequencies.txt.
TEST(New, ScalesPositions) {
  auto expectFrequencies = [](const char *name, const std::string &scaling, const kiln::Frequencies<16> &ours) {
    SCOPED_TRACE(name);
    Checkpoint checkpoint(name);
    EXPECT_EQ(checkpoint.create(), "");
    EXPECT_EQ(memberOf(checkpoint, "base"), "100");
    EXPECT_EQ(memberOf(checkpoint, "scaling"), scaling);
    std::ifstream wanted(checkpoint.options.folder / "frequencies.txt");
    for (double frequency : ours.values) {
      double number = 0;
      ASSERT_TRUE(wanted >> number);
      EXPECT_NEAR(frequency, number, 1e-12 * number);
    }
  };
  const auto plain = kiln::frequencies<16>(100);
  expectFrequencies("llama3", "kiln::llama3_scaling(8, 64, 1, 4)", plain.scaled(kiln::llama3_scaling(8, 64, 1, 4)));
  expectFrequencies("yarn", "kiln::yarn_scaling(4, 64, {.beta_fast = 4})",
                    plain.scaled(kiln::yarn_scaling(4, 64, {.beta_fast = 4})));
  Checkpoint linear("llama3");
  linear.create(json::parse(R"({"rope_scaling": null, "rope_parameters": {"rope_theta": 100, "rope_type": "linear",
                                "factor": 4}})"));
  EXPECT_EQ(memberOf(linear, "scaling"), "kiln::linear_scaling(4)");
}

// YaRN supports longer texts than max_position_embeddings, which checkpoints leave unchanged.
TEST(New, ReadsYarn) {
  Checkpoint yarn("yarn");
  EXPECT_EQ(yarn.create(), "");
  EXPECT_EQ(memberOf(yarn, "context"), "256");
  EXPECT_NE(yarn.project("config.h").find("check.at_least(\"max_position_embeddings\", 64);"), std::string::npos);
  auto scale = [](const char *change) {
    Checkpoint checkpoint("yarn");
    EXPECT_EQ(checkpoint.create({{"rope_scaling", json::parse(change)}}), "");
    return memberOf(checkpoint, "scaling");
  };
  EXPECT_EQ(scale(R"({"attention_factor": 1.25})"),
            "kiln::yarn_scaling(4, 64, {.beta_fast = 4, .attention_factor = 1.25})");
  // Each cancels the other.
  EXPECT_EQ(scale(R"({"mscale": 0.7, "mscale_all_dim": 0.7, "truncate": false})"),
            "kiln::yarn_scaling(4, 64, {.beta_fast = 4, .attention_factor = 1, .truncates = false})");
  const std::string both = scale(R"({"mscale": 2, "mscale_all_dim": 1, "beta_fast": 32})"),
                    beginning = "kiln::yarn_scaling(4, 64, {.attention_factor = ";
  ASSERT_EQ(both.find(beginning), 0u) << both;
  EXPECT_NEAR(std::stod(both.substr(beginning.size())), (0.2 * std::log(4) + 1) / (0.1 * std::log(4) + 1), 1e-15);
}

// Scaling that begins after the training length changes nothing within it.
TEST(New, KeepsWithinDynamicScaling) {
  Checkpoint checkpoint("llama");
  EXPECT_EQ(checkpoint.create(json::parse(R"({"rope_scaling": {"type": "dynamic", "factor": 2.0}})")), "");
  EXPECT_EQ(memberOf(checkpoint, "context"), "64");
  EXPECT_EQ(memberOf(checkpoint, "scaling"), "");
}

// As in newer files.
TEST(New, ReadsPositionsOfPhi) {
  Checkpoint checkpoint("phi");
  EXPECT_EQ(checkpoint.create(json::parse(R"({"partial_rotary_factor": null, "rope_theta": null,
                "rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 5000, "rope_type": "default"}})")),
            "");
  EXPECT_EQ(memberOf(checkpoint, "turned"), "2");
  EXPECT_EQ(memberOf(checkpoint, "base"), "5000");
}

TEST(New, ReadsHowTextsArePooled) {
  Checkpoint checkpoint("minilm");
  fs::create_directory(checkpoint.options.folder / "1_Pooling");
  checkpoint.write("1_Pooling/config.json", R"({"word_embedding_dimension": 32, "pooling_mode_cls_token": true,
                   "pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": false})");
  EXPECT_EQ(checkpoint.create(), "");
  EXPECT_NE(checkpoint.project("spec.cpp").find("TextEmbedding<shape, specs::Pooling::first, true>"),
            std::string::npos);
  Checkpoint maximum("minilm");
  fs::create_directory(maximum.options.folder / "1_Pooling");
  maximum.write("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})");
  EXPECT_EQ(maximum.create(), "refused: config.json: pooling_mode_max_tokens: wrong value; expected false, got true");
}

// Class names become C++ string literals.
TEST(New, WritesNamesOfClasses) {
  Checkpoint checkpoint("roberta");
  EXPECT_EQ(checkpoint.create(json::parse(R"({"id2label": {"0": "a \"b\"\\", "1": "\u0001\ud83d\ude00", "2": 5}})")),
            "");
  const std::string program = checkpoint.project("main.cpp"),
                    names = "    \"a \\\"b\\\"\\\\\",\n    \" \U0001F600\",\n    \"class 2\",\n};";
  EXPECT_NE(program.find(names), program.npos) << program;
}

struct NearMiss {
  std::string name; // of the case
  json change;
  std::string words; // expected in the error message
};

/// Returns the near misses of all families, and those of each, from its refusals.json.
std::vector<NearMiss> nearMisses() {
  std::vector<NearMiss> all{
      {"gpt2", json::parse(R"({"model_type": "gtp2"})"), "config.json: model_type: wrong value; expected one of "},
      {"gpt2", json::parse(R"({"model_type": "gtp2"})"), ", got \"gtp2\"; near: gpt2"},
      {"gpt2", json::parse(R"({"model_type": null})"), "config.json: model_type: wrong value; expected one of "},
      {"gpt2", json::parse(R"({"model_type": 7})"), ", got 7"},
  };
  for (const fs::directory_entry &family : fs::directory_iterator(fs::path(KILN_SOURCE) / "models"))
    if (const fs::path file = family.path() / "refusals.json"; fs::exists(file))
      for (const json &miss : json::parse(readFile(file)))
        all.push_back({miss.at("case"), miss.at("change"), miss.at("message")});
  return all;
}

TEST(New, SaysWhatItCannotBuild) {
  const std::vector<NearMiss> all = nearMisses();
  EXPECT_GE(all.size(), 60u);
  for (const NearMiss &miss : all) {
    SCOPED_TRACE(miss.name + " " + miss.change.dump());
    Checkpoint checkpoint(miss.name);
    const std::string words = checkpoint.create(miss.change);
    EXPECT_TRUE(words.starts_with("refused: ")) << words;
    EXPECT_NE(words.find(miss.words), words.npos) << words;
    EXPECT_FALSE(fs::exists(checkpoint.options.out));
  }
}

// Fields in the files of SmolLM, of distilled Qwen, and of BERT for named entities.
TEST(New, KnowsFieldsThatChangeNothing) {
  for (const auto &[name, fields] :
       {std::pair{"llama", R"({"is_llama_config": true, "rope_interleaved": false, "unsloth_fixed": true,
                               "transformers.js_config": {"kv_cache_dtype": {"fp16": "float16"}}})"},
        {"qwen2", R"({"use_mrope": false, "max_length": 20, "repetition_penalty": 1.0})"},
        {"bert", R"({"_num_labels": 9, "xla_device": null, "use_bfloat16": false, "output_attentions": false})"}}) {
    Checkpoint checkpoint(name);
    EXPECT_EQ(checkpoint.create(json::parse(fields)), "");
  }
  EXPECT_NE(
      Checkpoint("qwen2").create(json::parse(R"({"use_mrope": true})")).find("use_mrope: wrong value; expected false"),
      std::string::npos);
}

TEST(New, LeavesOutAKeyIfAskedTo) {
  Checkpoint checkpoint("gpt2");
  checkpoint.options.ignored = {"n_embed"};
  EXPECT_EQ(checkpoint.create(json::parse(R"({"n_embed": 32})")), "");
  Checkpoint misspelt("gpt2");
  misspelt.options.ignored = {"n_embde"};
  EXPECT_EQ(misspelt.create(json::parse(R"({"n_embed": 32})")),
            "refused: --ignore n_embde: config.json has no such key; near: n_embd, n_embed");
}

TEST(New, SaysWhatIsWrongWithFiles) {
  auto words = [](const std::function<void(Checkpoint &)> &change) {
    Checkpoint checkpoint("gpt2");
    change(checkpoint);
    return checkpoint.createAsItIs();
  };
  auto expect = [&](const std::string &wanted, const std::function<void(Checkpoint &)> &change) {
    const std::string got = words(change);
    EXPECT_TRUE(got.starts_with("refused: ") && got.find(wanted) != got.npos) << got << "\nwanted: " << wanted;
  };
  expect("checkpoint \"/nonexistent\": not found; expected a directory",
         [](Checkpoint &c) { c.options.folder = "/nonexistent"; });
  expect("config.json\"", [](Checkpoint &c) { fs::remove(c.options.folder / "config.json"); });
  for (const std::string &text : {std::string(), std::string("{\"n_layer\": "), std::string(100000, '['),
                                  std::string("{\"a\": \"\xff\"}"), std::string("\0\1", 2)})
    expect("config.json: no JSON", [&](Checkpoint &c) { c.write("config.json", text); });
  expect("config.json: no JSON object; expected one", [](Checkpoint &c) { c.write("config.json", "[1, 2]"); });
  expect("has no model.safetensors", [](Checkpoint &c) { fs::remove(c.options.folder / "model.safetensors"); });
  expect("pytorch_model.bin is not read: save the model as safetensors", [](Checkpoint &c) {
    fs::rename(c.options.folder / "model.safetensors", c.options.folder / "pytorch_model.bin");
  });
  const std::string huge(8, '\xff'), cut = tensorFile({{"a", 1}}).substr(0, 11);
  for (const std::string &bytes : {std::string(), std::string("short"), huge, cut})
    expect("model.safetensors\" is no safetensors file", [&](Checkpoint &c) { c.write("model.safetensors", bytes); });
  expect("model.safetensors\": a pointer of git-lfs; expected a safetensors file, which `git lfs pull` gets",
         [](Checkpoint &c) {
           c.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n");
         });
  expect("its header is no JSON object", [](Checkpoint &c) { c.write("model.safetensors", tensorFile({1, 2})); });
  expect("model.safetensors: \"a\" has no shape",
         [](Checkpoint &c) { c.write("model.safetensors", tensorFile({{"a", {{"dtype", "F32"}}}})); });
  expect("model-00001-of-00002.safetensors", [](Checkpoint &c) {
    c.write("model.safetensors.index.json", R"({"weight_map": {"a": "model-00001-of-00002.safetensors"}})");
  });
  expect("weight_map: wrong value; expected names of files, got 5",
         [](Checkpoint &c) { c.write("model.safetensors.index.json", R"({"weight_map": {"a": 5}})"); });
  expect("weight_map: wrong value; expected tensors with their files, got {}",
         [](Checkpoint &c) { c.write("model.safetensors.index.json", R"({"weight_map": {}})"); });
  for (const char *name : {"9lives", "my-model", "support", "kiln"})
    expect("--name: no identifier, or taken; expected an identifier", [&](Checkpoint &c) { c.options.name = name; });
  expect(": exists already; expected no file or an empty directory", [](Checkpoint &c) {
    fs::create_directory(c.options.out);
    writeText(c.options.out / "mine", "");
  });
  expect("cannot make \"/proc/nowhere/project\"", [](Checkpoint &c) { c.options.out = "/proc/nowhere/project"; });
  expect("the installation of Kiln may be incomplete", [](Checkpoint &c) { c.options.source = "/nonexistent"; });
}

// A checkpoint with several files.
TEST(New, ReadsAnIndex) {
  Checkpoint checkpoint("gpt2");
  json parts[2], map;
  std::size_t number = 0;
  for (const auto &[tensor, entry] : checkpoint.header.items()) {
    const std::size_t part = number++ % 2;
    parts[part][tensor] = entry;
    map[tensor] = part ? "b.safetensors" : "a.safetensors";
  }
  fs::remove(checkpoint.options.folder / "model.safetensors");
  checkpoint.write("a.safetensors", tensorFile(parts[0]));
  checkpoint.write("b.safetensors", tensorFile(parts[1]));
  checkpoint.write("model.safetensors.index.json", json{{"weight_map", map}}.dump());
  EXPECT_EQ(checkpoint.create(), "");
}

} // namespace
} // namespace kiln::newproject
