// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kiln::bench {

/// Defined by each program: registers the program's benchmarks with add().
void registerAll();

} // namespace kiln::bench
