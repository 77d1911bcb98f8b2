// SPDX-License-Identifier: Apache-2.0
// A byte that selects the model, then a packed file, which is mapped as in a program.
#include "weight_files.h"

#include <sys/mman.h>
#include <unistd.h>

using namespace kiln_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int file = memfd_create("packed", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (size == 0)
    return 0;
  Model model(data[0]);
  require(ftruncate(file, 0) == 0 && pwrite(file, data + 1, size - 1, 0) == static_cast<ssize_t>(size - 1), "a file");
  model.check(kiln_bind_packed(model.handle, path.c_str(), &model.error));
  return 0;
}
