// SPDX-License-Identifier: Apache-2.0
//
// The run time that is put in each archive, and the licence that goes with it.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kiln {

/// The bytes of libkiln_runtime.a. Fails for a triple that this build has no run time for.
llvm::Expected<llvm::StringRef> runtimeArchive(llvm::StringRef triple);

/// The text of kiln/runtime.h.
llvm::StringRef runtimeHeader();

/// The text of Kiln's LICENSE.
llvm::StringRef licenseText();

} // namespace kiln
