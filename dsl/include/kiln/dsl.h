// SPDX-License-Identifier: Apache-2.0
//
// The whole language: what a model's specification includes.
#pragma once

#include "kiln/model.h"
#include "kiln/recurrent.h"
