// SPDX-License-Identifier: Apache-2.0
#include "models.h"

#include "../ops/dims.h"

namespace ops_attention_spec {
#include "../ops/ops_attention.cpp"
}
namespace ops_contraction_spec {
#include "../ops/ops_contraction.cpp"
}
namespace ops_image_spec {
#include "../ops/ops_image.cpp"
}
namespace ops_movement_spec {
#include "../ops/ops_movement.cpp"
}
namespace ops_pointwise_spec {
#include "../ops/ops_pointwise.cpp"
}
namespace ops_rows_spec {
#include "../ops/ops_rows.cpp"
}
namespace ops_scan_spec {
#include "../ops/ops_scan.cpp"
}
