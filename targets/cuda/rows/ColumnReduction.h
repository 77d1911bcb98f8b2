// SPDX-License-Identifier: Apache-2.0
//
// The strategy for reductions along axes that are not the innermost one, such as means over the pixels of an image: the
// threads of a block share the elements of some columns, and blocks may share them, too.
#pragma once

#include "targets/cuda/plan/Strategy.h"

namespace kiln::cuda {

std::unique_ptr<StageStrategy> matchColumns(const StageContext &context);

} // namespace kiln::cuda
