// SPDX-License-Identifier: Apache-2.0
//
// The file NAME.LICENSE.txt.
#pragma once

#include "compiler/library/Interface.h"

namespace kiln {

/// Returns the text about which parts of the library are Kiln's, and under which licence.
std::string writeLicense(const ModelInterface &model);

} // namespace kiln
