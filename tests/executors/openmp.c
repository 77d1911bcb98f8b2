/* SPDX-License-Identifier: Apache-2.0 */
/* The adapter for OpenMP, by the C compiler: C++ may be another's, without the library. */
#include "kiln/executors/openmp.h"

kiln_executor_t kiln_test_openmp_executor(uint32_t workers);
kiln_executor_t kiln_test_openmp_executor(uint32_t workers) { return kiln_openmp_executor(workers); }
