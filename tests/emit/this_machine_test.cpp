// SPDX-License-Identifier: Apache-2.0
// Which targets are for the machine that runs the compiler.
#include "compiler/object/ThisMachine.h"

#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

/// Returns this process's triple after a change.
template <class Change> std::string changed(Change change) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  change(triple);
  return triple.str();
}

TEST(ThisMachine, HasItsArchitectureSystemAndLibrary) {
  using llvm::Triple;
  EXPECT_TRUE(isForThisMachine(llvm::sys::getProcessTriple()));
  EXPECT_TRUE(isForThisMachine(changed([](Triple &triple) { triple.setVendorName("any"); })));
  EXPECT_FALSE(isForThisMachine(changed([](Triple &triple) { triple.setArch(Triple::loongarch64); })));
  EXPECT_FALSE(isForThisMachine(changed([](Triple &triple) { triple.setOS(Triple::FreeBSD); })));
  EXPECT_FALSE(isForThisMachine(changed([](Triple &triple) { triple.setEnvironment(Triple::Android); })));
  EXPECT_FALSE(isForThisMachine(""));
}

// The triple that compilers print, and that of targets/cpu/Cpu.cpp.
#if defined(__linux__) && defined(__GLIBC__)
TEST(ThisMachine, IsFoundByShortAndLongTriples) {
#if defined(__x86_64__)
  EXPECT_TRUE(isForThisMachine("x86_64-linux-gnu"));
  EXPECT_TRUE(isForThisMachine("x86_64-unknown-linux-gnu"));
  EXPECT_FALSE(isForThisMachine("aarch64-unknown-linux-gnu"));
#elif defined(__aarch64__)
  EXPECT_TRUE(isForThisMachine("aarch64-linux-gnu"));
  EXPECT_TRUE(isForThisMachine("aarch64-unknown-linux-gnu"));
  EXPECT_FALSE(isForThisMachine("x86_64-unknown-linux-gnu"));
#endif
}
#endif

} // namespace
} // namespace kiln::testing
