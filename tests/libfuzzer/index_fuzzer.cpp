// SPDX-License-Identifier: Apache-2.0
// A byte that selects the model, then the index of several files and the files, which are called a, b and c.
#include "weight_files.h"

using namespace kiln_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string_view input(reinterpret_cast<const char *>(data) + 1, size - 1);
  Model model(data[0]);
  files.clear();
  for (const char *name : {"i.json", "a", "b", "c"})
    if (!input.empty() || *name == 'i')
      files[name] = takePart(input);
  model.check(kiln_bind_weights(model.handle, "folder/i.json", &model.error));
  return 0;
}
