// SPDX-License-Identifier: Apache-2.0
// Checkpoints of several files: the index and its files give the same weights as a single file; inconsistencies are
// refused with messages that name tensor and file; and every refusal leaves the model unchanged.
#include "readers/json.h"
#include "support.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace {

using namespace kiln_test;
namespace fs = std::filesystem;

/// A folder of files, which the destructor removes.
class Folder {
public:
  Folder() {
    const char *parent = std::getenv("TMPDIR");
    std::string name = std::string(parent ? parent : "/tmp") + "/kiln_index_XXXXXX";
    if (!mkdtemp(name.data()))
      std::abort();
    Path = name;
  }
  ~Folder() { fs::remove_all(Path); }
  void write(const std::string &name, std::string_view contents) const {
    std::ofstream(Path / name, std::ios::binary) << contents;
  }
  std::string at(const std::string &name) const { return (Path / name).string(); }

  fs::path Path;
};

const std::string Name = "model.safetensors.index.json";
/// The index of the test model's weights in two files.
const std::string Index = R"({"metadata": {"total_size": 132}, "weight_map": {"table": "two.safetensors",
  "layers.0.weight": "one.safetensors", "layers.1.weight": "two.safetensors"}})";

using Files = std::map<std::string, std::vector<Tensor>>;

Files testFiles() {
  const std::vector<Tensor> weights = testWeights();
  return {{"one.safetensors", {weights[0]}}, {"two.safetensors", {weights[1], weights[2]}}};
}

class IndexTest : public testing::Test {
protected:
  CountingAllocator Counter;
  kiln_allocator_t Functions = Counter.get();
  kiln_model_t *Model = nullptr;
  kiln_error_t Error = {};
  Folder Checkpoint;
  std::string Wanted; // the expected packed bytes

  void SetUp() override {
    ASSERT_EQ(kiln_create(&Functions, &Model, &Error), KILN_OK) << Error.message;
    const std::string image = makeImage(testWeights());
    ASSERT_EQ(kiln_bind_weights_from_memory(Model, image.data(), image.size(), &Error), KILN_OK);
    Wanted = packedBytes();
    write(testFiles());
  }
  void TearDown() override {
    kiln_destroy(Model);
    EXPECT_EQ(Counter.Alive, 0) << "something was not released";
  }
  void write(const Files &files) const {
    for (const auto &[name, tensors] : files)
      Checkpoint.write(name, makeImage(tensors));
  }
  kiln_status_t bind(const std::string &index) {
    fs::remove(Checkpoint.at(Name)); // some systems write a truncated and rewritten file to the disk
    Checkpoint.write(Name, index);
    return kiln_bind_weights(Model, Checkpoint.at(Name).c_str(), &Error);
  }
  std::string packedBytes() const { return std::string(Model->packed, Model->variant->packed_bytes); }
};

TEST_F(IndexTest, FilesGiveTheWeightsOfOne) {
  std::memset(Model->packed, 0xA5, Wanted.size());
  const int before = Counter.Made;
  ASSERT_EQ(bind(Index), KILN_OK) << Error.message;
  EXPECT_EQ(packedBytes(), Wanted);
  EXPECT_EQ(Counter.Made, before + 9)
      << "the index and its table, each file once with header and table, and the packed copy";
  EXPECT_EQ(Counter.Alive, 2) << "the model and its packed copy";
}

TEST_F(IndexTest, OtherEntriesDoNotMatter) {
  std::memset(Model->packed, 0xA5, Wanted.size());
  ASSERT_EQ(bind("\n{\"a\": [1, -2.5e+3, 0, {\"b\": [], \"c\": {}}, [[[\"]\", true]]], false], \"weight_map\" :\t{\n"
                 "\"t\\u0061ble\" : \"tw\\u006f.safetensors\" ,\"layers.0.weight\": \"one.safetensors\",\n"
                 "\"layers.1.weight\":\"two.safetensors\"}, \"metadata\": null, \"z\": 1E9}\r\n"),
            KILN_OK)
      << Error.message;
  EXPECT_EQ(packedBytes(), Wanted);
}

TEST_F(IndexTest, AnIndexHere) {
  std::memset(Model->packed, 0xA5, Wanted.size());
  Checkpoint.write(Name, Index);
  const fs::path before = fs::current_path();
  fs::current_path(Checkpoint.Path);
  const kiln_status_t status = kiln_bind_weights(Model, Name.c_str(), &Error);
  fs::current_path(before);
  ASSERT_EQ(status, KILN_OK) << Error.message;
  EXPECT_EQ(packedBytes(), Wanted);
}

/// Returns an index with this weight_map.
std::string mapOf(const std::string &entries) { return "{\"weight_map\":{" + entries + "}}"; }

