// SPDX-License-Identifier: Apache-2.0
//
// The whole language: the header that a model spec includes.
#pragma once

#include "kiln/experts.h"
#include "kiln/model.h"
#include "kiln/recurrent.h"
#include "kiln/streaming.h"
