// SPDX-License-Identifier: Apache-2.0
//
// NAME.pc: what pkg-config, and so make and Meson, need to know of a library. Its paths are those of the folder in
// which it lies, so that the folder may be moved.
#include "compiler/emit/Headers.h"
#include "compiler/emit/Version.h"

#include "kiln/runtime.h"

#include <fmt/format.h>

namespace kiln {

std::string writePkgConfig(const ModelInterface &model, bool isShared) {
  // An archive by its path: -lm would find libm for a model "m".
  const std::string library = isShared ? "-L${pcfiledir} -l" + model.name : "${pcfiledir}/lib" + model.name + ".a";
  return fmt::format("# SPDX-License-Identifier: {3}\n"
                     "kiln_abi_version={2}\n\n"
                     "Name: {0}\n"
                     "Description: a model, compiled by Kiln; the version is Kiln's\n"
                     "Version: {1}\n"
                     "Cflags: -I${{pcfiledir}}\n"
                     "Libs: {4} -lm\n",
                     model.name, versionText(), KILN_ABI_VERSION, licenseOfLibraries, library);
}

} // namespace kiln
