// SPDX-License-Identifier: Apache-2.0
// Files of another format than a reader expects, as users often pass by mistake: every reader names the format, whether
// the file is mapped or copied.
#include "third_party_files.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>

namespace {

using namespace kiln_test;
using std::string_literals::operator""s;

struct Mistake {
  std::string Bytes;
  const char *Words;
};

const std::vector<Mistake> &mistakes() {
  static const std::vector<Mistake> all = {
      {"", "an empty file"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') + "\nsize 1234\n",
       "a pointer of git-lfs, for which `git lfs pull` gets the file"},
      {"PK\3\4" + std::string(200, '\0'), "a ZIP archive, as .bin and .pt of PyTorch are"},
      {"\x80\2\x8A\n" + std::string(200, 'l'), "a pickle, as older .bin and .pt of PyTorch are"},
      {"\x80\4\x95\0\0\0\0\0\0\0"s, "a pickle of Python"},
      {"GGUF\0\0\0\3"s + std::string(200, '\0'), "a big-endian GGUF file"},
      {"<!DOCTYPE html>\n<html lang=\"en\"><head><title>\xC3\xA4</title>", "HTML or XML, which a server may send"},
      {"\xEF\xBB\xBF\r\n  <html>", "HTML or XML, which a server may send"},
      {"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "HTML or XML, which a server may send"},
      {"Entry not found", "text"},
      {"lots of text, and more of it, far beyond the bytes that a reader looks at, so that it is long\n", "text"},
      {std::string(4096, '\0'), "zeros"},
      {"\x89HDF\r\n\x1A\n" + std::string(200, '\0'), "an HDF5 file"},
      {"\x93NUMPY\1\0v\0{'descr': '<f4'"s, "a file of NumPy"},
      {"\x1F\x8B\x08\0\0\0\0\0\0\3"s + std::string(1 << 20, 'z'), "a gzip archive"},
      {"\x28\xB5\x2F\xFD" + std::string(40, 'z'), "a Zstandard archive"},
      {"tjgg\3\0\0\0"s + std::string(40, '\0'), "a GGML file, which is older than GGUF"},
      {"\x08\x08\x12\x07pytorch\x1A\x05"
       "2.2.0",
       "an ONNX file"},
      {"\x08\7\x12\x0Connx.quantize", "an ONNX file"},
      {"\x1C\0\0\0TFL3"s + std::string(40, '\0'), "a TensorFlow Lite file"},
      {"weights/model" + std::string(244, '\0') + "ustar  " + std::string(248, '\0'), "a tar archive"},
      {"\xFD"
       "7zXZ\0\0\4"s +
           std::string(40, 'z'),
       "an xz archive"},
      {"BZh91AY&SY" + std::string(40, '\1'), "a bzip2 archive"},
      {"\x81\xA6params\x82\xA5"
       "Dense" +
           std::string(40, '\x81'),
       "a msgpack file, as those of Flax are"},
      {"\x7F"
       "ELF\2\1\1\0"s +
           std::string(40, '\0'),
       "a program or shared object"},
      {"\x89PNG\r\n\x1A\n" + std::string(40, '\0'), "a PNG picture"},
      {"%PDF-1.7\n%\xE2\xE3", "a PDF document"},
      {"\xFF\xFE{\0\"\0w\0\"\0"s, "text of UTF-16"},
      {"\xFE\xFF\0{\0\"\0w\0\""s, "text of UTF-16"},
      {"\0\0\0\0\0\0\0\x40{\"w\":{}}"s + std::string(70, ' '), "a big-endian safetensors file"},
  };
  return all;
}

/// A reader of files, the format it expects, and how it binds a file. The name of an index is not reported.
struct Reader {
  const char *Name, *Expected, *Path;
  std::function<kiln_status_t(kiln_model_t *, const char *, kiln_error_t *)> Bind;
};
const std::vector<Reader> &readers() {
  static const std::vector<Reader> all = {
      {"bind_weights", "a safetensors file", "w.safetensors", kiln_bind_weights},
      {"bind_weights of an index", "an index of safetensors files", "w.json", kiln_bind_weights},
      {"bind_weights_renamed", "a safetensors file", "w",
       [](kiln_model_t *m, const char *p, kiln_error_t *e) { return kiln_bind_weights_renamed(m, p, nullptr, 0, e); }},
      {"bind_gguf", "a little-endian GGUF file", "w.gguf",
       [](kiln_model_t *m, const char *p, kiln_error_t *e) { return kiln_bind_gguf(m, p, nullptr, 0, e); }},
      {"bind_quantized", "a safetensors file", "w",
       [](kiln_model_t *m, const char *p, kiln_error_t *e) {
         return kiln_bind_quantized(m, p, KILN_AWQ, nullptr, 0, e);
       }},
      {"bind_packed", "a packed file", "w.packed", kiln_bind_packed},
  };
  return all;
}

class Kinds : public testing::Test {
protected:
  Kinds() {
    std::string name = (std::string(testing::TempDir()) + "/kiln_kinds_XXXXXX");
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    Folder = name;
    for (uintptr_t flags : {0, static_cast<int>(KILN_COPY_FILES)}) {
      kiln_options_t options = {};
      options.flags = flags;
      EXPECT_EQ(kiln_create_on(&options, &Models[flags != 0], &Error), KILN_OK) << Error.message;
    }
  }
  ~Kinds() override {
    for (kiln_model_t *model : Models)
      kiln_destroy(model);
    std::filesystem::remove_all(Folder);
  }
  /// Returns the error message, which must be the same for each model.
  std::string wordsOf(const Reader &reader, const std::string &bytes) {
    const std::string path = Folder + "/" + reader.Path;
    std::ofstream(path, std::ios::binary) << bytes;
    std::string words;
    for (kiln_model_t *model : Models) {
      EXPECT_EQ(reader.Bind(model, path.c_str(), &Error), KILN_FILE_MALFORMED) << reader.Name << ": " << Error.message;
      EXPECT_TRUE(words.empty() || words == Error.message) << words << "\n" << Error.message;
      words = Error.message;
    }
    return words;
  }

  std::string Folder;
  kiln_model_t *Models[2] = {};
  kiln_error_t Error = {};
};

TEST_F(Kinds, EachIsNamedByEachReader) {
  for (const Reader &reader : readers())
    for (const Mistake &mistake : mistakes()) {
      if (std::string_view(mistake.Words) == "text" && std::string_view(reader.Path).ends_with(".json"))
        continue; // whose reader reports where it is not JSON
      const std::string wanted =
          "weight file: of another kind; expected "s + reader.Expected + ", got " + mistake.Words;
      const std::string words = wordsOf(reader, mistake.Bytes);
      EXPECT_NE(words.find(wanted), std::string::npos)
          << reader.Name << "\ngot:    " << words << "\nwanted: " << wanted;
      if (!std::string_view(reader.Path).ends_with(".json"))
        EXPECT_EQ(words.find("file \""s + reader.Path + "\": weight file"), 0u) << words;
    }
}

// Files of one reader given to another.
TEST_F(Kinds, FilesOfOtherReaders) {
  const std::string safetensors = makeImage({{"a", "F32", {1}, "1234"}}), index = R"({"weight_map": {"a": "f"}})",
                    gguf = makeGguf({{"a", {2}, GgufF32, std::string(8, 'f')}}),
                    packed = "kiln packed\n" + std::string(5000, '\0');
  const struct {
    const std::string &Bytes;
    const char *Words, *Reader;
  } files[] = {
      {safetensors, "a safetensors file, which bind_weights reads", "a safetensors file"},
      {index, "JSON, as the index of several files, whose name ends with .json", "an index of safetensors files"},
      {gguf, "a GGUF file, which bind_gguf reads", "a little-endian GGUF file"},
      {packed, "a packed file, which bind_packed maps", "a packed file"}};
  for (const auto &file : files)
    for (const Reader &reader : readers()) {
      const std::string path = Folder + "/" + reader.Path;
      std::ofstream(path, std::ios::binary) << file.Bytes;
      for (kiln_model_t *model : Models) {
        EXPECT_NE(reader.Bind(model, path.c_str(), &Error), KILN_OK);
        const bool isNamed =
            std::string(Error.message).find("of another kind; expected "s + reader.Expected + ", got " + file.Words) !=
            std::string::npos;
        EXPECT_EQ(isNamed, std::string_view(reader.Expected) != file.Reader) << reader.Name << ": " << Error.message;
      }
    }
}

// The length of a header may be the first bytes of another format.
TEST_F(Kinds, HeadersOfEachLengthAreRead) {
  for (const uint64_t length : {0x0280u, 0x0380u, 0x0480u, 0x0580u, 0x8B1Fu, 0xFEFFu, 0xFFFEu}) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; ++i)
      bytes[i] = static_cast<char>(length >> (8 * i));
    bytes += "{" + std::string(length - 2, ' ') + "}";
    for (const Reader &reader : readers()) {
      const std::string path = Folder + "/" + reader.Path;
      std::ofstream(path, std::ios::binary) << bytes;
      EXPECT_NE(reader.Bind(Models[0], path.c_str(), &Error), KILN_OK);
      const bool isOther =
          std::string(Error.message).find("got a safetensors file, which bind_weights reads") != std::string::npos;
      EXPECT_EQ(isOther, std::string_view(reader.Expected) != "a safetensors file") << length << ": " << Error.message;
    }
  }
}

// A truncated file is never taken for a well-formed file of another format.
TEST_F(Kinds, BeginningsOfAnyLength) {
  for (const Reader &reader : readers())
    for (const Mistake &mistake : mistakes())
      for (size_t length = 0; length < std::min<size_t>(mistake.Bytes.size(), 12); ++length)
        EXPECT_NE(wordsOf(reader, mistake.Bytes.substr(0, length)), "");
}

} // namespace
