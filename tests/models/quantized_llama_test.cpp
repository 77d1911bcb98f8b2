// SPDX-License-Identifier: Apache-2.0
// The small Llama of examples/llama from a GGUF file and from a GPTQ checkpoint: bound to f32 weights, it gives exactly
// the results of the same values from a safetensors file; bound to int4, it has exactly the file's values.
#include "llama.h"
#include "llama_int4.h"

#include "llama/quantized.h"
#include "third_party_files.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>

namespace {

using namespace kiln_test;

constexpr llama::Shape shape = llama::small;
constexpr int64_t width = shape.width, shared = width / shape.heads * shape.key_value_heads, hidden = shape.hidden;

/// A file with this name suffix, which the destructor removes.
class NamedFile {
public:
  NamedFile(const std::string &name, const std::string &contents)
      : path(std::filesystem::path(::testing::TempDir()) / (std::to_string(getpid()) + name)) {
    std::ofstream(path, std::ios::binary) << contents;
  }
  ~NamedFile() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

/// A weight under the model's name, with the values of a file.
struct Part {
  std::string Name;
  int64_t Rows, Columns; // Rows is 0 for a vector
  std::vector<float> Values;
};

/// The weights of a layer with their names in GGUF files and in the model, and their shape; then the other weights.
struct Named {
  const char *Gguf, *Model;
  int64_t Rows, Columns;
  uint32_t Heads = 0;
};
const Named layerParts[] = {
    {"attn_norm", "input_layernorm", 0, width},
    {"ffn_norm", "post_attention_layernorm", 0, width},
    {"attn_q", "self_attn.q_proj", width, width, shape.heads},
    {"attn_k", "self_attn.k_proj", shared, width, shape.key_value_heads},
    {"attn_v", "self_attn.v_proj", shared, width},
    {"attn_output", "self_attn.o_proj", width, width},
    {"ffn_gate", "mlp.gate_proj", hidden, width},
    {"ffn_up", "mlp.up_proj", hidden, width},
    {"ffn_down", "mlp.down_proj", width, hidden},
};
const Named otherParts[] = {{"token_embd", "model.embed_tokens", shape.vocabulary, width},
                            {"output_norm", "model.norm", 0, width},
                            {"output", "lm_head", shape.vocabulary, width}};

/// Returns all weights of the model, with numbered layers.
std::vector<std::pair<std::string, Named>> allParts() {
  std::vector<std::pair<std::string, Named>> parts;
  for (int64_t layer = 0; layer < shape.layers; ++layer)
    for (const Named &part : layerParts)
      parts.emplace_back(std::to_string(layer), part);
  for (const Named &part : otherParts)
    parts.emplace_back("", part);
  return parts;
}
std::string modelName(const std::string &layer, const Named &part) {
  return (layer.empty() ? "" : "model.layers." + layer + ".") + part.Model + ".weight";
}

/// Reorders the rows of a matrix from a GGUF file, whose heads have their rows in pairs, to the model's order.
std::vector<float> inHalves(const std::vector<float> &values, const Named &part) {
  if (part.Heads == 0)
    return values;
  std::vector<float> result(values.size());
  const int64_t pairs = part.Rows / part.Heads / 2;
  for (int64_t head = 0; head < part.Heads; ++head)
    for (int64_t i = 0; i < pairs; ++i)
      for (int64_t half = 0; half < 2; ++half)
        std::copy_n(values.begin() + (head * 2 * pairs + 2 * i + half) * part.Columns, part.Columns,
                    result.begin() + (head * 2 * pairs + half * pairs + i) * part.Columns);
  return result;
}

/// Returns a GGUF file with these types in turn, and its weights in the model's order.
std::pair<std::string, std::vector<Part>> drawGgufLlama(const std::vector<uint32_t> &types) {
  std::vector<GgufTensor> tensors;
  std::vector<Part> parts;
  for (const auto &[layer, part] : allParts()) {
    const auto seed = static_cast<uint32_t>(tensors.size());
    const uint32_t type = part.Rows == 0 ? GgufF32 : types[seed % types.size()];
    const Numbers numbers = drawGguf(type, std::max<int64_t>(part.Rows, 1), part.Columns, seed);
    std::vector<uint64_t> extents{static_cast<uint64_t>(part.Columns)};
    if (part.Rows)
      extents.push_back(static_cast<uint64_t>(part.Rows));
    const std::string name = (layer.empty() ? "" : "blk." + layer + ".") + std::string(part.Gguf) + ".weight";
    tensors.push_back({name, extents, type, numbers.Bytes});
    parts.push_back({modelName(layer, part), part.Rows, part.Columns, inHalves(numbers.Values, part)});
  }
  return {makeGguf(tensors), parts};
}

Tensor plainTensor(const Part &part) {
  std::vector<int64_t> extents{part.Columns};
  if (part.Rows)
    extents.insert(extents.begin(), part.Rows);
  return {part.Name, "F32", extents, bytesOf(part.Values)};
}

std::string imageOf(const std::vector<Part> &parts) {
  std::vector<Tensor> tensors;
  for (const Part &part : parts)
    tensors.push_back(plainTensor(part));
  return imageOf(tensors);
}

/// A model, by the functions of its library.
template <class Handle> struct Bound {
  std::unique_ptr<Handle, void (*)(Handle *)> Model;
  kiln_error_t Error{};

  Bound(kiln_status_t (*create)(const kiln_allocator_t *, Handle **, kiln_error_t *), void (*destroy)(Handle *))
      : Model(nullptr, destroy) {
    Handle *handle = nullptr;
    EXPECT_EQ(create(nullptr, &handle, &Error), KILN_OK) << Error.message;
    Model.reset(handle);
  }
};
struct OfF32 : Bound<llama_t> {
  OfF32() : Bound(llama_create, llama_destroy) {}
};
struct OfInt4 : Bound<llama_int4_t> {
  OfInt4() : Bound(llama_int4_create, llama_int4_destroy) {}
};

template <class Handle, class Forward> std::vector<float> logitsOf(const Bound<Handle> &bound, Forward forward) {
  static const size_t bytes = std::max(LLAMA_FORWARD_ARENA_BYTES(1), LLAMA_INT4_FORWARD_ARENA_BYTES(1));
  const std::unique_ptr<void, void (*)(void *)> arena(
      std::aligned_alloc(KILN_ARENA_ALIGNMENT,
                         (bytes + KILN_ARENA_ALIGNMENT - 1) / KILN_ARENA_ALIGNMENT * KILN_ARENA_ALIGNMENT),
      std::free);
  const std::vector<int32_t> tokens = {5, 77, 0, 511, 123, 300, 7};
  std::vector<float> logits(tokens.size() * shape.vocabulary);
  kiln_error_t error{};
  kiln_call_t call{};
  call.arena = arena.get();
  call.arena_bytes = bytes;
  call.error = &error;
  EXPECT_EQ(forward(bound.Model.get(), &call, 1, static_cast<int64_t>(tokens.size()), tokens.data(), logits.data()),
            KILN_OK)
      << error.message;
  for (float logit : logits)
    EXPECT_TRUE(std::isfinite(logit));
  return logits;
}

/// Returns the logits of a model with these values in f32.
std::vector<float> logitsOfNumbers(const std::vector<Part> &parts) {
  OfF32 bound;
  const std::string image = imageOf(parts);
  EXPECT_EQ(llama_bind_weights_from_memory(bound.Model.get(), image.data(), image.size(), &bound.Error), KILN_OK)
      << bound.Error.message;
  return logitsOf(bound, llama_forward);
}

double largestDifference(const std::vector<float> &left, const std::vector<float> &right) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    difference = std::max(difference, std::fabs(double(left[i]) - right[i]));
    size = std::max(size, std::fabs(double(right[i])));
  }
  return difference / size;
}

