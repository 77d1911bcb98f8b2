// SPDX-License-Identifier: Apache-2.0
//
#include "compiler/package/PackWeights.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/package/DeriveHere.h"
#include "runtime/src/core/instance.h"
#include "runtime/src/published/published.h"
#include "runtime/src/weights/bind.h"

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
  const ParallelLayout *parallel = model.parallel ? &*model.parallel : nullptr;
  if (parallel && parallel->ranks > 1)
    text += fmt::format("{} ranks\n", parallel->ranks);
  if (parallel && parallel->stages > 1)
    text += fmt::format("{} stages\n", parallel->stages);
  for (auto [number, place] : llvm::enumerate(variant.placements)) {
    const size_t index = number % model.weights.size();
    const WeightInterface &weight = model.weights[index];
    const TensorLayout layout = parallel ? parallel->weights[index] : TensorLayout();
    text += fmt::format("{} {} {} x {} [{}] at {} + {} tile {} dim {} shift {} as {} scales {} group {} zeros {}\n",
                        weight.name.size(), weight.name, name_of(weight.element),
                        layout.allCopies ? layout.allCopies : weight.copies, fmt::join(weight.shape, ", "),
                        place.offset, place.stride, place.tile, place.dim, place.shift, name_of(place.element),
                        place.scales, place.group, place.zeros);
    for (const WeightSection &section : layout.slice ? layout.slice->sections : std::vector<WeightSection>())
      text += fmt::format("{} from {} + {}\n", section.extent, section.first, section.step);
  }
  for (const DerivedWeight &derived : variant.derived)
    text += fmt::format("{} x {} derived at {} + {}\n", derived.copies, derived.bytes, derived.offset, derived.stride);
  text += variant.derivationDigest;
  const std::array<uint8_t, 32> hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  std::array<uint64_t, 4> digest;
  static_assert(sizeof digest == sizeof hash);
  std::memcpy(digest.data(), hash.data(), sizeof digest);
  return digest;
}

/// Returns the parts of a descriptor that binding reads.
static std::vector<kiln_weight_t> describeWeights(llvm::ArrayRef<WeightInterface> weights) {
  std::vector<kiln_weight_t> described;
  for (const WeightInterface &weight : weights) {
    kiln_weight_t &to = described.emplace_back();
    to.name = weight.name.c_str();
    to.dtype = static_cast<uint32_t>(weight.element);
    to.rank = static_cast<uint32_t>(weight.shape.size());
    llvm::copy(weight.shape, to.shape);
    to.copies = static_cast<uint32_t>(weight.copies);
  }
  return described;
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
  uint32_t flags = 0;

  kiln_rename_t described() const { return {from.c_str(), to.empty() ? nullptr : to.c_str(), heads, flags}; }
};

} // namespace

std::string checkRename(const std::string &text) {
  const size_t at = text.find('=');
  return at == 0 || at == std::string::npos
             ? fmt::format("wrong form; expected FROM=TO, or FROM= for an ignored tensor, got \"{}\"", text)
             : "";
}

/// Returns the renames of the command line, then those of the file.
static llvm::Expected<std::vector<Rename>> readRenames(const Checkpoint &checkpoint) {
  std::vector<Rename> renames;
  for (const std::string &text : checkpoint.renameTexts) {
    const size_t at = text.find('=');
    renames.push_back({text.substr(0, at), text.substr(at + 1)});
  }
  const std::string &path = checkpoint.renames;
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
    if (rename.from.front() == '?') {
      rename.flags |= KILN_RENAME_OPTIONAL;
      rename.from.erase(0, 1);
    }
    if (rename.to == "=0") {
      rename.flags |= KILN_RENAME_ZEROS;
      rename.to.clear();
    }
    std::string heads, more;
    if (words >> heads && (rename.to.empty() || llvm::StringRef(heads).getAsInteger(10, rename.heads) || words >> more))
      return llvm::createStringError(
          fmt::format("line {} of \"{}\": wrong form; expected FROM, FROM TO, FROM TO HEADS or FROM =0, got \"{}\"",
                      number, path, line));
    renames.push_back(std::move(rename));
  }
  return renames;
}

static std::vector<kiln_rename_t> describeRenames(const std::vector<Rename> &renames) {
  std::vector<kiln_rename_t> described;
  for (const Rename &rename : renames)
    described.push_back(rename.described());
  return described;
}

static bool isGguf(const Checkpoint &checkpoint) { return llvm::StringRef(checkpoint.path).ends_with(".gguf"); }

static kiln_quantization_t quantizationOf(const Checkpoint &checkpoint) {
  const std::string &name = checkpoint.quantization;
  return name == "awq"     ? KILN_AWQ
         : name == "fp8"   ? KILN_FP8
         : name == "mxfp4" ? KILN_MXFP4
         : name == "nvfp4" ? KILN_NVFP4
         : name == "gptq"  ? KILN_GPTQ
                           : KILN_GPTQ_V2;
}

