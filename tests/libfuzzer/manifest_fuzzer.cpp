// SPDX-License-Identifier: Apache-2.0
// A library's manifest, as `kiln inspect` and `kiln scale` read it: errors name the file; otherwise each target is
// printed, shown as a page, and predicted (manifest_scale.cpp).
#include "compiler/inspect/Page.h"
#include "compiler/inspect/Words.h"
#include "manifest_scale.h"
#include "require.h"

#include "llvm/Support/JSON.h"

using namespace kiln_fuzz;

namespace {

std::string wordsOf(llvm::Error error) { return llvm::toString(std::move(error)); }

/// Whether the page has the model that its scripts read, between its element's tags.
bool hasModel(llvm::StringRef page) {
  const llvm::StringRef tag = R"(id="model">)";
  const llvm::StringRef model = page.drop_front(std::min(page.find(tag), page.size())).drop_front(tag.size());
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(model.take_front(model.find("</script>")));
  if (value)
    return true;
  llvm::consumeError(value.takeError());
  return false;
}

void show(kiln::Inspection &inspection) {
  kiln::predictTimes(inspection, {1e11, 1e10, "given"});
  require(!kiln::printWords(inspection).empty(), "words");
  require(hasModel(kiln::printPage(inspection)), "a page with a model in it");
  predict(inspection);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<std::vector<std::string>> targets = kiln::readTargets(text, "a.json");
  if (!targets) {
    require(wordsOf(targets.takeError()).find("\"a.json\" is no manifest") == 0, "words that name the file");
    return 0;
  }
  targets->push_back("none such");
  for (const std::string &target : *targets)
    if (llvm::Expected<kiln::Inspection> inspection = kiln::readManifest(text, "a.json", target))
      show(*inspection);
    else
      require(wordsOf(inspection.takeError()).find("\"a.json\"") == 0, "words that name the file");
  return 0;
}
