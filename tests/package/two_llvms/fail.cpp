// SPDX-License-Identifier: Apache-2.0
#include "halide.h"

namespace Halide {

CompileError::~CompileError() = default;

void fail() { throw CompileError("thrown in the closed object"); }

} // namespace Halide
