// SPDX-License-Identifier: Apache-2.0
//
// Turns a spec into a program, its generator, which compiles and inspects the model. Put KILN_MODEL at the end of the
// spec, once.
#pragma once

#include "kiln/dsl.h"

namespace kiln {

/// Runs the command line of a generator; it is defined in the compiler's library. `trace` returns the model's graph.
/// Returns the exit status.
int runGenerator(int argc, char **argv, const char *name, Graph (*trace)());

} // namespace kiln

/// Defines the `main` of a spec: KILN_MODEL(gpt, Gpt2<12, 768, 12>) is the generator of a library whose symbols begin
/// with gpt_.
#define KILN_MODEL(name, ...)                                                                                          \
  static_assert(::kiln::detail::is_identifier(#name),                                                                  \
                "kiln: KILN_MODEL: invalid name; expected an identifier in C and C++, got " #name);                    \
  int main(int argc, char **argv) {                                                                                    \
    return ::kiln::runGenerator(argc, argv, #name, [] { return ::kiln::trace<__VA_ARGS__>(); });                       \
  }
