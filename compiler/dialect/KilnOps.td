// SPDX-License-Identifier: Apache-2.0
//
// Every op of the dialect; the families are files of their own.
include "KilnOpsStructure.td"
include "KilnOpsLookup.td"
include "KilnOpsContraction.td"
include "KilnOpsImage.td"
include "KilnOpsPointwise.td"
include "KilnOpsReduction.td"
include "KilnOpsRanks.td"
include "KilnOpsShape.td"
include "KilnOpsKernel.td"
