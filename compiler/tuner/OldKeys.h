// SPDX-License-Identifier: Apache-2.0
//
// Files from before keys were taken ahead of a target's passes: their structures are of kernels with polynomials in
// place of functions. The polynomials tell the functions, so an old structure has one new one; should it have several,
// its lines belong to all. This is the only place that knows; it may go when no such file is left.
#pragma once

#include "compiler/emit/Lower.h"
#include "compiler/schedule/TuningFile.h"
#include "kiln/graph.h"

#include <set>

namespace kiln {

struct RenamedKeys {
  TuningDatabase database;                                       // with today's structures
  std::map<std::pair<std::string, std::string>, size_t> renamed; // old and new structure: of how many lines
  size_t current = 0;                                            // lines that had the structure of a kernel already
  size_t unknown = 0;                                            // lines of no kernel of the model: as they were
};

/// Old structure -> those that its kernels have today.
using NewStructures = std::map<std::string, std::set<std::string>>;

/// A line whose structure has several new ones is copied to each. Of lines that meet the better founded one stays.
RenamedKeys renameStructures(const TuningDatabase &database, const NewStructures &newStructures);

/// Renames the lines of the model's kernels, of all shapes: extents are no part of a structure. Polynomials must be
/// those of the compiler that wrote the file. Fails if the model does not compile, which has been reported.
llvm::Expected<RenamedKeys> renameOldKeys(const Graph &graph, const std::string &name, const LoweringOptions &options,
                                          const TuningDatabase &database);

} // namespace kiln
