// SPDX-License-Identifier: Apache-2.0
//
// Writes NAME.LICENSE.txt: which parts of a library are Kiln's, and under which terms.
#include "compiler/package/License.h"

#include "compiler/library/Headers.h"
#include "compiler/library/RuntimeImage.h"

#include <fmt/format.h>

namespace kiln {

std::string writeLicense(const ModelInterface &model) {
  return fmt::format("Kiln wrote the library \"{}\". The runtime in it and the text of its headers are part of Kiln:\n"
                     "Copyright The Kiln Authors, SPDX-License-Identifier: {}, the text of which follows.\n"
                     "\n"
                     "The exception at the end of the text applies to this library: the library, and programs that "
                     "link it, may be\n"
                     "distributed without this file and without naming Kiln. The model and its weights belong to their "
                     "authors, under\n"
                     "separate terms.\n"
                     "\n"
                     "===============================================================================\n\n",
                     model.name, licenseOfLibraries) +
         licenseText().str();
}

} // namespace kiln
