// SPDX-License-Identifier: Apache-2.0
//
// All ops of the dialect; each family has a separate file.
include "KilnOpsStructure.td"
include "KilnOpsLookup.td"
include "KilnOpsContraction.td"
include "KilnOpsImage.td"
include "KilnOpsPointwise.td"
include "KilnOpsReduction.td"
include "KilnOpsRanks.td"
include "KilnOpsShape.td"
include "KilnOpsKernel.td"
