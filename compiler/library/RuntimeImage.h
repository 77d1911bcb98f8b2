// SPDX-License-Identifier: Apache-2.0
//
// The runtime that is included in each archive, and its licence.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace kiln {

/// Returns the bytes of libkiln_runtime.a. Fails for a triple that this build has no runtime for.
llvm::Expected<llvm::StringRef> runtimeArchive(llvm::StringRef triple);

/// Returns the folder in runtime/src of an archive's member; empty for files that only other systems than this one
/// have.
llvm::StringRef runtimeFolder(llvm::StringRef member);

/// Returns the text of kiln/runtime.h.
llvm::StringRef runtimeHeader();

/// Returns the text of Kiln's LICENSE.
llvm::StringRef licenseText();

} // namespace kiln
