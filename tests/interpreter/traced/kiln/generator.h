// SPDX-License-Identifier: Apache-2.0
//
// Replaces the compiler's header that specs include: the spec then only names its model, and needs only the DSL.
#pragma once

#include "kiln/dsl.h"

#define KILN_MODEL(name, ...) using Model = __VA_ARGS__;
