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
#include <fstream>
#include <memory>
#include <sstream>

namespace kiln {

std::array<uint64_t, 4> packedDigest(const ModelInterface &model, const Variant &variant) {
  std::string text = fmt::format("abi {}, model {}, target {}, {} bytes\n", KILN_ABI_VERSION, model.name,
                                 variant.target, variant.packedBytes);
  if (model.ranks > 1)
    text += fmt::format("{} ranks\n", model.ranks);
  if (model.stages > 1)
    text += fmt::format("{} stages\n", model.stages);
  for (auto [number, place] : llvm::enumerate(variant.placements)) {
    const WeightInterface &weight = model.weights[number % model.weights.size()];
    text += fmt::format("{} {} {} x {} [{}] at {} + {} tile {} dim {} shift {} as {} scales {} group {} zeros {}\n",
                        weight.name.size(), weight.name, name_of(weight.element), weight.fileCopies(),
                        fmt::join(weight.shape, ", "), place.offset, place.stride, place.tile, place.dim, place.shift,
                        name_of(place.element), place.scales, place.group, place.zeros);
    for (const WeightSection &section : weight.slice ? weight.slice->sections : std::vector<WeightSection>())
      text += fmt::format("{} from {} + {}\n", section.extent, section.first, section.step);
  }
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

namespace {

/// A line of a file of renames.
struct Rename {
  std::string from, to;
  uint32_t heads = 0;
  bool isZeros = false;

  kiln_rename_t described() const {
    return {from.c_str(), to.empty() ? nullptr : to.c_str(), heads, isZeros ? uint32_t{KILN_RENAME_ZEROS} : 0};
  }
};

} // namespace

static llvm::Expected<std::vector<Rename>> readRenames(const std::string &path) {
  std::vector<Rename> renames;
  if (path.empty())
    return renames;
  std::ifstream file(path);
  if (!file)
    return llvm::createStringError(fmt::format("cannot read the renames \"{}\"", path));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    Rename rename;
    if (!(words >> rename.from))
      continue;
    words >> rename.to;
    rename.isZeros = rename.to == "=0";
    if (rename.isZeros)
      rename.to.clear();
    std::string heads, more;
    if (words >> heads && (rename.to.empty() || llvm::StringRef(heads).getAsInteger(10, rename.heads) || words >> more))
      return llvm::createStringError(fmt::format(
          "line {} of \"{}\" requires FROM, FROM TO, FROM TO HEADS or FROM =0, got \"{}\"", number, path, line));
    renames.push_back(std::move(rename));
  }
  return renames;
}

static kiln_status_t bindCheckpoint(kiln_model_t *model, const Checkpoint &checkpoint,
                                    const std::vector<Rename> &renames, kiln_error_t *error) {
  std::vector<kiln_rename_t> described;
  for (const Rename &rename : renames)
    described.push_back(rename.described());
  const char *path = checkpoint.path.c_str();
  if (llvm::StringRef(checkpoint.path).ends_with(".gguf"))
    return kiln_bind_gguf(model, path, described.data(), described.size(), error);
  if (checkpoint.quantization.empty())
    return kiln_bind_weights(model, path, error);
  const kiln_quantization_t quantization = checkpoint.quantization == "awq"    ? KILN_AWQ
                                           : checkpoint.quantization == "gptq" ? KILN_GPTQ
                                                                               : KILN_GPTQ_V2;
  return kiln_bind_quantized(model, path, quantization, described.data(), described.size(), error);
}

/// Binds a checkpoint to a model that lives while `use` has it.
static llvm::Error bindAndUse(const ModelInterface &model, const Variant &variant, const Checkpoint &checkpoint,
                              llvm::function_ref<kiln_status_t(const kiln_model_t &, kiln_error_t *)> use) {
  if (model.ranks > 1 || model.stages > 1)
    return llvm::createStringError(fmt::format("packing requires a library for one process: those of several save what "
                                               "they have bound, by {}_save_packed",
                                               model.name));
  llvm::Expected<std::vector<Rename>> renames = readRenames(checkpoint.renames);
  if (!renames)
    return renames.takeError();
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
    status = bindCheckpoint(made, checkpoint, *renames, &error);
  if (!status)
    status = use(*made, &error);
  return status ? llvm::createStringError(error.message) : llvm::Error::success();
}

llvm::Expected<std::string> packedWeights(const ModelInterface &model, const Variant &variant,
                                          const Checkpoint &checkpoint) {
  std::string weights;
  llvm::Error error = bindAndUse(model, variant, checkpoint, [&](const kiln_model_t &bound, kiln_error_t *) {
    weights.assign(bound.packed, variant.packedBytes);
    return KILN_OK;
  });
  if (error)
    return std::move(error);
  return std::move(weights);
}

llvm::Error packWeights(const ModelInterface &model, const Variant &variant, const Checkpoint &checkpoint,
                        const std::string &path) {
  return bindAndUse(model, variant, checkpoint, [&](const kiln_model_t &bound, kiln_error_t *error) {
    return kiln_save_packed(&bound, path.c_str(), error);
  });
}

} // namespace kiln
