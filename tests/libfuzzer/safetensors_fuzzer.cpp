// SPDX-License-Identifier: Apache-2.0
// A byte that selects the model, then a safetensors file.
#include "weight_files.h"

using namespace kiln_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  Model model(data[0]);
  files["w"].assign(reinterpret_cast<const char *>(data) + 1, size - 1);
  model.check(kiln_bind_weights(model.handle, "w", &model.error));

  kiln_tensors_t table;
  const std::string &image = files["w"];
  if (kiln_safetensors_open(image.data(), image.size(), &model.handle->allocator, &table, nullptr) == KILN_OK) {
    readAll(table, image);
    kiln_tensors_release(&table, &model.handle->allocator);
  }
  return 0;
}
