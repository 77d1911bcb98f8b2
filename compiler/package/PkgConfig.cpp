// SPDX-License-Identifier: Apache-2.0
//
// Writes NAME.pc, which tells pkg-config, and through it make and Meson, how to use a library. Paths are relative to
// the folder of the file, so that the folder may be moved.
#include "compiler/package/PkgConfig.h"

#include "compiler/library/Headers.h"
#include "compiler/library/Version.h"

#include "kiln/runtime.h"

#include <fmt/format.h>

namespace kiln {

std::string writePkgConfig(const ModelInterface &model, bool isShared) {
  // Name the archive by its path: for a model "m", -lm would find libm.
  const std::string library = isShared ? "-L${pcfiledir} -l" + model.name : "${pcfiledir}/lib" + model.name + ".a";
  return fmt::format("# SPDX-License-Identifier: {3}\n"
                     "kiln_abi_version={2}\n\n"
                     "Name: {0}\n"
                     "Description: a model, compiled by Kiln; the version is that of Kiln\n"
                     "Version: {1}\n"
                     "Cflags: -I${{pcfiledir}}\n"
                     "Libs: {4} -lm\n",
                     model.name, versionText(), KILN_ABI_VERSION, licenseOfLibraries, library);
}

} // namespace kiln
