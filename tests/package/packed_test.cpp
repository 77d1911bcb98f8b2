// SPDX-License-Identifier: Apache-2.0
// Packed files of generated libraries: `pack` writes what the library itself would save, and models that map the file
// give the same bits. Checkpoints of several files work in the same way.
#include "command.h"
#include "pair.hpp"
#include "support.h"
#include "two_models.h"

#include <algorithm>
#include <cstring>

namespace kiln::testing {
namespace {

const std::string smallProgram = SMALL_GENERATOR, pairProgram = PAIR_GENERATOR, kilnProgram = KILN_PROGRAM,
                  sources = PACKAGE_FOLDER;

Library<small_t> smallLibrary() { return KILN_TEST_LIBRARY(small, SMALL_WEIGHTS); }
Library<pair_t> pairLibrary() { return KILN_TEST_LIBRARY(pair, PAIR_WEIGHTS); }

void write(const fs::path &path, std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void write(const fs::path &path, const std::vector<Weight> &weights) {
  WeightImage image(weights);
  write(path, {image.characters().data(), image.size()});
}

/// Writes the weights in two files with an index; returns the index's path.
fs::path writeCheckpoint(const fs::path &folder, const std::vector<Weight> &weights) {
  const char *const names[] = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
  std::vector<Weight> parts[2];
  std::string map;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    parts[i % 2].push_back(weights[i]);
    map += (map.empty() ? "\"" : ", \"") + weights[i].name + "\": \"" + names[i % 2] + "\"";
  }
  for (int i = 0; i < 2; ++i)
    write(folder / names[i], parts[i]);
  const fs::path index = folder / "model.safetensors.index.json";
  write(index, "{\"metadata\": {\"total_size\": 0}, \"weight_map\": {" + map + "}}");
  return index;
}

std::string targetOf(const small_t *model) { return small_target(model); }

TEST(PackedFiles, OfTheGeneratorAreThoseOfTheLibrary) {
  Folder folder;
  const std::vector<Weight> weights = counterWeights(smallLibrary().weights);
  write(folder.path / "w.safetensors", weights);
  const fs::path index = writeCheckpoint(folder.path, weights), saved = folder.path / "saved";
  Session<small_t> session(smallLibrary());
  kiln_error_t error{};
  ASSERT_EQ(small_save_packed(session.get(), saved.c_str(), &error), KILN_OK) << error.message;
  const std::string wanted = readFile(saved);
  EXPECT_EQ(wanted.size(), 4096 + SMALL_WEIGHT_BYTES);
  EXPECT_EQ(targetOf(session.get()), KILN_V2);
  const fs::path packed = folder.path / "small." KILN_V2 ".packed";
  const std::string generator = smallProgram + " pack ",
                    options = " -o " + folder.path.string() + " --target " KILN_V2 " ";
  for (const std::string &command :
       {generator + (folder.path / "w.safetensors").string() + options, generator + options + index.string(),
        kilnProgram + " pack " + sources + "/small.cpp" + options + index.string()}) {
    SCOPED_TRACE(command);
    fs::remove(packed);
    const Result result = run(command);
    ASSERT_EQ(result.status, 0) << result.text;
    EXPECT_EQ(result.text, packed.string() + ": 0.01 MiB\n");
    EXPECT_TRUE(readFile(packed) == wanted) << "other bytes than the library's own";
  }
}

TEST(PackedFiles, GiveTheSameBits) {
  Folder folder;
  const std::vector<Weight> weights = counterWeights(smallLibrary().weights);
  const fs::path index = writeCheckpoint(folder.path, weights), saved = folder.path / "saved";
  Session<small_t> bound(smallLibrary()), mapped(smallLibrary()), ofIndex(smallLibrary());
  const std::vector<float> wanted = logits(bound, 12);
  kiln_error_t error{};
  ASSERT_EQ(small_save_packed(bound.get(), saved.c_str(), &error), KILN_OK) << error.message;
  const std::string bytes = readFile(saved);
  // The file's weights replace existing ones.
  for (Session<small_t> *session : {&mapped, &ofIndex}) {
    for (const Weight &weight : weights)
      if (weight.name.starts_with("layers.")) {
        const std::vector<float> zeros(weight.values.size());
        const std::uint64_t rows = static_cast<std::uint64_t>(weight.shape[0]);
        ASSERT_EQ(small_write_weight(session->get(), weight.name.c_str(), 0, rows, zeros.data(), &error), KILN_OK);
      }
    EXPECT_NE(logits(*session, 12), wanted);
  }
  ASSERT_EQ(small_bind_packed(mapped.get(), saved.c_str(), &error), KILN_OK) << error.message;
  EXPECT_EQ(logits(mapped, 12), wanted);
  ASSERT_EQ(small_bind_weights(ofIndex.get(), index.c_str(), &error), KILN_OK) << error.message;
  EXPECT_EQ(logits(ofIndex, 12), wanted);
  // Written rows are stored in the model's memory, not in the file.
  const std::vector<float> row(8, 0.5f);
  ASSERT_EQ(small_write_weight(mapped.get(), "words.weight", 3, 1, row.data(), &error), KILN_OK) << error.message;
  EXPECT_NE(logits(mapped, 12), wanted);
  EXPECT_EQ(readFile(saved), bytes);
}

TEST(PackedFiles, OfOtherLibrariesAreRefused) {
  Folder folder;
  write(folder.path / "w.safetensors", counterWeights(pairLibrary().weights));
  const std::string weights = (folder.path / "w.safetensors").string(), to = " -o " + folder.path.string();
  Session<pair_t> session(pairLibrary());
  const std::vector<float> wanted = codes(session, 9);
  kiln_error_t error{};
  for (const char *other : {"x86-64-v4 ", KILN_V3 " "})
    ASSERT_EQ(run(pairProgram + " pack --target " + other + weights + to).status, 0) << other;
  const fs::path v4 = folder.path / "pair.x86-64-v4.packed", v3 = folder.path / "pair." KILN_V3 ".packed";
  EXPECT_EQ(pair_bind_packed(session.get(), v3.c_str(), &error), KILN_FILE_MISMATCH);
  EXPECT_STREQ(error.message, "file \"pair." KILN_V3
                              ".packed\": packed file: built for another target; expected " KILN_V2 ", got " KILN_V3);
  EXPECT_EQ(pair_bind_packed(session.get(), v4.c_str(), &error), KILN_FILE_MISMATCH);
  EXPECT_STREQ(error.message, "file \"pair.x86-64-v4.packed\": packed file: built for another target; expected " KILN_V2
                              ", got x86-64-v4");

  const fs::path v2 = folder.path / "pair." KILN_V2 ".packed";
  ASSERT_EQ(run(pairProgram + " pack --weights f16 --target " KILN_V2 " " + weights + to).status, 0);
  EXPECT_EQ(pair_bind_packed(session.get(), v2.c_str(), &error), KILN_FILE_MISMATCH);
  EXPECT_STREQ(error.message, "file \"pair." KILN_V2 ".packed\": packed file: built for another library; expected "
                              "weights as this library of \"pair\" stores them");
  ASSERT_EQ(run(pairProgram + " pack --name peer --target " KILN_V2 " " + weights + to).status, 0);
  EXPECT_EQ(pair_bind_packed(session.get(), (folder.path / "peer." KILN_V2 ".packed").c_str(), &error),
            KILN_FILE_MISMATCH);
  EXPECT_STREQ(error.message,
               "file \"peer." KILN_V2 ".packed\": packed file: built for another model; expected \"pair\", "
               "got \"peer\"");
  EXPECT_EQ(codes(session, 9), wanted);

  pair::Model model;
  ASSERT_EQ(run(pairProgram + " pack --target " KILN_V2 " " + weights + to).status, 0);
  ASSERT_EQ(model.bind_packed(v2.c_str(), &error), KILN_OK) << error.message;
  EXPECT_STREQ(model.target(), KILN_V2);
  EXPECT_EQ(pair_bind_packed(session.get(), v2.c_str(), &error), KILN_OK) << error.message;
  EXPECT_EQ(codes(session, 9), wanted);
  const fs::path again = folder.path / "again";
  ASSERT_EQ(model.save_packed(again.c_str(), &error), KILN_OK) << error.message;
  EXPECT_EQ(readFile(again), readFile(v2));
}

} // namespace
} // namespace kiln::testing
