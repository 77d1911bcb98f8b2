// SPDX-License-Identifier: Apache-2.0
//
// write_checkpoint TENSORS FILE: writes a safetensors file with the counter's weights. A line of TENSORS is a name, an
// element type and dimensions.
#include "weights.h"

#include <cstdio>
#include <fstream>
#include <sstream>

using namespace kiln::testing;

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  std::ifstream lines(argv[1]);
  std::vector<WeightShape> shapes;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    WeightShape shape;
    words >> shape.name >> shape.type;
    for (std::int64_t extent; words >> extent;)
      shape.shape.push_back(extent);
    shapes.push_back(shape);
  }
  WeightImage image(shapes);
  std::ofstream file(argv[2], std::ios::binary);
  file.write(image.characters().data(), static_cast<std::streamsize>(image.size()));
  if (shapes.empty() || !file.flush()) {
    std::fprintf(stderr, "cannot read %s or write %s\n", argv[1], argv[2]);
    return 1;
  }
}
