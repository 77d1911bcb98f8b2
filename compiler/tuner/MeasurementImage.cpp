// SPDX-License-Identifier: Apache-2.0
//
// Embeds measurement.c, compiled for each architecture, in the compiler.
#include "compiler/tuner/MeasurementImage.h"

#include "compiler/library/EmbeddedArchive.h"

#define KILN_ARCHIVE(triple, name, path) KILN_INCLUDE_BYTES(kiln_measurement_##name, path)
#include "kiln_measurement.inc"
#undef KILN_ARCHIVE

namespace kiln {

llvm::Expected<llvm::StringRef> measurementArchive(llvm::StringRef triple) {
  const EmbeddedArchive archives[] = {
#define KILN_ARCHIVE(triple, name, path) {triple, KILN_INCLUDED_BYTES(kiln_measurement_##name)},
#include "kiln_measurement.inc"
#undef KILN_ARCHIVE
  };
  return findArchive(archives, triple);
}

} // namespace kiln