TEST(QuantizedLlama, OfAGgufFileIsThatOfItsNumbers) {
  const auto [image, parts] = drawGgufLlama({Q4_0, Q8_0, GgufF16, GgufBF16, GgufF32});
  const NamedFile file("mixed.gguf", image);
  const std::vector<kiln_rename_t> renames = llama::gguf_renames(shape);
  OfF32 bound;
  ASSERT_EQ(llama_bind_gguf(bound.Model.get(), file.path.c_str(), renames.data(), renames.size(), &bound.Error),
            KILN_OK)
      << bound.Error.message;
  EXPECT_EQ(bytesOf(logitsOf(bound, llama_forward)), bytesOf(logitsOfNumbers(parts)));
}

/// Expects that each weight of the model has exactly these values, and that the model computes with them.
void expectNumbers(OfInt4 &bound, const std::vector<Part> &parts) {
  for (const Part &part : parts) {
    std::vector<float> values(part.Values.size());
    const uint64_t rows = part.Rows ? part.Rows : part.Columns;
    ASSERT_EQ(llama_int4_read_weight(bound.Model.get(), part.Name.c_str(), 0, rows, values.data(), &bound.Error),
              KILN_OK)
        << bound.Error.message;
    EXPECT_EQ(bytesOf(values), bytesOf(part.Values)) << part.Name;
  }
  // The summation order of f32 differs, through four layers.
  EXPECT_LE(largestDifference(logitsOf(bound, llama_int4_forward), logitsOfNumbers(parts)), 1e-3);
}

