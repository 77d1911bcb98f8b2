// SPDX-License-Identifier: Apache-2.0
// A tuning file: a file that was read is written so that it reads back completely and without a diagnostic.
#include "compiler/schedule/TuningFile.h"
#include "require.h"

using namespace kiln_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<std::string> problems;
  const kiln::TuningDatabase read =
      kiln::TuningDatabase::parse({reinterpret_cast<const char *>(data), size}, "file", problems);
  for (const std::string &problem : problems)
    require(problem.starts_with("file:") && problem.size() > 20, "words that say where");
  problems.clear();
  const std::string text = read.text();
  const kiln::TuningDatabase again = kiln::TuningDatabase::parse(text, "file", problems);
  require(problems.empty(), "a text without problems");
  require(again.text() == text, "the same text");
  require(again.records().size() == read.records().size(), "all records");
  return 0;
}
