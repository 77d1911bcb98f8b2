// SPDX-License-Identifier: Apache-2.0
//
// measurement.c, compiled for each architecture that there is a runtime library for.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kiln {

/// Returns the bytes of libkiln_trial.a. Fails for a triple that this build has no runtime for.
llvm::Expected<llvm::StringRef> measurementArchive(llvm::StringRef triple);

} // namespace kiln
