// SPDX-License-Identifier: Apache-2.0
#include "gpu_products.h"
#include <kiln/generator.h>

using Products = specs::GpuProducts<kiln::bf16>;
KILN_MODEL(gpu_products_bf16, Products)
