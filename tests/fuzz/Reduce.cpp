// SPDX-License-Identifier: Apache-2.0
//
// A greedy reduction: keeps the first edit after which the model is smaller and still fails, and continues with the
// same family of edits. All families are tried again until none makes the model smaller.
#include "tests/fuzz/Reduce.h"

#include <set>

#include "tests/fuzz/Cuts.h"
#include "tests/fuzz/Edit.h"
#include "tests/fuzz/PrintSpec.h"

namespace kiln::fuzz {

RandomModel reduce(const RandomModel &model, const std::function<bool(const RandomModel &)> &fails, int tries) {
  static constexpr Cuts families[] = {cutEntries,  cutResults,    cutStacks,     cutScans,  cutLoopResults,
                                      cutToInputs, cutToOperands, cutEffects,    cutInputs, cutSymbols,
                                      cutExtents,  cutAttributes, cutToAncestors};
  RandomModel best = model;
  std::set<std::string> tried{printSpec(model.graph)};
  bool isSmaller = true;
  while (isSmaller && tries > 0) {
    isSmaller = false;
    for (Cuts family : families) {
      std::vector<Edit> edits = family(best);
      for (std::size_t at = 0; at < edits.size() && tries > 0; ++at) {
        RandomModel candidate = best;
        edits[at](candidate);
        const std::optional<RandomModel> next = tidied(std::move(candidate));
        if (!next || costOf(next->graph) >= costOf(best.graph) || !tried.insert(printSpec(next->graph)).second)
          continue;
        --tries;
        if (!fails(*next))
          continue;
        best = *next;
        isSmaller = true;
        edits = family(best);
        --at; // this index now has another edit; 0 wraps around
      }
    }
  }
  return best;
}

} // namespace kiln::fuzz
