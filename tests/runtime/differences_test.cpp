// SPDX-License-Identifier: Apache-2.0
// All differences between a weight file and a model in one message: the number of each kind; the names that fit, with
// the nearest name in the file for a missing tensor. Tensors that no model needs are ignored.
#include "published/published.h"
#include "stored_numbers.h"
#include "weights/bind.h"

#include <gtest/gtest.h>

namespace {

using namespace kiln_test;

Tensor vectorOf(const std::string &name, int64_t elements, const std::string &dtype = "F32") {
  return {name, dtype, {elements}, std::string(static_cast<size_t>(elements) * (dtype == "I64" ? 8 : 4), '\0')};
}

/// A model with two weights "h.{}.w" of 3 elements, and "norm.weight" and "norm.bias" of 5.
BoundModel makeModel() {
  return {{{"h.{}.w", KILN_F32, 1, {3}, 2, 0},
           {"norm.weight", KILN_F32, 1, {5}, 1, 0},
           {"norm.bias", KILN_F32, 1, {5}, 1, 0}},
          {makePlacement(0, 64, 0, 0, 0), makePlacement(128, 0, 0, 0, 0), makePlacement(192, 0, 0, 0, 0)},
          256};
}
std::vector<Tensor> makeTensors(const std::string &prefix = "") {
  return {vectorOf(prefix + "h.0.w", 3), vectorOf(prefix + "h.1.w", 3), vectorOf(prefix + "norm.weight", 5),
          vectorOf(prefix + "norm.bias", 5)};
}

/// Returns the error message of binding these tensors, or an empty string.
std::string wordsFor(const std::vector<Tensor> &tensors, kiln_status_t wanted) {
  BoundModel model = makeModel();
  EXPECT_EQ(model.bind(tensors), wanted) << model.Error.message;
  EXPECT_EQ(model.Error.status, wanted);
  return model.Error.message;
}

TEST(Differences, OneIsSaidInFull) {
  std::vector<Tensor> tensors = makeTensors();
  tensors.erase(tensors.begin() + 1);
  EXPECT_EQ(wordsFor(tensors, KILN_WEIGHT_MISSING),
            "tensor \"h.1.w\": not found; expected shape [3] and type F32, F16 or BF16");
}

TEST(Differences, ARenamedTensorIsBoth) {
  std::vector<Tensor> tensors = makeTensors();
  tensors[2].name = "norm.gamma";
  EXPECT_EQ(wordsFor(tensors, KILN_WEIGHT_MISSING),
            "weight file: does not fit model \"stored\"; 1 missing, 1 unexpected: \"norm.weight\" missing (nearest "
            "\"norm.gamma\"), \"norm.gamma\" unexpected");
}

TEST(Differences, APrefixOfAllNames) {
  EXPECT_EQ(wordsFor(makeTensors("model."), KILN_WEIGHT_MISSING),
            "weight file: does not fit model \"stored\"; 4 missing, 4 unexpected: \"h.0.w\" missing (nearest "
            "\"model.h.0.w\"), \"model.h.0.w\" unexpected, \"h.1.w\" missing (nearest \"model.h.1.w\"), "
            "\"norm.weight\" missing (nearest \"model.norm.weight\"), and 4 more");
}

TEST(Differences, EachKindComesFirst) {
  std::vector<Tensor> tensors = makeTensors();
  tensors[0] = vectorOf("h.0.w", 4);
  tensors[1] = vectorOf("h.1.w", 4);
  tensors[2] = vectorOf("norm.weight", 5, "I64");
  tensors[3].name = "x";
  EXPECT_EQ(
      wordsFor(tensors, KILN_WEIGHT_SHAPE),
      "weight file: does not fit model \"stored\"; 1 missing, 2 of another shape, 1 of another type, 1 unexpected: "
      "\"h.0.w\" has shape [4], expected [3], \"norm.weight\" has type I64, expected F32, F16 or BF16, "
      "\"norm.bias\" missing, and 2 more");
}

// Among equally near names, the one with a matching shape is chosen; names with little in common are not suggested.
TEST(Differences, TheNearestName) {
  std::vector<Tensor> tensors = makeTensors();
  tensors[3] = vectorOf("norm.bxxs", 4);
  tensors.push_back(vectorOf("norm.byys", 5));
  EXPECT_NE(wordsFor(tensors, KILN_WEIGHT_MISSING).find("\"norm.bias\" missing (nearest \"norm.byys\")"),
            std::string::npos);
  tensors.resize(3);
  tensors.push_back(vectorOf("completely.other", 5));
  EXPECT_EQ(wordsFor(tensors, KILN_WEIGHT_MISSING).find("nearest"), std::string::npos);
}

TEST(Differences, LongNamesAndManyStayWithinAMessage) {
  std::vector<kiln_weight_t> weights;
  const std::string longest(300, 'n');
  std::vector<Tensor> tensors;
  const std::string name = longest + ".{}";
  BoundModel model({{name.c_str(), KILN_F32, 1, {3}, 5000, 0}}, {makePlacement(0, 64, 0, 0, 0)}, 5000 * 64);
  for (int i = 0; i < 5000; ++i)
    tensors.push_back(vectorOf("m" + longest + "." + std::to_string(i), 3));
  EXPECT_EQ(model.bind(tensors), KILN_WEIGHT_MISSING);
  const std::string words = model.Error.message;
  EXPECT_LT(words.size(), sizeof model.Error.message);
  EXPECT_NE(words.find("5000 missing, 5000 unexpected: \"" + longest.substr(0, KILN_NAME_SHOWN)), std::string::npos)
      << words;
  EXPECT_NE(words.find(" more"), std::string::npos) << words;
}

// PyTorch's batch norms have a batch counter, and older files contain constants that are not weights.
TEST(Differences, WhatNoModelNeedsIsLeftOut) {
  std::vector<Tensor> tensors = makeTensors();
  tensors.push_back({"norm.num_batches_tracked", "I64", {}, std::string(8, '\1')});
  tensors.push_back({"num_batches_tracked", "I64", {}, std::string(8, '\1')});
  tensors.push_back(vectorOf("bert.embeddings.position_ids", 7, "I64"));
  tensors.push_back(vectorOf("position_ids", 7));
  EXPECT_EQ(wordsFor(tensors, KILN_OK), "");
  for (const char *name : {"my_position_ids", "position_ids.weight", "xnum_batches_tracked", "osition_ids"}) {
    std::vector<Tensor> more = tensors;
    more.push_back(vectorOf(name, 7));
    EXPECT_EQ(wordsFor(more, KILN_WEIGHT_UNEXPECTED),
              "model \"stored\" has no tensor \"" + std::string(name) + "\", the weight file has");
  }
  // They are not suggested as near names either.
  tensors[3].name = "other.position_ids";
  EXPECT_EQ(wordsFor(tensors, KILN_WEIGHT_MISSING),
            "tensor \"norm.bias\": not found; expected shape [5] and type F32, F16 or BF16");
}

// A weight of such a name is bound nevertheless.
TEST(Differences, AWeightOfSuchAName) {
  BoundModel model({{"position_ids", KILN_F32, 1, {3}, 1, 0}}, {makePlacement(0, 0, 0, 0, 0)}, 12);
  EXPECT_EQ(model.bind({vectorOf("position_ids", 3)}), KILN_OK) << model.Error.message;
  EXPECT_EQ(model.bind({}), KILN_WEIGHT_MISSING);
}

// A tensor that is packed twice counts as missing once.
TEST(Differences, TiedWeightsCountOnce) {
  BoundModel model(
      {{"table", KILN_F32, 2, {3, 2}, 1, 0}, {"table", KILN_F32, 2, {3, 2}, 1, 0}, {"other", KILN_F32, 1, {1}, 1, 0}},
      {makePlacement(0, 0, 0, 0, 0), makePlacement(64, 0, 16, 0, 0), makePlacement(512, 0, 0, 0, 0)}, 576);
  EXPECT_EQ(model.bind({}), KILN_WEIGHT_MISSING);
  EXPECT_STREQ(model.Error.message,
               "weight file: does not fit model \"stored\"; 2 missing: \"table\" missing, \"other\" missing");
}

// A program may enumerate all differences, as `kiln check` does.
TEST(Differences, AreWalkedOneByOne) {
  BoundModel model = makeModel();
  std::vector<Tensor> tensors = makeTensors("model.");
  tensors[0].name = "h.0.w";
  const std::string image = makeImage(tensors);
  kiln_tensors_t table;
  ASSERT_EQ(kiln_safetensors_open(image.data(), image.size(), &model.Model->allocator, &table, nullptr), KILN_OK);
  kiln_differences_t walk;
  kiln_differences_begin(&walk, model.Model, &table);
  kiln_difference_t found;
  std::vector<std::string> words;
  while (kiln_differences_next(&walk, &found)) {
    char name[KILN_NAME_SHOWN + 1];
    words.push_back(
        std::to_string(found.kind) + " " +
        (found.weight ? kiln_name_text(found.name, name) : std::string(found.tensor->name, found.tensor->name_length)));
  }
  EXPECT_EQ(words, (std::vector<std::string>{"0 h.1.w", "0 norm.weight", "0 norm.bias", "3 model.h.1.w",
                                             "3 model.norm.bias", "3 model.norm.weight"}));
  kiln_tensors_release(&table, &model.Model->allocator);
}

// --- bind_weights_renamed

kiln_status_t bindRenamed(BoundModel &model, const std::vector<Tensor> &tensors,
                          const std::vector<kiln_rename_t> &renames) {
  const TemporaryFile file(makeImage(tensors));
  return kiln_bind_weights_renamed(model.Model, file.path(), renames.data(), renames.size(), &model.Error);
}

TEST(Renamed, TensorsAreBoundByTheModelsNames) {
  BoundModel plain = makeModel(), model = makeModel();
  std::vector<Tensor> tensors = makeTensors();
  for (size_t i = 0; i < tensors.size(); ++i)
    tensors[i].bytes[1] = static_cast<char>(i + 1);
  ASSERT_EQ(plain.bind(tensors), KILN_OK) << plain.Error.message;
  for (Tensor &tensor : tensors)
    tensor.name = "model." + tensor.name;
  tensors[2].name = "final.gamma";
  tensors.push_back(vectorOf("model.left.out", 9));
  tensors.push_back(vectorOf("model.zero", 9));
  const std::vector<kiln_rename_t> renames = {{"model.left.*", nullptr, 0, 0},
                                              {"model.zero", nullptr, 0, KILN_RENAME_ZEROS},
                                              {"final.gamma", "norm.weight", 0, 0},
                                              {"model.*", "*", 0, 0}};
  ASSERT_EQ(bindRenamed(model, tensors, renames), KILN_OK) << model.Error.message;
  EXPECT_EQ(model.packed(), plain.packed());
  tensors.back().bytes[3] = 1;
  EXPECT_EQ(bindRenamed(model, tensors, renames), KILN_WEIGHT_UNEXPECTED);
  EXPECT_STREQ(model.Error.message,
               "tensor \"model.zero\": left out, not zero; expected zeros, got 2.3509887e-38 at element 0");
  EXPECT_EQ(model.packed(), plain.packed());
}

TEST(Renamed, WithoutRenamesItIsBindWeights) {
  BoundModel model = makeModel();
  EXPECT_EQ(bindRenamed(model, makeTensors(), {}), KILN_OK) << model.Error.message;
  EXPECT_EQ(bindRenamed(model, makeTensors("x."), {}), KILN_WEIGHT_MISSING);
}

TEST(Renamed, MistakesAreRefused) {
  BoundModel model = makeModel();
  EXPECT_EQ(bindRenamed(model, makeTensors("model."), {{"model.*", "*", 0, 0}, {"modell.*", "*", 0, 0}}),
            KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "rename 1: fits no tensor; expected a name of the weight file, got \"modell.*\"; "
                                    "nearest: model.h.0.w, model.h.1.w, model.norm.bias");
  EXPECT_EQ(bindRenamed(model, makeTensors(), {{"h.*.w", "h.0.w", 0, 0}}), KILN_FILE_MALFORMED);
  EXPECT_STREQ(model.Error.message, "renamed weight file: repeated name; expected distinct ones, got \"h.0.w\"");
  EXPECT_EQ(bindRenamed(model, makeTensors(), {{"h.*", "h.*", 4, 0}}), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_weights_renamed: rename with rotary heads; expected none, got 4 of \"h.*\"");
  EXPECT_EQ(bindRenamed(model, makeTensors(), {{nullptr, "h.*", 0, 0}}), KILN_NULL_ARGUMENT);
  EXPECT_EQ(kiln_bind_weights_renamed(model.Model, "x", nullptr, 1, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_weights_renamed: null given; expected renames");
  EXPECT_EQ(kiln_bind_weights_renamed(nullptr, "x", nullptr, 0, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_weights_renamed: null given; expected a model");
  EXPECT_EQ(kiln_bind_weights_renamed(model.Model, nullptr, nullptr, 0, &model.Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_weights_renamed: null given; expected a path");
  EXPECT_EQ(model.Model->packed, nullptr);
}

TEST(Renamed, OptionalOnesNeedNotMatch) {
  BoundModel model = makeModel();
  EXPECT_EQ(bindRenamed(model, makeTensors("model."),
                        {{"modell.*", "*", 0, KILN_RENAME_OPTIONAL},
                         {"left.*", nullptr, 0, KILN_RENAME_ZEROS | KILN_RENAME_OPTIONAL},
                         {"model.*", "*", 0, KILN_RENAME_OPTIONAL}}),
            KILN_OK)
      << model.Error.message;
}

/// Returns the names that are listed for a rename that matches none of them.
std::string namesNear(const std::string &from, const std::vector<std::string> &names) {
  BoundModel model = makeModel();
  std::vector<Tensor> tensors;
  for (const std::string &name : names)
    tensors.push_back(vectorOf(name, 3));
  EXPECT_EQ(bindRenamed(model, tensors, {{from.c_str(), "*", 0, 0}}), KILN_INVALID_ARGUMENT) << model.Error.message;
  const std::string words = model.Error.message, begin = "rename 0: fits no tensor; expected a name of the weight "
                                                         "file, got \"" +
                                                         from.substr(0, KILN_NAME_SHOWN) + "\"";
  EXPECT_EQ(words.substr(0, begin.size()), begin);
  return words.substr(begin.size());
}

TEST(Renamed, TheNearestNamesAreListed) {
  const std::vector<std::string> names = {"h.0.attn.weight", "h.0.mlp.weight", "h.1.attn.weight", "wte"};
  EXPECT_EQ(namesNear("h.*.atn.weight", names), "; nearest: h.0.attn.weight, h.1.attn.weight, h.0.mlp.weight");
  EXPECT_EQ(namesNear("wpe", names), "; nearest: wte, h.0.mlp.weight, h.0.attn.weight");
  EXPECT_EQ(namesNear("x.*", {"h", "w"}), "; nearest: h, w");
  EXPECT_EQ(namesNear("x*", {}), "");
  // Long names: as many as there is room for, and of each what messages show.
  const std::string longest(300, 'n');
  EXPECT_EQ(namesNear("x*", {longest, longest + "m"}), "; nearest: " + longest.substr(0, KILN_NAME_SHOWN));
  const std::string some(30, 's');
  EXPECT_EQ(namesNear("x*", {some + "1", some + "2", some + "3"}), "; nearest: " + some + "1, " + some + "2");
  EXPECT_EQ(namesNear(longest + "*", {"h"}), "; nearest: h");
}

} // namespace
