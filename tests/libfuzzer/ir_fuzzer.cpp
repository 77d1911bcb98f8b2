// SPDX-License-Identifier: Apache-2.0
// Text of the kiln dialect. A text that parses and verifies is printed so that it reads back the same; then all passes
// run on it, which give a module that verifies, or a diagnostic. Mutations keep to the tokens of a text.
#include "compiler/dialect/KilnDialect.h"
#include "compiler/pipeline/Pipeline.h"
#include "library_crash.h"
#include "require.h"
#include "targets/passes/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <memory>
#include <random>
#include <string_view>

using namespace kiln_fuzz;
using namespace mlir;

namespace {

/// Returns a context, a new one for every 1000 inputs, since objects in a context are freed only with it.
MLIRContext *nextContext() {
  static std::unique_ptr<MLIRContext> context;
  static unsigned inputs = 0;
  if (inputs++ % 1000 != 0)
    return context.get();
  DialectRegistry registry;
  mlir::kiln::registerPipelineDialects(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context.get();
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  return text;
}

::kiln::TargetHooks makeHooks() {
  ::kiln::TargetHooks hooks;
  hooks.weightTile = [](int64_t, int64_t) { return 48; };
  hooks.addKernelPasses = mlir::kiln::addExpandMath;
  return hooks;
}

/// Whether MLIR's own parser crashes for a text: results such as %0#2147483648, for which it runs out of memory, are
/// recognised; all other texts are parsed in the child process, without the checks that follow.
bool isBeyondParser(const std::string &text) {
  const llvm::StringRef view = text;
  for (size_t at = view.find('#'); at != view.npos; at = view.find('#', at + 1))
    if (view.substr(at + 1).take_while(llvm::isDigit).size() > 4)
      return true;
  static LibraryProbe parser([](const std::string &text) {
    MLIRContext *context = nextContext();
    ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
    parseSourceString<ModuleOp>(text, ParserConfig(context, /*verifyAfterParse=*/false));
  });
  return parser.crashes(text);
}

/// Splits a text into words of letters, digits and similar characters, and single other characters.
std::vector<std::string_view> tokensOf(std::string_view text) {
  const auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; };
  std::vector<std::string_view> tokens;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(llvm::StringRef(text).take_while(isWord).size(), 1);
    tokens.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return tokens;
}

} // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  static constexpr std::string_view numbers[] = {
      "0", "1", "2", "3", "7", "64", "-1", "2147483648", "9223372036854775807"};
  std::mt19937 random(seed);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  std::vector<std::string_view> tokens = tokensOf({reinterpret_cast<const char *>(data), size});
  if (tokens.empty() || random() % 4 == 0)
    return LLVMFuzzerMutate(data, size, most);
  for (size_t changes = 1 + below(3); changes > 0; --changes) {
    const size_t at = below(tokens.size()), other = below(tokens.size()),
                 count = std::min(1 + below(8), tokens.size() - other);
    switch (random() % 4) {
    case 0: // replace the next number
      if (auto found = std::find_if(tokens.begin() + at, tokens.end(),
                                    [](std::string_view token) { return llvm::isDigit(token[0]); });
          found != tokens.end())
        *found = numbers[below(std::size(numbers))];
      break;
    case 1: // replace a token by another of the text
      tokens[at] = tokens[other];
      break;
    case 2: { // insert a copy of some tokens
      const std::vector<std::string_view> copied(tokens.begin() + other, tokens.begin() + other + count);
      tokens.insert(tokens.begin() + at, copied.begin(), copied.end());
      break;
    }
    default: // erase some tokens
      if (count < tokens.size())
        tokens.erase(tokens.begin() + other, tokens.begin() + other + count);
    }
  }
  std::string text;
  for (std::string_view token : tokens)
    text += token;
  text.resize(std::min(text.size(), most));
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // followed by the terminating zero that MLIR requires
  const std::string given(reinterpret_cast<const char *>(data), size);
  if (isBeyondParser(given))
    return -1;
  MLIRContext *context = nextContext();
  size_t complaints = 0;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &) {
    ++complaints;
    return success();
  });
  const ParserConfig config(context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(given, config);
  require(module || complaints > 0, "words with a failure");
  if (!module)
    return 0;
  const std::string text = textOf(*module);
  OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, config);
  require(again && textOf(*again) == text, "a text that reads back");
  PassManager passes(context);
  mlir::kiln::buildPipeline(passes, {makeHooks()});
  complaints = 0;
  require(succeeded(passes.run(*module)) || complaints > 0, "words with a failure");
  return 0;
}
