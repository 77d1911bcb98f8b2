// SPDX-License-Identifier: Apache-2.0
//
// The library of lora_spec.cpp with the frozen weights of a checkpoint and with adapters, which are stored in small
// separate files.
#pragma once

#include "llama_lora.hpp" // before the headers that use its types

#include "checkpoint.h"
#include "config.h"
#include "support/random_weights.h"
#include "support/writer.h"

#include <fstream>

namespace llama {

inline constexpr Shape tuned_shape = LLAMA_SHAPE;
inline constexpr support::WriterSizes tuned_sizes{tuned_shape.vocabulary, LLAMA_LORA_PREFILL_TOKENS_MAX,
                                                  tuned_shape.context};

/// Returns a safetensors file in memory of adapters, whose values `fill(tensor, values)` sets.
template <class Fill> std::vector<std::byte> make_adapters(Fill fill) {
  std::vector<support::Tensor> tensors = support::tensors_of({LLAMA_LORA_WEIGHTS(SUPPORT_WEIGHT)});
  std::erase_if(tensors, [](const support::Tensor &tensor) { return tensor.name.find(".lora_") == tensor.name.npos; });
  return support::make_image(tensors, [&](std::size_t i, std::span<float> values) { return fill(tensors[i], values); });
}

/// Saves only the adapters after training.
class TunedModel : public llama_lora::Model {
public:
  /// Binds the checkpoint of a folder with adapters, a safetensors file in memory.
  kiln_status_t bind_adapters(const std::string &folder, std::span<const std::byte> adapters, kiln_error_t *error) {
    return bind(support::load_checkpoint(support::weight_file(folder), specs::llama_checkpoint, adapters), error);
  }

  kiln_status_t save_weights(const char *path, kiln_error_t *error) const {
    kiln_status_t status = KILN_OK;
    const std::vector<std::byte> image = make_adapters([&](const support::Tensor &tensor, std::span<float> values) {
      if (status == KILN_OK)
        status = read_weight(tensor.name.c_str(), 0, static_cast<std::uint64_t>(tensor.shape[0]), values.data(), error);
    });
    if (status != KILN_OK)
      return status;
    std::ofstream file(path, std::ios::binary);
    if (!file.write(reinterpret_cast<const char *>(image.data()), std::ssize(image)).flush())
      throw std::runtime_error("cannot write \"" + std::string(path) + "\"");
    return KILN_OK;
  }
};

} // namespace llama
