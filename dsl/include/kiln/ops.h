// SPDX-License-Identifier: Apache-2.0
//
// Every operation of dsl/SPEC.md, as free functions on tensors.
#pragma once

#include "kiln/attention.h"
#include "kiln/cache.h"
#include "kiln/contraction.h"
#include "kiln/custom.h"
#include "kiln/derived.h"
#include "kiln/derived_functions.h"
#include "kiln/derived_images.h"
#include "kiln/derived_movement.h"
#include "kiln/einsum.h"
#include "kiln/elementwise.h"
#include "kiln/frequencies.h"
#include "kiln/image.h"
#include "kiln/losses.h"
#include "kiln/masks.h"
#include "kiln/movement.h"
#include "kiln/patches.h"
#include "kiln/resampling.h"
#include "kiln/rotary.h"
#include "kiln/rows.h"
#include "kiln/scan.h"
#include "kiln/scatter.h"
#include "kiln/sorting.h"
#include "kiln/sources.h"
#include "kiln/state.h"
