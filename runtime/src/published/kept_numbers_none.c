// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Stands for kept_numbers.c in a library whose weights have no groups: no numbers are those of a storage format. */
#include "published/published.h"

bool kiln_gguf_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  (void)tensor, (void)format, (void)group;
  return false;
}
void kiln_gguf_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                           char *const arrays[KILN_FORMAT_ARRAYS]) {
  (void)tensor, (void)part, (void)arrays;
}
bool kiln_int4_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  (void)tensor, (void)format, (void)group;
  return false;
}
void kiln_int4_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                           char *const arrays[KILN_FORMAT_ARRAYS]) {
  (void)tensor, (void)part, (void)arrays;
}
bool kiln_f8_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  (void)tensor, (void)format, (void)group;
  return false;
}
void kiln_f8_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part, char *const arrays[KILN_FORMAT_ARRAYS]) {
  (void)tensor, (void)part, (void)arrays;
}
bool kiln_nvfp4_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group) {
  (void)tensor, (void)format, (void)group;
  return false;
}
void kiln_nvfp4_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                            char *const arrays[KILN_FORMAT_ARRAYS]) {
  (void)tensor, (void)part, (void)arrays;
}
