// SPDX-License-Identifier: Apache-2.0
//
// Stands where a spec includes the compiler: the spec then only names its model, and needs nothing but the DSL.
#pragma once

#include "kiln/dsl.h"

#define KILN_MODEL(name, ...) using Model = __VA_ARGS__;
