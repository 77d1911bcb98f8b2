// SPDX-License-Identifier: Apache-2.0
// A byte that selects the model, then a GGUF file, some of whose tensors are renamed, permuted or ignored.
#include "weight_files.h"

#include <iterator>

using namespace kiln_fuzz;

static const kiln_rename_t renames[] = {{"left.*", nullptr, 0, 0},
                                        {"zero.*", nullptr, 0, KILN_RENAME_ZEROS},
                                        {"q.*", "*", 2, 0},
                                        {"in.*.x", "h.*.w", 0, 0}};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  Model model(data[0]);
  files["w"].assign(reinterpret_cast<const char *>(data) + 1, size - 1);
  model.check(kiln_bind_gguf(model.handle, "w", renames, std::size(renames), &model.error));

  const std::string &image = files["w"];
  const kiln_renames_t names = {renames, std::size(renames)};
  kiln_tensors_t table;
  if (kiln_gguf_open(image.data(), image.size(), &names, &model.handle->allocator, &table, nullptr) == KILN_OK) {
    readAll(table, image);
    kiln_tensors_release(&table, &model.handle->allocator);
  }
  return 0;
}
