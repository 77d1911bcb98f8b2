// SPDX-License-Identifier: Apache-2.0
// A byte that selects the model and whether a rename must match, one that selects the 4-bit format, then a safetensors
// file in this format.
#include "weight_files.h"

#include <algorithm>
#include <iterator>

using namespace kiln_fuzz;

static const kiln_rename_t each[] = {{"left.*", nullptr, 0, KILN_RENAME_OPTIONAL},
                                     {"w.bias", nullptr, 0, KILN_RENAME_ZEROS | KILN_RENAME_OPTIONAL},
                                     {"in.*.x", "h.*.w", 0, KILN_RENAME_OPTIONAL}};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  Model model(data[0]);
  kiln_rename_t renames[std::size(each)];
  std::copy(std::begin(each), std::end(each), renames);
  if (data[0] & 0x80) // one must match
    renames[0].flags = 0;
  files["w"].assign(reinterpret_cast<const char *>(data) + 2, size - 2);
  const auto quantization = static_cast<kiln_quantization_t>(KILN_GPTQ + data[1] % 3);
  model.check(kiln_bind_quantized(model.handle, "w", quantization, renames, std::size(renames), &model.error));
  return 0;
}
