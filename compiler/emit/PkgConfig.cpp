// SPDX-License-Identifier: Apache-2.0
//
// NAME.pc: what pkg-config, and so make and Meson, need to know of a library. Its paths are those of the folder in
// which it lies, so that the folder may be moved.
#include "compiler/emit/Headers.h"

#include "kiln/runtime.h"

#include <fmt/format.h>

namespace kiln {

std::string writePkgConfig(const ModelInterface &model) {
  return fmt::format("# SPDX-License-Identifier: {2}\n"
                     "Name: {0}\n"
                     "Description: a model, compiled by Kiln; the version is that of Kiln's binary interface\n"
                     "Version: {1}\n"
                     "Cflags: -I${{pcfiledir}}\n"
                     "Libs: ${{pcfiledir}}/lib{0}.a -lm\n",
                     model.name, KILN_ABI_VERSION, licenseOfLibraries);
}

} // namespace kiln