TEST_F(IndexTest, MalformedIndexesAreRefused) {
  const std::string all = "index of weight files: ", deep(65, '[');
  const struct {
    std::string Index, Message;
  } cases[] = {
      {"[]", "malformed JSON; expected '{' to begin, got '[' at byte 0"},
      {"{}", "no weight_map; expected one"},
      {"{} x", "malformed JSON; expected nothing but white space after its last '}', got 'x' at byte 3"},
      {"{\"metadata\":{}}", "no weight_map; expected one"},
      {"{\"metadata\":{},}", "malformed JSON; expected a name, got '}' at byte 15"},
      {"{\"weight_map\":[]}", "malformed JSON; expected '{' to begin weight_map, got '[' at byte 14"},
      {"{\"weight_map\":{},\"weight_map\":{}}", "malformed JSON; expected weight_map only once, got '{' at byte 30"},
      {"{\"weight_map\":{},\"weight_m\\u0061p\":{}}", "malformed JSON; expected weight_map only once"},
      {"{\"weight_map\":{}", "malformed JSON; expected ',' or '}' after a value, got its end at byte 16"},
      {mapOf("\"a\""), "malformed JSON; expected ':' after a name, got '}' at byte 18"},
      {mapOf("\"a\":1"), "malformed JSON; expected the name of a file, got '1' at byte 19"},
      {mapOf("\"a\":null"), "malformed JSON; expected the name of a file, got 'n'"},
      {mapOf("\"a\":{\"b\":\"c\"}"), "malformed JSON; expected the name of a file, got '{'"},
      {mapOf("\"a\":\"f\" \"b\":\"f\""), "malformed JSON; expected ',' or '}' in weight_map, got '\"'"},
      {mapOf("\"a\":\"f\","), "malformed JSON; expected the name of a tensor, got '}'"},
      {mapOf("\"\x80\":\"f\""), "malformed JSON; expected a well-formed string, got 0x80"},
      {mapOf("\"a\":\"f\",\"\\u0061\":\"f\""), "repeated name; expected distinct ones, got \"a\""},
      {mapOf("\"a\":\"\""), "wrong file; expected one in its folder, got \"\" for tensor \"a\""},
      {mapOf("\"a\":\".\""), "wrong file; expected one in its folder, got \".\" for tensor \"a\""},
      {mapOf("\"a\":\"..\""), "wrong file; expected one in its folder, got \"..\" for tensor \"a\""},
      {mapOf("\"a\":\"../secret\""), "wrong file; expected one in its folder, got \"../secret\" for tensor \"a\""},
      {mapOf("\"a\":\"/etc/passwd\""), "wrong file; expected one in its folder, got \"/etc/passwd\" for tensor \"a\""},
      {mapOf("\"a\":\"x\\/y\""), "wrong file; expected one in its folder, got \"x/y\" for tensor \"a\""},
      {mapOf("\"a\":\"one.safetensors\\u0000\""),
       "wrong file; expected one in its folder, got \"one.safetensors\" for tensor"},
      {mapOf("\"a\":\"" + std::string(256, 'f') + "\""),
       "wrong file; expected one in its folder, got \"" + std::string(80, 'f')},
      {"{\"x\":" + deep, "malformed JSON; expected values that nest at most 64 deep"},
      {"{\"x\":[1,]}", "malformed JSON; expected a value, got ']' at byte 8"},
      {"{\"x\":[1}", "malformed JSON; expected ',' or ']' after a value, got '}' at byte 7"},
      {"{\"x\":{\"y\":1]", "malformed JSON; expected ',' or '}' after a value, got ']' at byte 11"},
      {"{\"x\":{\"y\"}", "malformed JSON; expected ':' after a name, got '}' at byte 9"},
      {"{\"x\":{1:2}}", "malformed JSON; expected a name, got '1' at byte 6"},
      {"{\"x\":01}", "malformed JSON; expected ',' or '}' after a value, got '1' at byte 6"},
      {"{\"x\":1.}", "malformed JSON; expected a value, got '}' at byte 7"},
      {"{\"x\":1e+}", "malformed JSON; expected a value, got '}' at byte 8"},
      {"{\"x\":-}", "malformed JSON; expected a value, got '}' at byte 6"},
      {"{\"x\":+1}", "malformed JSON; expected a value, got '+' at byte 5"},
      {"{\"x\":tru}", "malformed JSON; expected a value, got 't' at byte 5"},
      {"{\"x\":\"\\q\"}", "malformed JSON; expected a well-formed string, got 'q'"},
  };
  for (const auto &test : cases) {
    EXPECT_EQ(bind(test.Index), KILN_FILE_MALFORMED) << test.Index;
    EXPECT_EQ(std::string(Error.message).rfind(all + test.Message, 0), 0u)
        << "got:    " << Error.message << "\nwanted: " << all << test.Message;
    EXPECT_EQ(packedBytes(), Wanted);
    EXPECT_EQ(Counter.Alive, 2);
  }
}

