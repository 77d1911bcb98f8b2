// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace kiln::testing {

inline void expectNan(const std::vector<double> &values) {
  for (double value : values)
    EXPECT_TRUE(std::isnan(value)) << value;
}

inline void expectZeros(const std::vector<double> &values) {
  for (double value : values)
    EXPECT_EQ(value, 0);
}

} // namespace kiln::testing
