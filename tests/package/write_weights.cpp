// SPDX-License-Identifier: Apache-2.0
// write_weights FOLDER: writes the weights of the small models as safetensors files, for libraries that embed them; and
// those of one under other names, with a tensor that it does not have.
#include "scaled.h"
#include "support.h"
#include "two_models.h"

#include <fstream>

namespace kiln::testing {
namespace {

bool write(const std::vector<Weight> &weights, const std::string &path) {
  WeightImage image(weights);
  std::ofstream out(path, std::ios::binary);
  out.write(image.characters().data(), static_cast<std::streamsize>(image.size()));
  return out.good();
}

template <class Handle> bool write(const Library<Handle> &library, const std::string &path) {
  return write(counterWeights(library.weights), path);
}

template <class Handle> std::vector<Weight> renamed(const Library<Handle> &library) {
  std::vector<Weight> weights = counterWeights(library.weights);
  for (Weight &weight : weights)
    weight.name = "module." + weight.name;
  weights.push_back({"extra", {2}, {1, 2}});
  return weights;
}

} // namespace
} // namespace kiln::testing

int main(int, char **argv) {
  using namespace kiln::testing;
  const std::string folder = argv[1];
  return write(KILN_TEST_LIBRARY(small, SMALL_WEIGHTS), folder + "/small.safetensors") &&
                 write(KILN_TEST_LIBRARY(pair, PAIR_WEIGHTS), folder + "/pair.safetensors") &&
                 write(KILN_TEST_LIBRARY(scaled, SCALED_WEIGHTS), folder + "/scaled.safetensors") &&
                 write(renamed(KILN_TEST_LIBRARY(scaled, SCALED_WEIGHTS)), folder + "/renamed.safetensors")
             ? 0
             : 1;
}