TEST_F(IndexTest, EveryTruncationIsMalformed) {
  for (size_t bytes = 0; bytes < Index.size(); ++bytes) {
    EXPECT_EQ(bind(Index.substr(0, bytes)), KILN_FILE_MALFORMED) << bytes;
    EXPECT_EQ(packedBytes(), Wanted);
  }
}

TEST_F(IndexTest, FilesThatDoNotFitAreRefusedByName) {
  const struct {
    std::function<void(Files &, std::string &)> Change;
    kiln_status_t Status;
    std::string Message;
  } cases[] = {
      {[](Files &files, std::string &) { files.erase("two.safetensors"); }, KILN_FILE_ERROR,
       "two.safetensors\": No such file or directory"},
      {[](Files &files, std::string &) { files["one.safetensors"].clear(); }, KILN_FILE_MALFORMED,
       "index of weight files: tensor not found; expected \"layers.0.weight\" in \"one.safetensors\""},
      {[](Files &files, std::string &) { files["two.safetensors"].pop_back(); }, KILN_FILE_MALFORMED,
       "index of weight files: tensor not found; expected \"table\" in \"two.safetensors\""},
      {[](Files &files, std::string &) { files["one.safetensors"].push_back(testWeights()[2]); }, KILN_FILE_MALFORMED,
       "index of weight files: tensor in another file; expected \"table\" in \"two.safetensors\", got "
       "\"one.safetensors\""},
      {[](Files &files, std::string &) { std::swap(files["one.safetensors"], files["two.safetensors"]); },
       KILN_FILE_MALFORMED,
       "index of weight files: tensor in another file; expected \"layers.1.weight\" in \"two.safetensors\", got "
       "\"one.safetensors\""},
      {[](Files &files, std::string &) { files["two.safetensors"].push_back({"extra", "F32", {1}, "1234"}); },
       KILN_FILE_MALFORMED,
       "index of weight files: no entry for a tensor; expected one for \"extra\", which is in \"two.safetensors\""},
      {[](Files &files, std::string &) { files["two.safetensors"][1].bytes += "1234"; }, KILN_FILE_MALFORMED,
       "file \"two.safetensors\": tensor \"table\" of shape [5, 3]: wrong size; expected 4 bytes an element, got "
       "offsets [36, 100]"},
      {[](Files &files, std::string &) { files["two.safetensors"][1].shape = {3, 5}; }, KILN_WEIGHT_SHAPE,
       "tensor \"table\": wrong shape; expected [5, 3], got [3, 5]"},
      {[](Files &, std::string &index) { index = mapOf(""); }, KILN_WEIGHT_MISSING, "\"table\" missing"},
      {[](Files &files, std::string &index) {
         files["three"] = {{"other", "F32", {1}, "1234"}};
         index.insert(index.find("\"table\""), "\"other\":\"three\",");
       },
       KILN_WEIGHT_UNEXPECTED, "model \"tiny\" has no tensor \"other\", the weight file has"},
  };
  for (const auto &test : cases) {
    for (const fs::directory_entry &entry : fs::directory_iterator(Checkpoint.Path))
      fs::remove(entry.path());
    Files files = testFiles();
    std::string index = Index;
    test.Change(files, index);
    write(files);
    EXPECT_EQ(bind(index), test.Status) << test.Message;
    EXPECT_EQ(Error.status, test.Status);
    EXPECT_NE(std::string(Error.message).find(test.Message), std::string::npos)
        << "got:    " << Error.message << "\nwanted: " << test.Message;
    EXPECT_EQ(packedBytes(), Wanted);
    EXPECT_EQ(Counter.Alive, 2);
  }
}

TEST_F(IndexTest, FilesThatAreNoneAreRefused) {
  Checkpoint.write("one.safetensors", "");
  EXPECT_EQ(bind(Index), KILN_FILE_MALFORMED);
  EXPECT_STREQ(
      Error.message,
      "file \"one.safetensors\": weight file: of another kind; expected a safetensors file, got an empty file");
  fs::remove(Checkpoint.at("one.safetensors"));
  fs::create_directory(Checkpoint.at("one.safetensors"));
  EXPECT_EQ(bind(Index), KILN_FILE_ERROR);
  EXPECT_NE(std::string(Error.message).find("one.safetensors\": not a regular file"), std::string::npos);
  const std::string far = "/" + std::string(4100, 'f') + "/x.json";
  EXPECT_EQ(kiln_bind_weights(Model, far.c_str(), &Error), KILN_FILE_ERROR);
  EXPECT_NE(std::string(Error.message).find("/x.json\": File name too long"), std::string::npos) << Error.message;
  EXPECT_EQ(kiln_bind_weights(Model, ".json", &Error), KILN_FILE_ERROR);
  EXPECT_STREQ(Error.message, "cannot open weight file \".json\": No such file or directory");
  EXPECT_EQ(kiln_bind_weights(Model, Checkpoint.at(Name).c_str(), nullptr), KILN_FILE_ERROR);
  EXPECT_EQ(packedBytes(), Wanted);
}

