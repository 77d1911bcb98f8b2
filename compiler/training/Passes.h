// SPDX-License-Identifier: Apache-2.0
//
// Declares the passes of Passes.td.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace mlir::kiln {

#define GEN_PASS_DECL
#include "compiler/training/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/training/Passes.h.inc"

} // namespace mlir::kiln
