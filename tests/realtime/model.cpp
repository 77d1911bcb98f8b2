// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include "weights.h"
#include <algorithm>
#include <cstdio>
#include <string_view>

namespace kiln::realtime {

static void check(kiln_status_t status, const kiln_error_t &error) {
  if (status == KILN_OK)
    return;
  std::fprintf(stderr, "%s: %s\n", library.descriptor.name, error.message);
  std::abort();
}

/// Returns the rows of the library's table of weights.
static std::vector<testing::WeightShape> tableOf(const kiln_descriptor_t &descriptor) {
  static const char *const types[] = {
#define KILN_ELEMENT_TYPE(name, NAME, file, kind, bits, digits, c_type, mlir) #name,
#include "kiln/element_types.def"
  };
  std::vector<testing::WeightShape> table;
  for (uint32_t i = 0; i < descriptor.weight_count; ++i) {
    const kiln_weight_t &weight = descriptor.weights[i];
    table.push_back({weight.name, weight.copies, {weight.shape, weight.shape + weight.rank}, types[weight.dtype]});
    if (descriptor.shards && descriptor.shards[i].section_count > 0) // the file has the whole tensor of all ranks
      table.back().shape[descriptor.shards[i].dim] = static_cast<int64_t>(descriptor.shards[i].extent);
  }
  return table;
}

uint64_t bytesOfWeights(const kiln_descriptor_t &descriptor) {
  uint64_t bytes = 0;
  for (const testing::WeightShape &weight : tableOf(descriptor)) {
    uint64_t elements = static_cast<uint64_t>(weight.copies);
    for (int64_t extent : weight.shape)
      elements *= static_cast<uint64_t>(extent);
    bytes += elements * (weight.type == "f32" ? 4 : 2);
  }
  return bytes;
}

Model::Model(Guard guard)
    : guard(guard), ranks(library.descriptor.ranks), replicas(library.descriptor.replicas),
      stages(library.descriptor.stages) {
  allocator = {this,
               [](void *self, size_t bytes, size_t) -> void * { // sizes are multiples of the alignment
                 auto &model = *static_cast<Model *>(self);
                 return model.blocks.emplace_back(bytes, model.guard).memory.data();
               },
               [](void *self, void *memory) {
                 static_cast<Model *>(self)->blocks.remove_if(
                     [&](const Block &block) { return block.memory.data() == memory; });
               }};
  kiln_options_t options = {.allocator = &allocator, .device = KILN_CPU};
  if (const kiln_communicator_t *own = ranks.get()) {
    options.rank = own->rank;
    options.ranks = own->size;
  }
  if (const kiln_communicator_t *own = replicas.get()) {
    options.replica = own->rank;
    options.replicas = own->size;
  }
  if (const kiln_communicator_t *own = stages.get()) {
    options.stage = own->rank;
    options.stages = own->size;
  }
  kiln_error_t error{};
  check(library.create(&options, &handle, &error), error);
  const testing::WeightImage image(tableOf(library.descriptor));
  check(library.bind(handle, image.data(), image.size(), &error), error);
  const std::string_view target = library.target(handle);
  variant = std::find_if(library.descriptor.variants, library.descriptor.variants + library.descriptor.variant_count,
                         [&](const kiln_variant_t &other) { return other.target == target; });
  const bool trains = library.descriptor.state_count > 0;
  for (Block &block : blocks)
    if (trains)
      block.bound.assign(block.memory.data(), block.memory.data() + block.memory.size());
    else
      block.memory.makeReadOnly();
}

Model::~Model() { library.destroy(handle); }

void Model::restore() {
  for (Block &block : blocks)
    std::copy(block.bound.begin(), block.bound.end(), block.memory.data());
}

bool Model::isIntact() const {
  return std::all_of(blocks.begin(), blocks.end(), [](const Block &block) { return block.memory.isIntact(); });
}

} // namespace kiln::realtime