TEST_F(IndexTest, HugeIndexesAreRefused) {
  Checkpoint.write(Name, "{");
  fs::resize_file(Checkpoint.at(Name), 100000001); // a sparse file
  EXPECT_EQ(kiln_bind_weights(Model, Checkpoint.at(Name).c_str(), &Error), KILN_FILE_MALFORMED);
  EXPECT_STREQ(Error.message, "index of weight files: too large; expected at most 100000000 bytes, got 100000001");
}

TEST_F(IndexTest, OutOfMemoryAtEveryAllocationLeavesTheModelAsItWas) {
  for (int extra = 0; extra < 9; ++extra) {
    Counter.Limit = Counter.Made + extra;
    EXPECT_EQ(bind(Index), KILN_OUT_OF_MEMORY);
    EXPECT_EQ(packedBytes(), Wanted);
    EXPECT_EQ(Counter.Alive, 2);
  }
  Counter.Limit = Counter.Made + 9;
  EXPECT_EQ(bind(Index), KILN_OK) << Error.message;
}

/// Returns the text with a few mutations.
std::string mutate(std::string text, std::mt19937 &random) {
  const std::string pieces[] = {"{",
                                "}",
                                "[",
                                "]",
                                "\"",
                                ":",
                                ",",
                                "0",
                                "-1",
                                "1.5e",
                                "\\u",
                                "\\",
                                "\xED",
                                "null",
                                "\"table\"",
                                "\"one.safetensors\"",
                                "/",
                                "..",
                                "\"weight_map\"",
                                " ",
                                "\\u0061",
                                "[[["};
  auto pick = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (size_t change = 0, changes = 1 + pick(4); change < changes && !text.empty(); ++change) {
    const size_t at = pick(text.size());
    switch (pick(5)) {
    case 0:
      text[at] = static_cast<char>(random());
      break;
    case 1:
      text.erase(at, 1 + pick(6));
      break;
    case 2:
      text.insert(at, pieces[pick(std::size(pieces))]);
      break;
    case 3:
      text.insert(at, text.substr(pick(text.size()), 1 + pick(40)));
      break;
    default:
      text[at] = static_cast<char>('0' + pick(10));
    }
  }
  return text;
}

// Whatever the index contains, the model has either the weights of the files or its previous weights.
TEST_F(IndexTest, MutatedIndexesNeverCrash) {
  std::mt19937 random(20261125);
  int passed = 0, opened = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::string index = mutate(Index, random);
    std::memset(Model->packed, 0xA5, Wanted.size());
    const kiln_status_t status = bind(index);
    passed += status == KILN_OK;
    opened += status != KILN_OK && std::string(Error.message).rfind("index of weight files: tensor ", 0) == 0;
    ASSERT_TRUE(status == KILN_OK || status == KILN_FILE_MALFORMED || status == KILN_FILE_ERROR ||
                status == KILN_WEIGHT_MISSING)
        << status << ": " << index;
    ASSERT_EQ(packedBytes(), status == KILN_OK ? Wanted : std::string(Wanted.size(), '\xA5')) << index;
    ASSERT_EQ(std::strlen(Error.message) > 20, status != KILN_OK) << index;
    ASSERT_EQ(Counter.Alive, 2);
  }
  EXPECT_GT(passed, 100);
  EXPECT_LT(passed, 2500);
  EXPECT_GT(opened, 100) << "of these files were read";
}

TEST(Json, SkippedValuesEndBeforeAnythingElse) {
  const std::string value = R"({"a": [1, -0.5E-3, "\u0041\n", {"b": {}}, [], null], "c": {"d": [true, false]}})";
  std::mt19937 random(7);
  int passed = 0;
  for (int round = 0; round < 20000; ++round) {
    const GuardedMemory text(round == 0 ? value : mutate(value, random)); // ends at a guard page
    kiln_error_t error = {};
    kiln_json_t json = {text.data(), text.data(), text.data() + text.size(), &error, "text"};
    const kiln_status_t status = kiln_json_skip(&json, "a value");
    ASSERT_LE(json.next, json.end);
    ASSERT_TRUE(status == KILN_OK || status == KILN_FILE_MALFORMED);
    if (round == 0) {
      EXPECT_EQ(status, KILN_OK) << error.message;
      EXPECT_EQ(json.next, json.end);
    }
    passed += status == KILN_OK;
  }
  EXPECT_GT(passed, 1000);
  EXPECT_LT(passed, 15000);
}

} // namespace
