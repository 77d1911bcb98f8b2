// SPDX-License-Identifier: Apache-2.0
//
// print-random-graphs FIRST COUNT: prints a program that traces the specs of these seeds and compares the results with
// the original graphs. The program needs kiln_random_graphs.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/PrintSpec.h"
#include "tests/fuzz/RandomGraph.h"
#include "tests/fuzz/StoredWeights.h"

using namespace kiln::fuzz;

int main(int argc, char **argv) {
  if (argc < 3)
    return 1;
  const long first = std::atol(argv[1]), end = first + std::atol(argv[2]);
  std::puts("#include \"kiln/dsl.h\"\n\n#include <cstdio>\n#include <limits>\n\n#include \"tests/fuzz/Compare.h\"\n"
            "#include \"tests/fuzz/RandomGraph.h\"\n#include \"tests/fuzz/StoredWeights.h\"\n\nnamespace {\n");
  for (long seed = first; seed < end; ++seed) {
    RandomModel model = randomModel(static_cast<std::uint64_t>(seed));
    drawStorages(model.graph, static_cast<std::uint64_t>(seed));
    std::printf("namespace seed%ld {\n%s}\n", seed, printModel(model.graph, "Fuzzed").c_str());
  }
  std::puts("template <class Model> int compare(int seed) {\n"
            "  auto model = kiln::fuzz::randomModel(static_cast<std::uint64_t>(seed));\n"
            "  kiln::fuzz::drawStorages(model.graph, static_cast<std::uint64_t>(seed));\n"
            "  const std::string difference = kiln::fuzz::difference(model.graph, kiln::trace<Model>());\n"
            "  if (!difference.empty())\n"
            "    std::printf(\"seed %d: %s\\n\", seed, difference.c_str());\n"
            "  return !difference.empty();\n}\n\n} // namespace\n\nint main() {\n  int different = 0;");
  for (long seed = first; seed < end; ++seed)
    std::printf("  different += compare<seed%ld::Fuzzed>(%ld);\n", seed, seed);
  std::puts("  return different;\n}");
  return 0;
}
