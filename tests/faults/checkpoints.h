// SPDX-License-Identifier: Apache-2.0
//
// All functions that read or write files of the runtime's test model, with a file of each format in one folder.
#pragma once

#include "../read_file.h"
#include "third_party_files.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

namespace kiln_test {

namespace fs = std::filesystem;

struct Operation {
  const char *Name;
  bool IsWriting;
  std::function<kiln_status_t(kiln_model_t *, kiln_error_t *)> Run;
};

/// A folder with the test model's weights in each format, which the destructor removes.
class Checkpoints {
public:
  Checkpoints() {
    std::string name = (fs::temp_directory_path() / "kiln_faults_XXXXXX").string();
    if (!mkdtemp(name.data()))
      std::abort();
    Folder = name;
    const std::vector<Tensor> weights = testWeights();
    write("w.safetensors", imageOf(weights));
    write("one", imageOf({weights[0]}));
    write("two", imageOf({weights[1], weights[2]}));
    write("w.json", R"({"weight_map": {"table": "two", "layers.0.weight": "one", "layers.1.weight": "two"}})");
    std::vector<GgufTensor> tensors;
    for (const Tensor &weight : weights)
      tensors.push_back({weight.name,
                         {static_cast<uint64_t>(weight.shape[1]), static_cast<uint64_t>(weight.shape[0])},
                         GgufF32,
                         weight.bytes});
    write("w.gguf", makeGguf(tensors));
    kiln_model_t *model = makeBound(weights);
    if (kiln_save_packed(model, at("w.packed").c_str(), nullptr) ||
        kiln_save_training(model, &Arena, &Training, at("w.training").c_str(), nullptr))
      std::abort();
    Packed.assign(model->packed, model->variant->packed_bytes);
    kiln_destroy(model);
  }
  ~Checkpoints() { fs::remove_all(Folder); }
  Checkpoints(const Checkpoints &) = delete;
  Checkpoints &operator=(const Checkpoints &) = delete;

  std::string at(const std::string &name) const { return (Folder / name).string(); }
  void write(const std::string &name, const std::string &bytes) const {
    std::ofstream(Folder / name, std::ios::binary) << bytes;
  }
  /// Returns the files and their contents.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const fs::directory_entry &entry : fs::directory_iterator(Folder))
      found[entry.path().filename().string()] = kiln::testing::readFile(entry.path());
    return found;
  }
  /// Creates a bound model with the default allocator, or with the caller's.
  static kiln_model_t *makeBound(const std::vector<Tensor> &weights, const kiln_allocator_t *allocator = nullptr) {
    const std::string image = imageOf(weights);
    kiln_model_t *model = nullptr;
    if (kiln_create(allocator, &model, nullptr) ||
        kiln_bind_weights_from_memory(model, image.data(), image.size(), nullptr))
      std::abort();
    return model;
  }
  /// Returns a model of zeros, whose weights a file replaces.
  static kiln_model_t *makeZero(const kiln_allocator_t *allocator = nullptr) {
    std::vector<Tensor> zeros = testWeights();
    for (Tensor &tensor : zeros)
      tensor.bytes.assign(tensor.bytes.size(), 0);
    return makeBound(zeros, allocator);
  }

  /// Returns all operations. Reading operations give a model the bytes of Packed, except a training checkpoint, which
  /// contains the layers only.
  std::vector<Operation> operations() {
    return {
        {"bind_weights", false,
         [this](kiln_model_t *m, kiln_error_t *e) { return kiln_bind_weights(m, at("w.safetensors").c_str(), e); }},
        {"bind_weights of an index", false,
         [this](kiln_model_t *m, kiln_error_t *e) { return kiln_bind_weights(m, at("w.json").c_str(), e); }},
        {"bind_gguf", false,
         [this](kiln_model_t *m, kiln_error_t *e) { return kiln_bind_gguf(m, at("w.gguf").c_str(), nullptr, 0, e); }},
        {"bind_quantized", false,
         [this](kiln_model_t *m, kiln_error_t *e) {
           return kiln_bind_quantized(m, at("w.safetensors").c_str(), KILN_GPTQ, nullptr, 0, e);
         }},
        {"bind_packed", false,
         [this](kiln_model_t *m, kiln_error_t *e) { return kiln_bind_packed(m, at("w.packed").c_str(), e); }},
        {"load_training", false,
         [this](kiln_model_t *m, kiln_error_t *e) {
           return kiln_load_training(m, &Arena, &Training, at("w.training").c_str(), e);
         }},
        {"save_packed", true,
         [this](kiln_model_t *m, kiln_error_t *e) { return kiln_save_packed(m, at("saved").c_str(), e); }},
        {"save_weights", true,
         [this](kiln_model_t *m, kiln_error_t *e) { return kiln_save_weights(m, at("saved").c_str(), e); }},
        {"save_training", true,
         [this](kiln_model_t *m, kiln_error_t *e) {
           return kiln_save_training(m, &Arena, &Training, at("saved").c_str(), e);
         }},
    };
  }

  std::string Packed; // with the weights of the files
  alignas(KILN_ARENA_ALIGNMENT) char Arena[KILN_ARENA_ALIGNMENT] = {};
  kiln_training_t Training = {};

private:
  fs::path Folder;
};

/// Returns the packed bytes of a model.
inline std::string packedOf(const kiln_model_t *model) { return {model->packed, model->variant->packed_bytes}; }

/// Returns the results of forward for some tokens.
inline std::vector<float> runForward(const kiln_model_t *model, std::vector<int32_t> ids) {
  std::vector<float> rows(ids.size() * Width);
  const int64_t extents[] = {static_cast<int64_t>(ids.size())};
  void *const arguments[] = {ids.data(), rows.data()};
  alignas(KILN_ARENA_ALIGNMENT) static char arena[1 << 14];
  kiln_error_t error = {};
  kiln_call_t call = {};
  call.arena = arena;
  call.arena_bytes = sizeof arena;
  call.error = &error;
  EXPECT_EQ(kiln_run(model, &call, 0, extents, arguments), KILN_OK) << error.message;
  return rows;
}

} // namespace kiln_test