static kiln_status_t bindCheckpoint(kiln_model_t *model, const Checkpoint &checkpoint,
                                    const std::vector<Rename> &renames, kiln_error_t *error) {
  const std::vector<kiln_rename_t> described = describeRenames(renames);
  const char *path = checkpoint.path.c_str();
  if (isGguf(checkpoint))
    return kiln_bind_gguf(model, path, described.data(), described.size(), error);
  if (checkpoint.quantization.empty())
    return kiln_bind_weights_renamed(model, path, described.data(), described.size(), error);
  return kiln_bind_quantized(model, path, quantizationOf(checkpoint), described.data(), described.size(), error);
}

/// Creates a model with these weights for the duration of `use`.
static llvm::Error withModel(const ModelInterface &model, const std::vector<kiln_weight_t> &weights,
                             const Variant &variant,
                             llvm::function_ref<kiln_status_t(kiln_model_t &, kiln_error_t *)> use) {
  const std::vector<kiln_placement_t> placements = describePlacements(variant);
  // The variant requires no CPU feature and no device, so that any machine can pack weights.
  kiln_variant_t code = {};
  code.target = variant.target.c_str();
  code.memory_space = KILN_MEMORY_HOST;
  code.placements = placements.data();
  code.packed_bytes = variant.packedBytes;
  llvm::copy(packedDigest(model, variant), code.digest);
  kiln_descriptor_t descriptor = {};
  descriptor.abi_version = KILN_ABI_VERSION;
  descriptor.weight_count = static_cast<uint32_t>(weights.size());
  descriptor.variant_count = 1;
  descriptor.name = model.name.c_str();
  descriptor.weights = weights.data();
  descriptor.variants = &code;

  const kiln_cpu_t cpu = {};
  const kiln_options_t options = {};
  kiln_model_t *made = nullptr;
  kiln_error_t error = {};
  kiln_status_t status = kiln_model_create(&descriptor, &cpu, &options, &made, &error);
  const std::unique_ptr<kiln_model_t, decltype(&kiln_destroy)> owner(made, kiln_destroy);
  if (!status)
    status = use(*made, &error);
  return status ? llvm::createStringError(error.message) : llvm::Error::success();
}

