// SPDX-License-Identifier: Apache-2.0
// The command line of a generator, one word per line, up to the point where its model would be traced.
#include "kiln/generator.h"
#include "words.h"

using namespace kiln_fuzz;

namespace {
/// Thrown when the command line is correct.
struct Traced {};
} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  enterNoFolder();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto words = wordsOf("generator", data, size);
  if (!words)
    return -1;
  try {
    const int status = kiln::runGenerator(static_cast<int>(words->size()), argumentsOf(*words).data(), "fuzzed",
                                          []() -> kiln::Graph { throw Traced(); });
    require(status >= 0 && status < 128, "an exit status");
  } catch (const Traced &) {
  }
  return 0;
}
