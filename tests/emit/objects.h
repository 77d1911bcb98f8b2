// SPDX-License-Identifier: Apache-2.0
//
// Objects of LLVM IR for several systems, and the symbols that other objects see of them.
#pragma once

#include "compiler/object/Object.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace kiln {

using SymbolNames = std::vector<std::string>;

/// Compiles the text of a module.
inline std::string objectOf(const char *ir, const CpuName &cpu) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic wrong;
  auto module = llvm::parseAssemblyString(ir, wrong, context);
  EXPECT_TRUE(module) << wrong.getMessage().str();
  llvm::Expected<std::string> object = compileToObject(*module, cpu);
  EXPECT_TRUE(static_cast<bool>(object)) << llvm::toString(object.takeError());
  return *object;
}

/// Returns sorted names, with "+" before defined ones, without those that begin with `ignored`.
inline SymbolNames symbolsOf(const std::string &object, llvm::StringRef ignored) {
  SymbolNames names;
  llvm::Expected<std::vector<ObjectSymbol>> symbols = globalSymbols(object);
  EXPECT_TRUE(static_cast<bool>(symbols)) << llvm::toString(symbols.takeError());
  for (const ObjectSymbol &symbol : *symbols)
    if (!llvm::StringRef(symbol.name).starts_with(ignored))
      names.push_back((symbol.defined ? "+" : "") + symbol.name);
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace kiln
