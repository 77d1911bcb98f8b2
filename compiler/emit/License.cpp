// SPDX-License-Identifier: Apache-2.0
//
// Writes NAME.LICENSE.txt: which parts of a library are Kiln's, and under which terms.
#include "compiler/emit/Headers.h"
#include "compiler/emit/RuntimeImage.h"

#include <fmt/format.h>

namespace kiln {

std::string writeLicense(const ModelInterface &model) {
  return fmt::format("The library \"{}\" was written by Kiln. Its run time and the text of its headers are Kiln's:\n"
                     "Copyright The Kiln Authors, SPDX-License-Identifier: {}, the text of which follows.\n"
                     "\n"
                     "The exception at its end is about this library: it, and programs that it is linked into, may be "
                     "distributed\n"
                     "without this file and without naming Kiln. The model and its weights are their authors', under "
                     "terms of their\n"
                     "own.\n"
                     "\n"
                     "===============================================================================\n\n",
                     model.name, licenseOfLibraries) +
         licenseText().str();
}

} // namespace kiln
