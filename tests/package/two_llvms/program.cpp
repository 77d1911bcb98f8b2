// SPDX-License-Identifier: Apache-2.0
#include "halide.h"

#include <cstdio>

static bool compiles(const std::string &text, const char *version) {
  const bool isRight = text.find("movl\t$7, %eax") != std::string::npos && text.ends_with(version);
  if (!isRight)
    std::printf("LLVM %s compiled this:\n%s\n", version, text.c_str());
  return isRight;
}

int main() {
  // The old one again after the new one: neither changed the other's global state.
  if (!compiles(Halide::compileOld(), OLD) || !compiles(Halide::compileNew(), NEW) ||
      !compiles(Halide::compileOld(), OLD))
    return 1;
  try {
    Halide::fail();
  } catch (const Halide::CompileError &error) {
    std::puts(error.what());
    return 0;
  }
}