TEST(QuantizedLlama, KeepsTheIntegersOfAGgufFile) {
  const auto [image, parts] = drawGgufLlama({Q4_0});
  const NamedFile file("q4_0.gguf", image);
  const std::vector<kiln_rename_t> renames = llama::gguf_renames(shape);
  OfInt4 bound;
  ASSERT_EQ(llama_int4_bind_gguf(bound.Model.get(), file.path.c_str(), renames.data(), renames.size(), &bound.Error),
            KILN_OK)
      << bound.Error.message;
  expectNumbers(bound, parts);
}

/// A GPTQ checkpoint in the usual form: projections in groups of 32 with zero biases, other tensors unquantised.
/// isCentred: the zero point is always 8.
TEST(QuantizedLlama, OfGptqHasItsNumbers) {
  for (bool isCentred : {true, false}) {
    std::vector<Part> parts;
    std::vector<Tensor> tensors;
    for (const auto &[layer, part] : allParts()) {
      const std::string name = modelName(layer, part), base = name.substr(0, name.rfind('.'));
      const auto seed = static_cast<uint32_t>(parts.size());
      if (layer.empty() || part.Rows == 0) {
        const bool isMatrix = part.Rows > 0; // values of Q4_0, which int4 represents exactly
        const Numbers numbers =
            drawGguf(isMatrix ? Q4_0 : GgufF32, std::max<int64_t>(part.Rows, 1), part.Columns, seed);
        parts.push_back({name, part.Rows, part.Columns, numbers.Values});
        tensors.push_back(plainTensor(parts.back()));
        continue;
      }
      const Int4Matrix matrix(part.Rows, part.Columns, 32, seed, isCentred);
      parts.push_back({name, part.Rows, part.Columns, matrix.values()});
      for (Tensor &tensor : matrix.gptq(base))
        tensors.push_back(std::move(tensor));
      tensors.push_back({base + ".bias", "F16", {part.Rows}, std::string(part.Rows * 2, '\0')});
    }
    const NamedFile file("gptq.safetensors", imageOf(tensors));
    const std::vector<kiln_rename_t> &renames = llama::quantized_renames;
    OfF32 plain;
    ASSERT_EQ(llama_bind_quantized(plain.Model.get(), file.path.c_str(), KILN_GPTQ, renames.data(), renames.size(),
                                   &plain.Error),
              KILN_OK)
        << plain.Error.message;
    EXPECT_EQ(bytesOf(logitsOf(plain, llama_forward)), bytesOf(logitsOfNumbers(parts)));
    if (!isCentred)
      continue;
    OfInt4 bound;
    ASSERT_EQ(llama_int4_bind_quantized(bound.Model.get(), file.path.c_str(), KILN_GPTQ, renames.data(), renames.size(),
                                        &bound.Error),
              KILN_OK)
        << bound.Error.message;
    std::erase_if(parts, [](const Part &part) { return part.Name.find("_proj") == std::string::npos; });
    for (const Part &part : parts) {
      std::vector<float> values(part.Values.size());
      ASSERT_EQ(llama_int4_read_weight(bound.Model.get(), part.Name.c_str(), 0, part.Rows, values.data(), &bound.Error),
                KILN_OK);
      EXPECT_EQ(bytesOf(values), bytesOf(part.Values)) << part.Name;
    }
  }
}

} // namespace
