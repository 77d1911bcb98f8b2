// SPDX-License-Identifier: Apache-2.0
// A byte that selects the model and whether a rename must match, then a GGUF file, some of whose tensors are renamed,
// permuted or ignored.
#include "weight_files.h"

#include <algorithm>
#include <iterator>

using namespace kiln_fuzz;

static const kiln_rename_t each[] = {{"left.*", nullptr, 0, KILN_RENAME_OPTIONAL},
                                     {"zero.*", nullptr, 0, KILN_RENAME_ZEROS | KILN_RENAME_OPTIONAL},
                                     {"q.*", "*", 2, KILN_RENAME_OPTIONAL},
                                     {"in.*.x", "h.*.w", 0, KILN_RENAME_OPTIONAL}};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  Model model(data[0]);
  kiln_rename_t renames[std::size(each)];
  std::copy(std::begin(each), std::end(each), renames);
  if (data[0] & 0x80) // one must match
    renames[0].flags = 0;
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
