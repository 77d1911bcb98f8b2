// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln {

/// Registers LLVM's code generators for the architectures for which Kiln compiles. Others are not registered, so a
/// static link leaves them out.
void registerCodeGenerators();

} // namespace kiln
