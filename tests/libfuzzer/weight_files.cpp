// SPDX-License-Identifier: Apache-2.0
#include "weight_files.h"
#include "weights/convert.h"
#include "weights/pack.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

namespace kiln_fuzz {

static constexpr kiln_placement_t placed(uint32_t tile, uint32_t dim, kiln_dtype_t stored = KILN_F32,
                                         uint64_t scales = 0, uint32_t group = 0, uint64_t zeros = 0) {
  return {0, 0, tile, dim, 0, scales, static_cast<uint32_t>(stored), group, zeros};
}

/// A weight and its placement.
struct Case {
  kiln_weight_t weight;
  kiln_placement_t placement;
  uint64_t stride, packedBytes;
};

static constexpr Case cases[] = {
    {{"w", KILN_F32, 2, {3, 2}, 1, 0}, placed(0, 0), 0, 64},
    {{"h.{}.w", KILN_F32, 2, {3, 2}, 2, 0}, placed(4, 0), 64, 128},
    {{"w", KILN_F32, 2, {3, 2}, 1, 0}, placed(4, 1), 0, 64},
    {{"w", KILN_BF16, 1, {5}, 1, 0}, placed(0, 0, KILN_BF16), 0, 64},
    {{"w", KILN_F32, 2, {3, 2}, 1, 0}, placed(4, 0, KILN_F16), 0, 64},
    {{"w", KILN_F32, 2, {3, 2}, 1, 0}, placed(4, 0, KILN_I8, 64), 0, 128},
    {{"w", KILN_F32, 2, {8, 32}, 1, 0}, placed(8, 0, KILN_I4, 128, 32), 0, 192},
    {{"w", KILN_F32, 2, {8, 32}, 1, 0}, placed(8, 0, KILN_I4, 128, 32, 144), 0, 192},
    {{"w", KILN_F32, 2, {1, 256}, 1, 0}, placed(0, 0), 0, 1024},
    {{"w", KILN_F32, 0, {}, 1, 0}, placed(0, 0), 0, 64},
    {{"w", KILN_F32, 2, {8, 32}, 1, 0}, placed(8, 0, KILN_I8, 256, 32), 0, 320},
    {{"w", KILN_F32, 2, {8, 256}, 1, 0}, placed(8, 0, KILN_U4, 1024, 32, 1152), 0, 1216},
    {{"w", KILN_F32, 2, {8, 256}, 1, 0}, placed(8, 0, KILN_I6, 1536, 16, 1664), 0, 1728},
    {{"w", KILN_F32, 2, {8, 32}, 1, 0}, placed(8, 0, KILN_F4E2M1, 128, 16, 192), 0, 256},
    {{"w", KILN_F32, 2, {8, 32}, 1, 0}, placed(8, 0, KILN_F8E4M3, 256), 0, 320},
};

/// Number of blocks of memory and files that are not freed.
static int alive = 0;
static kiln_descriptor_t descriptors[std::size(cases)];
static kiln_variant_t variants[std::size(cases)];
static kiln_placement_t placements[std::size(cases)];

Model::Model(uint8_t which) {
  const size_t i = which % std::size(cases);
  placements[i] = cases[i].placement;
  placements[i].stride = cases[i].stride;
  variants[i] = {};
  variants[i].target = "any";
  variants[i].memory_space = KILN_MEMORY_HOST;
  variants[i].placements = &placements[i];
  variants[i].packed_bytes = cases[i].packedBytes;
  descriptors[i] = {KILN_ABI_VERSION, 1, 0, 1, "fuzzed", &cases[i].weight, nullptr, &variants[i], nullptr, 0};
  // No pages of the system, so that accesses outside of a packed weight are detected.
  static const kiln_allocator_t allocator = {
      nullptr,
      [](void *, size_t bytes, size_t alignment) {
        ++alive;
        return std::aligned_alloc(alignment, bytes);
      },
      [](void *, void *memory) {
        --alive;
        std::free(memory);
      },
  };
  const kiln_options_t options = {.allocator = &allocator};
  const kiln_cpu_t cpu = {};
  require(kiln_model_create(&descriptors[i], &cpu, &options, &handle, &error) == KILN_OK, "a model");
}

Model::~Model() {
  kiln_destroy(handle);
  require(alive == 0, "that all is released");
}

void Model::check(kiln_status_t status) {
  require(status == error.status, "the status that is returned");
  require((std::strlen(error.message) > 10) == (status != KILN_OK), "words with a failure, and no others");
  require((handle->packed != nullptr) == (status == KILN_OK), "weights if nothing failed");
  if (status)
    return;
  const kiln_weight_t &weight = handle->descriptor->weights[0];
  std::vector<float> values(kiln_elements_except(&weight, weight.rank));
  const uint64_t rows = weight.rank ? static_cast<uint64_t>(weight.shape[0]) : 1;
  for (uint32_t copy = 0; copy < weight.copies; ++copy) {
    std::string name = weight.name;
    if (const size_t hole = name.find("{}"); hole != std::string::npos)
      name.replace(hole, 2, std::to_string(copy));
    require(kiln_read_weight(handle, name.c_str(), 0, rows, values.data(), &error) == KILN_OK, "weights to read");
  }
}

void readAll(const kiln_tensors_t &table, std::string_view image) {
  for (size_t i = 0; i < table.count; ++i) {
    const kiln_tensor_t &tensor = table.tensors[i];
    require(tensor.begin <= tensor.end && tensor.end <= image.size(), "tensors of the file");
    if (tensor.rank > KILN_MAX_RANK || !(tensor.form || kiln_convert_is_float(tensor.dtype)))
      continue;
    uint64_t elements = 1;
    for (uint32_t dim = 0; dim < tensor.rank; ++dim)
      elements *= static_cast<uint64_t>(tensor.shape[dim]);
    if (elements == 0)
      continue;
    std::vector<float> values(elements);
    const kiln_rounding_t callers = kiln_rounding_begin();
    kiln_convert_read(&tensor, values.data(), 0, elements);
    kiln_rounding_end(callers);
  }
}

std::string_view takePart(std::string_view &input) {
  const size_t end = std::min(input.find(separator), input.size());
  const std::string_view part = input.substr(0, end);
  input.remove_prefix(std::min(end + separator.size(), input.size()));
  return part;
}

} // namespace kiln_fuzz

extern "C" {
/// The only undefined symbol of the run time.
const kiln_descriptor_t kiln_descriptor = {KILN_ABI_VERSION, 0, 0, 0, "none", nullptr, nullptr, nullptr, nullptr, 0};

kiln_status_t __wrap_kiln_file_map(const char *path, bool, kiln_file_t *file, kiln_error_t *error) {
  const auto found = kiln_fuzz::files.find(std::string_view(kiln_base_name(path)));
  *file = {"", 0, path, -1, nullptr};
  if (found == kiln_fuzz::files.end())
    return kiln_error_set(error, KILN_FILE_ERROR, "cannot open \"%s\"", path);
  const std::string &bytes = found->second;
  if (!bytes.empty()) {
    ++kiln_fuzz::alive;
    file->image = std::memcpy(std::malloc(bytes.size()), bytes.data(), bytes.size());
    file->bytes = bytes.size();
  }
  return KILN_OK;
}
void __wrap_kiln_file_unmap(kiln_file_t *file) {
  if (file->copied)
    file->copied->release(file->copied->self, const_cast<void *>(file->image));
  if (file->copied || file->bytes == 0)
    return;
  --kiln_fuzz::alive;
  std::free(const_cast<void *>(file->image));
}
void __wrap_kiln_file_give_back(const kiln_file_t *, const char *, const char *) {}
}
