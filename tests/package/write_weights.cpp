// SPDX-License-Identifier: Apache-2.0
// write_weights FOLDER: writes the weights of the small models as safetensors files, for libraries that embed them.
#include "scaled.h"
#include "support.h"
#include "two_models.h"

#include <fstream>

namespace kiln::testing {
namespace {

template <class Handle> bool write(const Library<Handle> &library, const std::string &path) {
  WeightImage image(counterWeights(library.weights));
  std::ofstream out(path, std::ios::binary);
  out.write(image.characters().data(), static_cast<std::streamsize>(image.size()));
  return out.good();
}

} // namespace
} // namespace kiln::testing

int main(int, char **argv) {
  using namespace kiln::testing;
  const std::string folder = argv[1];
  return write(KILN_TEST_LIBRARY(small, SMALL_WEIGHTS), folder + "/small.safetensors") &&
                 write(KILN_TEST_LIBRARY(pair, PAIR_WEIGHTS), folder + "/pair.safetensors") &&
                 write(KILN_TEST_LIBRARY(scaled, SCALED_WEIGHTS), folder + "/scaled.safetensors")
             ? 0
             : 1;
}
