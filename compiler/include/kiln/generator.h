// SPDX-License-Identifier: Apache-2.0
//
// Makes a spec a program: its generator, which compiles and inspects the model. Put KILN_MODEL once, at the end of the
// spec.
#pragma once

#include "kiln/dsl.h"

namespace kiln {

/// The command line of a generator, in the compiler's library; `trace` gives the model's graph. Returns the exit
/// status.
int runGenerator(int argc, char **argv, const char *name, Graph (*trace)());

} // namespace kiln

/// The `main` of a spec: KILN_MODEL(gpt, Gpt2<12, 768, 12>) makes the generator of a library whose symbols begin with
/// gpt_.
#define KILN_MODEL(name, ...)                                                                                          \
  int main(int argc, char **argv) {                                                                                    \
    return ::kiln::runGenerator(argc, argv, #name, [] { return ::kiln::trace<__VA_ARGS__>(); });                       \
  }
