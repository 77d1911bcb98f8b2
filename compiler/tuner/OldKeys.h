// SPDX-License-Identifier: Apache-2.0
//
// Converts tuning files from before keys were recorded ahead of a target's passes: their structures are of kernels with
// polynomials in place of functions. The polynomials identify the functions, so an old structure has one new one; if it
// has several, its lines apply to all. Only this file knows old keys; remove it when no such tuning file is left.
#pragma once

#include "compiler/emit/Lower.h"
#include "compiler/schedule/TuningFile.h"
#include "kiln/graph.h"

#include <set>

namespace kiln {

struct RenamedKeys {
  TuningDatabase database;                                       // with current structures
  std::map<std::pair<std::string, std::string>, size_t> renamed; // old and new structure -> number of lines
  size_t current = 0;                                            // lines that already had a kernel's structure
  size_t unknown = 0;                                            // lines of no kernel of the model, which are kept
};

/// Maps an old structure to the current structures of its kernels.
using NewStructures = std::map<std::string, std::set<std::string>>;

/// A line whose structure has several new ones is copied to each. Of lines that become equal the better founded one is
/// kept.
RenamedKeys renameStructures(const TuningDatabase &database, const NewStructures &newStructures);

/// Renames the lines of the model's kernels, for all shapes: dimensions are not part of a structure. The polynomials
/// must be those of the compiler that wrote the file. Fails if the model does not compile, which has been reported.
llvm::Expected<RenamedKeys> renameOldKeys(const Graph &graph, const std::string &name, const LoweringOptions &options,
                                          const TuningDatabase &database);

} // namespace kiln
