// SPDX-License-Identifier: Apache-2.0
// Renames symbols of relocatable WebAssembly: defined symbols and imports.
#include "compiler/object/Wasm.h"

#include "objects.h"

namespace kiln {
namespace {

constexpr char wasmSource[] = R"(
    @kiln_table = constant [3 x i32] [i32 1, i32 2, i32 3]
    @kiln_elsewhere = external constant i32
    declare i32 @hook_call(ptr)
    declare i32 @other(i32)
    define i32 @kiln_run(i32 %i) {
      %at = getelementptr [3 x i32], ptr @kiln_table, i32 0, i32 %i
      %a = call i32 @hook_call(ptr %at)
      %b = call i32 @other(i32 %a)
      %c = load i32, ptr @kiln_elsewhere
      %sum = add i32 %b, %c
      ret i32 %sum
    })";

std::string compiled() { return objectOf(wasmSource, {"wasm32-unknown-wasip1", "generic"}); }

/// Ignores the stack pointer and similar symbols.
SymbolNames wasmSymbolsOf(const std::string &object) { return symbolsOf(object, "__"); }

TEST(Wasm, SymbolsGetTheModelsPrefix) {
  const std::string object = compiled();
  ASSERT_TRUE(isWasm(object));
  EXPECT_EQ(wasmSymbolsOf(object), (SymbolNames{"+kiln_run", "+kiln_table", "hook_call", "kiln_elsewhere", "other"}));
  llvm::Expected<std::string> renamed = renameForModel(object, "net", {"hook_"});
  ASSERT_TRUE(static_cast<bool>(renamed)) << llvm::toString(renamed.takeError());
  EXPECT_EQ(wasmSymbolsOf(*renamed), (SymbolNames{"+net_run", "+net_table", "net_call", "net_elsewhere", "other"}));
  // Import names change too: a linker compares those of equal symbols.
  EXPECT_EQ(renamed->find("hook_call"), std::string::npos);
  llvm::Expected<uint64_t> before = textBytes(object), after = textBytes(*renamed);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(*before, *after);
}

TEST(Wasm, NothingToRenameChangesNoByte) {
  const std::string object = compiled();
  llvm::Expected<std::string> same = renameWasmSymbols(object, {});
  ASSERT_TRUE(static_cast<bool>(same)) << llvm::toString(same.takeError());
  // LEB128 lengths may be padded; the renamed object does not pad them.
  EXPECT_LE(same->size(), object.size());
  EXPECT_EQ(wasmSymbolsOf(*same), wasmSymbolsOf(object));
}

/// Truncated objects are rejected, unless the truncation left a complete object.
TEST(Wasm, CutObjectsAreRefused) {
  const std::string object = compiled();
  int refused = 0;
  for (size_t bytes = 0; bytes < object.size(); ++bytes) {
    llvm::Expected<std::string> renamed = renameWasmSymbols(llvm::StringRef(object).take_front(bytes), {});
    if (renamed)
      continue;
    ++refused;
    EXPECT_NE(llvm::toString(renamed.takeError()).find("object of WebAssembly: malformed; expected"),
              std::string::npos);
  }
  EXPECT_GT(refused, int(object.size() * 9 / 10));
}

} // namespace
} // namespace kiln
