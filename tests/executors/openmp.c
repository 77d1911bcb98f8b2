/* SPDX-License-Identifier: Apache-2.0 */
/* The adapter for OpenMP, compiled by the C compiler: the C++ compiler may lack the OpenMP library. */
#include "kiln/executors/openmp.h"

kiln_executor_t kiln_test_openmp_executor(uint32_t workers);
kiln_executor_t kiln_test_openmp_executor(uint32_t workers) { return kiln_openmp_executor(workers); }