/// Binds a checkpoint to a model that exists for the duration of `use`.
static llvm::Error bindAndUse(const ModelInterface &model, const Variant &variant, const Checkpoint &checkpoint,
                              llvm::function_ref<kiln_status_t(const kiln_model_t &, kiln_error_t *)> use) {
  if (model.parallel && model.parallel->dividesWeights())
    return llvm::createStringError(fmt::format("packing: library for several processes; expected one for one process: "
                                               "those of several save what they have bound, by {}_save_packed",
                                               model.name));
  llvm::Expected<std::vector<Rename>> renames = readRenames(checkpoint);
  if (!renames)
    return renames.takeError();
  return withModel(model, describeWeights(model.weights), variant, [&](kiln_model_t &made, kiln_error_t *error) {
    if (const kiln_status_t status = bindCheckpoint(&made, checkpoint, *renames, error))
      return status;
    try {
      deriveWeights(made, variant);
    } catch (const std::exception &wrong) {
      return kiln_error_set(error, KILN_INTERNAL_ERROR, "derived weights of \"%s\": %s", model.name.c_str(),
                            wrong.what());
    }
    return use(made, error);
  });
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

/// Returns text such as "F32 [3, 4]".
static std::string typeAndShape(uint32_t dtype, llvm::ArrayRef<int64_t> shape) {
  return fmt::format("{} [{}]", kiln_safetensors_dtype_text(dtype), fmt::join(shape, ", "));
}
static std::string typeAndShape(const kiln_tensor_t &tensor) {
  return typeAndShape(tensor.dtype, {tensor.shape, std::min<size_t>(tensor.rank, KILN_MAX_RANK)});
}

static std::string tensorName(const kiln_tensor_t &tensor) { return {tensor.name, tensor.name_length}; }
static std::string tensorName(const kiln_name_t &name) {
  std::string text;
  for (int i = 0; i < 3; ++i)
    text.append(name.parts[i], name.lengths[i]);
  return text;
}

namespace {

/// Finds the one rename that maps, for all missing names, the nearest name to the missing name by removing or adding a
/// prefix.
class PrefixRename {
public:
  void add(const std::string &missing, const std::string &nearest) {
    const llvm::StringRef longer = missing.size() < nearest.size() ? nearest : missing;
    const llvm::StringRef shorter = missing.size() < nearest.size() ? missing : nearest;
    std::string rename;
    if (longer.ends_with(shorter)) {
      const llvm::StringRef prefix = longer.drop_back(shorter.size());
      rename =
          missing.size() < nearest.size() ? fmt::format("{}*=*", prefix.str()) : fmt::format("*={}*", prefix.str());
    }
    isOne = !rename.empty() && (text.empty() || text == rename) && isOne;
    text = rename;
  }
  std::string get() const { return isOne ? text : ""; }

private:
  std::string text;
  bool isOne = true;
};

/// The context that the runtime passes to the comparison functions.
struct Comparison {
  const Checkpoint &checkpoint;
  kiln_renames_t renames;
  CheckpointDifferences result;
};

} // namespace

/// Compares the model's weights with a table of tensors that has the model's names.
static void compareTable(const kiln_model_t *model, const kiln_tensors_t &table, CheckpointDifferences &result) {
  static const char *const kinds[KILN_DIFFERENCE_KINDS] = {"missing", "shape", "type", "unexpected"};
  kiln_differences_t walk;
  kiln_difference_t found;
  size_t width = 0;
  PrefixRename rename;
  kiln_differences_begin(&walk, model, &table);
  for (; kiln_differences_next(&walk, &found); ++result.count)
    width = std::max(width, (found.weight ? tensorName(*found.name) : tensorName(*found.tensor)).size());
  kiln_differences_begin(&walk, model, &table);
  while (kiln_differences_next(&walk, &found)) {
    const std::string name = found.weight ? tensorName(*found.name) : tensorName(*found.tensor);
    std::string words = found.weight
                            ? "expected " + typeAndShape(found.weight->dtype, {found.weight->shape, found.weight->rank})
                            : "got " + typeAndShape(*found.tensor);
    if (found.weight && found.tensor)
      words += ", got " + typeAndShape(*found.tensor);
    if (const kiln_tensor_t *nearest = found.tensor ? nullptr : kiln_nearest(&table, found.weight, found.name)) {
      words += fmt::format("; nearest: {} {}", tensorName(*nearest), typeAndShape(*nearest));
      rename.add(name, tensorName(*nearest));
    }
    result.text += fmt::format("{:<10}  {:<{}}  {}\n", kinds[found.kind], name, width, words);
  }
  result.tensors = table.count;
  if (const std::string text = rename.get(); !text.empty())
    result.text += fmt::format("try --rename '{}'\n", text);
}

/// Compares the weights with the stored tensors of one or several safetensors files.
static kiln_status_t compareStored(kiln_model_t *model, kiln_tensors_t *stored, const void *context,
                                   kiln_error_t *error) {
  Comparison &comparison = **static_cast<Comparison *const *>(context);
  const kiln_quantized_t how = {quantizationOf(comparison.checkpoint), comparison.renames};
  kiln_tensors_t table;
  const kiln_status_t status = comparison.checkpoint.quantization.empty()
                                   ? kiln_renamed(stored, &comparison.renames, &model->allocator, &table, error)
                                   : kiln_quantized_join(stored, &how, &model->allocator, &table, error);
  if (status)
    return status;
  compareTable(model, table, comparison.result);
  kiln_tensors_release(&table, &model->allocator);
  return KILN_OK;
}

static kiln_status_t compareGguf(kiln_model_t *model, Comparison &comparison, kiln_error_t *error) {
  kiln_file_t file;
  kiln_tensors_t table;
  kiln_status_t status = kiln_source_open(model, comparison.checkpoint.path.c_str(), &file, error);
  if (status)
    return status;
  if (!(status = kiln_gguf_open_file(&file, &comparison.renames, &model->allocator, &table, error))) {
    compareTable(model, table, comparison.result);
    kiln_tensors_release(&table, &model->allocator);
  }
  kiln_file_unmap(&file);
  return status;
}

llvm::Expected<CheckpointDifferences> compareCheckpoint(const ModelInterface &model, const Variant &variant,
                                                        const Checkpoint &checkpoint) {
  llvm::Expected<std::vector<Rename>> renames = readRenames(checkpoint);
  if (!renames)
    return renames.takeError();
  const std::vector<kiln_rename_t> described = describeRenames(*renames);
  Comparison comparison{checkpoint, {described.data(), described.size()}, {}};
  const std::vector<WeightInterface> weights = fileWeights(model);
  llvm::Error error = withModel(model, describeWeights(weights), variant, [&](kiln_model_t &made, kiln_error_t *words) {
    Comparison *const context = &comparison;
    return isGguf(checkpoint) ? compareGguf(&made, comparison, words)
                              : kiln_checkpoint_take(&made, checkpoint.path.c_str(), compareStored, &context, words);
  });
  if (error)
    return std::move(error);
  return std::move(comparison.result);
}

} // namespace kiln
