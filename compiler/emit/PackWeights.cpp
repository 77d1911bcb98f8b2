// SPDX-License-Identifier: Apache-2.0
//
#include "compiler/emit/PackWeights.h"

#include "compiler/dialect/ElementTypes.h"
#include "runtime/src/internal.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SHA256.h"
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

namespace kiln {

std::array<uint64_t, 4> packedDigest(const ModelInterface &model, const Variant &variant) {
  std::string text = fmt::format("abi {}, model {}, target {}, {} bytes\n", KILN_ABI_VERSION, model.name,
                                 variant.target, variant.packedBytes);
  for (auto [weight, place] : llvm::zip_equal(model.weights, variant.placements))
    text += fmt::format("{} {} {} x {} [{}] at {} + {} tile {} dim {} shift {} as {} scales {} group {} zeros {}\n",
                        weight.name.size(), weight.name, name_of(weight.element), weight.copies,
                        fmt::join(weight.shape, ", "), place.offset, place.stride, place.tile, place.dim, place.shift,
                        name_of(place.element), place.scales, place.group, place.zeros);
  const std::array<uint8_t, 32> hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  std::array<uint64_t, 4> digest;
  static_assert(sizeof digest == sizeof hash);
  std::memcpy(digest.data(), hash.data(), sizeof digest);
  return digest;
}

/// The parts of a descriptor that binding reads.
static std::vector<kiln_weight_t> describeWeights(const ModelInterface &model) {
  std::vector<kiln_weight_t> weights;
  for (const WeightInterface &weight : model.weights) {
    kiln_weight_t &to = weights.emplace_back();
    to.name = weight.name.c_str();
    to.dtype = static_cast<uint32_t>(weight.element);
    to.rank = static_cast<uint32_t>(weight.shape.size());
    llvm::copy(weight.shape, to.shape);
    to.copies = static_cast<uint32_t>(weight.copies);
  }
  return weights;
}

static std::vector<kiln_placement_t> describePlacements(const Variant &variant) {
  std::vector<kiln_placement_t> placements;
  for (const WeightPlacement &place : variant.placements)
    placements.push_back({place.offset, place.stride, place.tile, place.dim, place.shift, place.scales,
                          static_cast<uint32_t>(place.element), place.group, place.zeros});
  return placements;
}

llvm::Error packWeights(const ModelInterface &model, const Variant &variant, const std::string &checkpoint,
                        const std::string &path) {
  const std::vector<kiln_weight_t> described = describeWeights(model);
  const std::vector<kiln_placement_t> placements = describePlacements(variant);
  // It needs no feature of a CPU and no device, so that it can be packed anywhere.
  kiln_variant_t code = {};
  code.target = variant.target.c_str();
  code.memory_space = KILN_MEMORY_HOST;
  code.placements = placements.data();
  code.packed_bytes = variant.packedBytes;
  llvm::copy(packedDigest(model, variant), code.digest);
  kiln_descriptor_t descriptor = {};
  descriptor.abi_version = KILN_ABI_VERSION;
  descriptor.weight_count = static_cast<uint32_t>(described.size());
  descriptor.variant_count = 1;
  descriptor.name = model.name.c_str();
  descriptor.weights = described.data();
  descriptor.variants = &code;

  const kiln_cpu_t cpu = {};
  const kiln_options_t options = {};
  kiln_model_t *made = nullptr;
  kiln_error_t error = {};
  kiln_status_t status = kiln_model_create(&descriptor, &cpu, &options, &made, &error);
  const std::unique_ptr<kiln_model_t, decltype(&kiln_destroy)> owner(made, kiln_destroy);
  if (!status)
    status = kiln_bind_weights(made, checkpoint.c_str(), &error);
  if (!status)
    status = kiln_save_packed(made, path.c_str(), &error);
  return status ? llvm::createStringError(error.message) : llvm::Error::success();
}

} // namespace kiln
