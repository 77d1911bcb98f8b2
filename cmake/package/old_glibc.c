// SPDX-License-Identifier: Apache-2.0
//
// Functions of glibc 2.35 and 2.36 to which the static libraries of Debian 12 refer, for packages that run with glibc
// 2.34. They are hidden, so each library and program of Kiln has its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != sizeof value)
    continue;
  return value;
}

struct search {
  uintptr_t address;
  struct dl_find_object *result;
};

/// Fills in the result if the library contains the address and has tables for unwinding.
static int find_in(struct dl_phdr_info *library, size_t bytes, void *context) {
  (void)bytes;
  const struct search *search = context;
  const ElfW(Phdr) *code = NULL, *table = NULL;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr) *header = &library->dlpi_phdr[i];
    const uintptr_t begin = library->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_LOAD && search->address >= begin && search->address - begin < header->p_memsz)
      code = header;
    else if (header->p_type == PT_GNU_EH_FRAME)
      table = header;
  }
  if (!code)
    return 0;
  if (!table)
    return -1;
  *search->result = (struct dl_find_object){
      .dlfo_map_start = (void *)(library->dlpi_addr + code->p_vaddr),
      .dlfo_map_end = (void *)(library->dlpi_addr + code->p_vaddr + code->p_memsz),
      .dlfo_eh_frame = (void *)(library->dlpi_addr + table->p_vaddr),
  };
  return 1;
}

/// Finds the tables for unwinding of the code at an address, for exceptions. Returns 0, or -1 if there are none.
HIDDEN int _dl_find_object(void *address, struct dl_find_object *result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(find_in, &search) == 1 ? 0 : -1;
}
