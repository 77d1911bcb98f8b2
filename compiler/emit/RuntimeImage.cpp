// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/Object.h"

extern "C" const char kiln_runtime_archive_begin[], kiln_runtime_archive_end[];
extern "C" const char kiln_runtime_header_begin[], kiln_runtime_header_end[];

namespace kiln {

llvm::StringRef runtimeArchive() {
  return {kiln_runtime_archive_begin, static_cast<size_t>(kiln_runtime_archive_end - kiln_runtime_archive_begin)};
}

llvm::StringRef runtimeHeader() {
  return {kiln_runtime_header_begin, static_cast<size_t>(kiln_runtime_header_end - kiln_runtime_header_begin)};
}

} // namespace kiln
