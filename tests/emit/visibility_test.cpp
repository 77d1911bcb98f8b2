// SPDX-License-Identifier: Apache-2.0
// Which symbols of an object a program or shared object exports by default, for each object format: no symbol of an
// archive's objects, and only the given symbols of a shared object's.
#include "compiler/object/Object.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

namespace kiln {
namespace {

struct ObjectFormat {
  const char *name, *triple, *cpu;
};

void PrintTo(const ObjectFormat &format, std::ostream *out) { *out << format.name; }

constexpr ObjectFormat formats[] = {{"x86_64", "x86_64-unknown-linux-gnu", "x86-64"},
                                    {"aarch64", "aarch64-unknown-linux-gnu", "generic"},
                                    {"riscv64", "riscv64-unknown-linux-gnu", "generic-rv64"},
                                    {"wasm32", "wasm32-unknown-wasip1", "generic"},
                                    {"windows", "x86_64-w64-windows-gnu", "x86-64"},
                                    {"macos_arm64", "arm64-apple-macosx11.0.0", "apple-m1"},
                                    {"macos_x86_64", "x86_64-apple-macosx11.0.0", "x86-64"},
                                    {"android", "aarch64-unknown-linux-android21", "generic"},
                                    {"ios", "arm64-apple-ios14.0", "apple-a7"},
                                    {"windows_aarch64", "aarch64-w64-windows-gnu", "generic"}};

/// Compiles as other code generators do: each symbol is exported.
std::string compiledFor(const ObjectFormat &format) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic wrong;
  std::string source = R"(
    @net_table = constant [3 x i32] [i32 1, i32 2, i32 3]
    @net_elsewhere = external constant i32
    declare i32 @other(ptr)
    define weak_odr i32 @net_vector_exp(i32 %i) {
      ret i32 %i
    }
    define i32 @net_kernel_par_for_y(ptr %closure) {
      %a = call i32 @other(ptr %closure)
      ret i32 %a
    }
    define i32 @net_forward(i32 %i) {
      %at = getelementptr [3 x i32], ptr @net_table, i32 0, i32 %i
      %a = call i32 @net_kernel_par_for_y(ptr %at)
      %b = load i32, ptr @net_elsewhere
      %c = call i32 @net_vector_exp(i32 %b)
      %sum = add i32 %a, %c
      ret i32 %sum
    })";
  if (llvm::StringRef(format.triple).contains("windows")) // where a weak function is another kind of symbol
    source.erase(source.find("weak_odr "), strlen("weak_odr "));
  auto module = llvm::parseAssemblyString(source, wrong, context);
  EXPECT_TRUE(module) << wrong.getMessage().str();
  llvm::Expected<std::string> object = compileToObject(*module, {format.triple, format.cpu});
  EXPECT_TRUE(static_cast<bool>(object)) << llvm::toString(object.takeError());
  llvm::Expected<std::string> shown = setVisibility(*object, [](llvm::StringRef) { return true; });
  EXPECT_TRUE(static_cast<bool>(shown)) << llvm::toString(shown.takeError());
  return *shown;
}

using SymbolNames = std::vector<std::string>;

/// Returns sorted names, with "-" before hidden ones.
SymbolNames definedIn(const std::string &object) {
  SymbolNames names;
  llvm::Expected<std::vector<ExportedSymbol>> symbols = definedSymbols(object);
  EXPECT_TRUE(static_cast<bool>(symbols)) << llvm::toString(symbols.takeError());
  for (const ExportedSymbol &symbol : *symbols)
    names.push_back((symbol.isExported ? "" : "-") + symbol.name);
  std::sort(names.begin(), names.end());
  return names;
}

class Visibility : public ::testing::TestWithParam<ObjectFormat> {};

TEST_P(Visibility, IsThatOfTheGivenSymbolsAlone) {
  const std::string object = compiledFor(GetParam());
  EXPECT_EQ(definedIn(object), (SymbolNames{"net_forward", "net_kernel_par_for_y", "net_table", "net_vector_exp"}));

  llvm::Expected<std::string> hidden = setVisibility(object, [](llvm::StringRef) { return false; });
  ASSERT_TRUE(static_cast<bool>(hidden)) << llvm::toString(hidden.takeError());
  EXPECT_EQ(definedIn(*hidden),
            (SymbolNames{"-net_forward", "-net_kernel_par_for_y", "-net_table", "-net_vector_exp"}));

  llvm::Expected<std::string> shared =
      setVisibility(*hidden, [](llvm::StringRef name) { return name == "net_forward"; });
  ASSERT_TRUE(static_cast<bool>(shared)) << llvm::toString(shared.takeError());
  EXPECT_EQ(definedIn(*shared), (SymbolNames{"-net_kernel_par_for_y", "-net_table", "-net_vector_exp", "net_forward"}));
}

TEST_P(Visibility, ChangesNothingElse) {
  const std::string object = compiledFor(GetParam());
  llvm::Expected<std::string> hidden = setVisibility(object, [](llvm::StringRef) { return false; });
  ASSERT_TRUE(static_cast<bool>(hidden)) << llvm::toString(hidden.takeError());
  llvm::Expected<std::vector<ObjectSymbol>> before = globalSymbols(object), after = globalSymbols(*hidden);
  ASSERT_TRUE(before && after);
  ASSERT_EQ(before->size(), after->size());
  for (size_t i = 0; i < before->size(); ++i) { // undefined symbols are unchanged
    EXPECT_EQ((*before)[i].name, (*after)[i].name);
    EXPECT_EQ((*before)[i].defined, (*after)[i].defined);
  }
  llvm::Expected<uint64_t> text = textBytes(object), textAfter = textBytes(*hidden);
  ASSERT_TRUE(text && textAfter);
  EXPECT_EQ(*text, *textAfter);
}

INSTANTIATE_TEST_SUITE_P(Formats, Visibility, ::testing::ValuesIn(formats),
                         [](const auto &instance) { return std::string(instance.param.name); });

} // namespace
} // namespace kiln
