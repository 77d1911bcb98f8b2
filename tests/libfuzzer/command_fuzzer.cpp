// SPDX-License-Identifier: Apache-2.0
// The command line of `kiln`, one word per line, in a folder without specs, and without the compiler's library.
#include "words.h"

using namespace kiln_fuzz;

int kiln_main(int argc, char **argv); // defined in kiln.cpp

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  enterNoFolder();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto words = wordsOf("kiln", data, size);
  if (!words)
    return -1;
  const int status = kiln_main(static_cast<int>(words->size()), argumentsOf(*words).data());
  require(status >= 0 && status < 128, "an exit status");
  return 0;
}
