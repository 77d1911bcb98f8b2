// SPDX-License-Identifier: Apache-2.0
//
// The digest of a packed file depends on everything that determines its layout, and on nothing else. Packing of
// quantised checkpoints, with a file of tensor names.
#include "compiler/package/PackWeights.h"
#include "tests/runtime/third_party_files.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <set>

namespace kiln {
namespace {

struct Packable {
  ModelInterface model;
  Variant variant;

  Packable() {
    model.name = "model";
    model.weights = {{"h.{}.w", ElementType::f32, {30, 20}, 3, {}, false}, {"b", ElementType::f32, {30}, 1, {}, false}};
    variant.target = "x86-64-v3";
    variant.placements = {{0, 960, 16, 0, 0, ElementType::i8, 640}, {2880, 128, 0, 0, 0, ElementType::f32, 0}};
    variant.packedBytes = 3008;
  }
  std::array<uint64_t, 4> digest() const { return packedDigest(model, variant); }
};

TEST(PackedDigest, ChangesWithAllThatBindingDependsOn) {
  const std::function<void(Packable &)> changes[] = {
      [](Packable &) {},
      [](Packable &p) { p.model.name = "models"; },
      [](Packable &p) { p.variant.target = "x86-64-v4"; },
      [](Packable &p) { p.variant.packedBytes += 64; },
      [](Packable &p) { p.model.weights[0].name = "h.{}.v"; },
      [](Packable &p) { p.model.weights[0].element = ElementType::bf16; },
      [](Packable &p) { p.model.weights[0].shape = {20, 30}; },
      [](Packable &p) { p.model.weights[0].shape = {3, 0, 20}; },
      [](Packable &p) { p.model.weights[0].copies = 2; },
      [](Packable &p) { p.variant.placements[0].offset = 64; },
      [](Packable &p) { p.variant.placements[0].stride = 1024; },
      [](Packable &p) { p.variant.placements[0].tile = 48; },
      [](Packable &p) { p.variant.placements[0].dim = 1; },
      [](Packable &p) { p.variant.placements[0].shift = 2; },
      [](Packable &p) { p.variant.placements[0].element = ElementType::f16; },
      [](Packable &p) { p.variant.placements[0].scales = 704; },
      [](Packable &p) { p.variant.placements[0].group = 32; },
      [](Packable &p) { p.variant.placements[0].zeros = 800; },
      [](Packable &p) { std::swap(p.model.weights[0], p.model.weights[1]); },
      [](Packable &p) {
        p.model.weights.pop_back();
        p.variant.placements.pop_back();
      },
  };
  std::set<std::array<uint64_t, 4>> digests;
  for (const auto &change : changes) {
    Packable changed;
    change(changed);
    EXPECT_TRUE(digests.insert(changed.digest()).second) << "of change " << &change - changes;
  }
}

TEST(PackedDigest, IsOfNothingElse) {
  Packable changed;
  changed.variant.kernels.emplace_back().symbol = "tuned";
  changed.variant.entries.push_back({"forward", 1, 2, 3, 4});
  changed.variant.features = 7;
  changed.model.weights[0].isVariable = true;
  EXPECT_EQ(changed.digest(), Packable().digest());
}

/// Packs a model with a matrix and a vector, stored unchanged. Returns the error message and the bytes.
std::pair<std::string, std::string> packed(const std::string &file, const std::string &image,
                                           const std::string &renames, const std::string &quantization = "") {
  Packable p;
  p.model.weights = {{"w", ElementType::f32, {8, 64}, 1, {}, false}, {"b", ElementType::f32, {3}, 1, {}, false}};
  p.variant.placements = {{0, 0, 0, 0, 0, ElementType::f32, 0}, {2048, 0, 0, 0, 0, ElementType::f32, 0}};
  p.variant.packedBytes = 2060;
  const std::string folder = ::testing::TempDir() + "pack" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/" + file, std::ios::binary) << image;
  std::ofstream(folder + "/names") << renames;
  llvm::Error error =
      packWeights(p.model, p.variant, {folder + "/" + file, quantization, folder + "/names", {}}, folder + "/out");
  std::string words = error ? llvm::toString(std::move(error)) : "";
  std::ifstream out(folder + "/out", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(out), {}};
  std::filesystem::remove_all(folder);
  return {words.find(folder) == words.npos ? words : words.replace(words.find(folder), folder.size(), "FOLDER"), bytes};
}

TEST(PackWeights, OfAGgufFile) {
  using namespace kiln_test;
  const Numbers matrix = drawGguf(Q8_0, 8, 64, 1), vector = drawGguf(GgufF32, 1, 3, 2);
  const std::string image = makeGguf({{"blk.attn_q", {64, 8}, Q8_0, matrix.Bytes},
                                      {"bias", {3}, GgufF32, vector.Bytes},
                                      {"none", {2}, GgufF32, std::string(8, '\0')},
                                      {"other", {1}, 99, "?"}});
  auto [words, bytes] = packed("m.gguf", image, "# names\nblk.* w\n\nbias b # the vector\nnone =0\nother\n");
  EXPECT_EQ(words, "");
  EXPECT_EQ(bytes.substr(4096, 2060), bytesOf(matrix.Values) + bytesOf(vector.Values));
  // Two heads with interleaved rows: 0 2 1 3 of each.
  std::vector<float> turned;
  for (int row : {0, 2, 1, 3, 4, 6, 5, 7})
    turned.insert(turned.end(), matrix.Values.begin() + row * 64, matrix.Values.begin() + (row + 1) * 64);
  std::tie(words, bytes) = packed("m.gguf", image, "blk.attn_q w 2\nbias b\nnone\nother\n");
  EXPECT_EQ(words, "");
  EXPECT_EQ(bytes.substr(4096, 2048), bytesOf(turned));

  EXPECT_EQ(packed("m.gguf", image, "blk.* w\nbias\nnone\nother\n").first,
            "file \"m.gguf\": tensor \"b\": not found; expected shape [3] and type F32, F16 or BF16");
  for (const char *line : {"a b c", "a b 2 3", "a =0 2", "a b -1"})
    EXPECT_EQ(packed("m.gguf", image, std::string("x y\n") + line).first,
              std::string(
                  "line 2 of \"FOLDER/names\": wrong form; expected FROM, FROM TO, FROM TO HEADS or FROM =0, got \"") +
                  line + "\"");
}

TEST(PackWeights, OfGptqAndAwq) {
  using namespace kiln_test;
  const Int4Matrix matrix(8, 64, 32, 3);
  const std::vector<float> vector = {1, 2, 3};
  for (const auto &[quantization, tensors] :
       {std::pair{"gptq", matrix.gptq("m")}, {"gptq_v2", matrix.gptq("m", 0)}, {"awq", matrix.awq("m")}}) {
    std::vector<kiln_test::Tensor> all = tensors;
    all.push_back({"b", "F32", {3}, bytesOf(vector)});
    const auto [words, bytes] = packed("m.safetensors", imageOf(all), "m.weight w\n", quantization);
    EXPECT_EQ(words, "");
    EXPECT_EQ(bytes.substr(4096, 2060), bytesOf(matrix.values()) + bytesOf(vector)) << quantization;
  }
}

} // namespace
} // namespace kiln
