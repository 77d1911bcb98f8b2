// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln::bench {

/// Each program defines it: registers the program's benchmarks with add().
void registerAll();

} // namespace kiln::bench
