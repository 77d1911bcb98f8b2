// SPDX-License-Identifier: Apache-2.0
//
// The last stages of a compilation: the members of the archive, then the library's files.
#pragma once

#include "compiler/driver/HostStage.h"
#include "compiler/package/SelfTest.h"

namespace kiln {

/// All parts of a library before they are joined.
struct LibraryParts {
  ModelInterface model;
  std::vector<std::string> remarks;
  std::vector<Variant> variants;
  std::vector<ObjectFile> kernels;
  std::vector<SelfTestTrial> trials; // empty without a self-test
  HostModule host;
};

/// The members of an archive: kernels, entry-point glue and run time, with the model's symbols.
struct LibraryMembers {
  std::vector<ObjectFile> files;
  uint64_t textBytes = 0;
};

/// Joins the parts. Exceeding a budget is an error.
mlir::FailureOr<LibraryMembers> joinParts(CompileContext &context, LibraryParts &parts);

struct WrittenLibrary {
  std::string file; // name of the archive or shared object
  uint64_t archiveBytes = 0;
};

/// Writes the library's files to the output directory. The digest of the archive is stored in `model`.
mlir::FailureOr<WrittenLibrary> writeLibrary(CompileContext &context, ModelInterface &model,
                                             const std::vector<Variant> &variants, std::vector<ObjectFile> members);

} // namespace kiln
