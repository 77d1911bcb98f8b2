/* SPDX-License-Identifier: Apache-2.0 */
/* A program in Microsoft's dialect and linked by its linker, without MinGW's startup code: the library's self-test,
 * and its thread pool. */
#include "tiny_gpt.h"

int _fltused = 1;
__declspec(dllimport) void ExitProcess(unsigned status);

int start(void) {
  kiln_error_t error;
  kiln_pool_t *pool;
  const int is_made = tiny_gpt_pool_create(3, &pool, &error) == KILN_OK;
  if (is_made)
    tiny_gpt_pool_destroy(pool);
  ExitProcess(is_made ? (unsigned)tiny_gpt_selftest(0, &error) : 100);
  return 0;
}
