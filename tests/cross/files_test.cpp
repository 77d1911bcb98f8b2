// SPDX-License-Identifier: Apache-2.0
// Weight files and packed files on a target's system: a model that binds a file gives the same bits as one that binds
// from memory, file names are UTF-8, files are replaced atomically, and errors are statuses with a message.
#include "counter.h"
#include "recurrent.h"
#include "session.h"

#include <cstdlib>

namespace kiln::testing {
namespace {

constexpr std::int64_t steps = 33, width = 5, hidden = 7;

/// Returns a path in the folder of this run.
std::string pathOf(const std::string &name) {
  const char *folder = std::getenv("KILN_TEST_FOLDER");
  return (folder ? std::string(folder) + "/" : "") + name;
}

/// Writes with the system's own functions, as another program would.
void writeWholeFile(const std::string &path, const char *bytes, std::size_t count) {
#ifdef _WIN32
  std::wstring wide(path.size() + 1, L'\0');
  MultiByteToWideChar(CP_UTF8, 0, path.c_str(), -1, wide.data(), static_cast<int>(wide.size()));
  std::FILE *file = _wfopen(wide.c_str(), L"wb");
#else
  std::FILE *file = std::fopen(path.c_str(), "wb");
#endif
  ASSERT_NE(file, nullptr) << path;
  EXPECT_EQ(std::fwrite(bytes, 1, count, file), count);
  std::fclose(file);
}

class Files : public ::testing::Test {
protected:
  Files() { EXPECT_EQ(recurrent_create(nullptr, &model, &error), KILN_OK) << error.message; }
  ~Files() override { recurrent_destroy(model); }

  /// Returns the model's results with its current weights.
  std::vector<float> results(const recurrent_t *of) {
    std::vector<float> x(steps * width), last(4 * hidden);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = counter_uniform("x", i);
    alignas(KILN_ARENA_ALIGNMENT) static char arena[RECURRENT_LAST_ARENA_BYTES(1)];
    const kiln_call_t call = {.arena = arena, .arena_bytes = sizeof arena, .error = &error};
    EXPECT_EQ(recurrent_last(of, &call, steps, x.data(), last.data()), KILN_OK) << error.message;
    return last;
  }
  void bindFromMemory() {
    const kiln_status_t status = recurrent_bind_weights_from_memory(model, image.data(), image.size(), &error);
    ASSERT_EQ(status, KILN_OK) << error.message;
  }

  recurrent_t *model = nullptr;
  kiln_error_t error = {};
  WeightImage image{KILN_TEST_LIBRARY(recurrent, RECURRENT_WEIGHTS).weights};
};

TEST_F(Files, WeightsOfAFileAreThoseOfItsImage) {
  const std::string path = pathOf("Gewichte \xC3\xA4\xE2\x82\xAC.safetensors");
  writeWholeFile(path, static_cast<const char *>(image.data()), image.size());
  bindFromMemory();
  const std::vector<float> wanted = results(model);
  ASSERT_EQ(recurrent_bind_weights(model, path.c_str(), &error), KILN_OK) << error.message;
  EXPECT_EQ(results(model), wanted);
}

TEST_F(Files, PackedFilesAreReplacedAndMapped) {
  const std::string path = pathOf("gepackt \xC3\xA4.kiln");
  bindFromMemory();
  const std::vector<float> wanted = results(model);
  for (int turn = 0; turn < 2; ++turn) // the second one replaces the first
    ASSERT_EQ(recurrent_save_packed(model, path.c_str(), &error), KILN_OK) << error.message;
  recurrent_t *other = nullptr;
  ASSERT_EQ(recurrent_create(nullptr, &other, &error), KILN_OK);
  ASSERT_EQ(recurrent_bind_packed(other, path.c_str(), &error), KILN_OK) << error.message;
  EXPECT_EQ(results(other), wanted);
  // A mapped file is replaced, which Windows refuses; the model keeps its weights.
  const kiln_status_t status = recurrent_save_packed(model, path.c_str(), &error);
#ifndef _WIN32
  EXPECT_EQ(status, KILN_OK) << error.message;
#endif
  if (status != KILN_OK)
    EXPECT_NE(std::string(error.message).find("cannot create weight file"), std::string::npos) << error.message;
  EXPECT_EQ(results(other), wanted);
  recurrent_destroy(other);
  ASSERT_EQ(recurrent_save_packed(model, path.c_str(), &error), KILN_OK) << error.message;
}

TEST_F(Files, WhatIsWrongIsSaidInWords) {
  const auto expect = [&](kiln_status_t status, kiln_status_t wanted, const std::string &words) {
    EXPECT_EQ(status, wanted);
    EXPECT_NE(std::string(error.message).find(words), std::string::npos) << error.message;
  };
  const std::string none = pathOf("no such folder/weights.safetensors"), empty = pathOf("empty.safetensors");
  expect(recurrent_bind_weights(model, none.c_str(), &error), KILN_FILE_ERROR, "cannot open weight file \"");
  EXPECT_EQ(std::string(error.message).find("unknown error"), std::string::npos) << error.message;
  writeWholeFile(empty, "", 0);
  expect(recurrent_bind_weights(model, empty.c_str(), &error), KILN_FILE_MALFORMED, "got an empty file");
  bindFromMemory();
  expect(recurrent_save_packed(model, none.c_str(), &error), KILN_FILE_ERROR, "cannot create weight file \"");
}

#ifdef _WIN32
// Files of an index must be next to it; Windows has other ways to name another folder.
TEST_F(Files, AnIndexNamesNoOtherPlace) {
  const std::string path = pathOf("model.safetensors.index.json");
  for (const char *file : {"..\\\\weights.safetensors", "C:weights.safetensors"}) {
    const std::string text = std::string(R"({"weight_map": {"a": ")") + file + "\"}}";
    writeWholeFile(path, text.data(), text.size());
    EXPECT_EQ(recurrent_bind_weights(model, path.c_str(), &error), KILN_FILE_MALFORMED) << error.message;
  }
}

TEST_F(Files, PathsAreWellFormed) {
  EXPECT_EQ(recurrent_bind_weights(model, "\xFF.safetensors", &error), KILN_FILE_ERROR) << error.message;
  EXPECT_EQ(recurrent_bind_weights(model, std::string(40000, 'a').c_str(), &error), KILN_FILE_ERROR) << error.message;
}
#endif

} // namespace
} // namespace kiln::testing
