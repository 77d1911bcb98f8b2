/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The Android declarations of this header that the runtime uses (README.md); the fields that it reads have the
 * system's offsets. */
#ifndef KILN_BIONIC_SYS_STAT_H
#define KILN_BIONIC_SYS_STAT_H

struct stat {
  unsigned long device, inode;
#if defined(__aarch64__)
  unsigned st_mode, links;
  unsigned st_uid, st_gid;
  unsigned long special, padding;
  long st_size;
  char more[72];
#else
  unsigned long links;
  unsigned st_mode, st_uid, st_gid, padding;
  unsigned long special;
  long st_size;
  char more[88];
#endif
};
#define S_ISREG(mode) (((mode) & 0170000) == 0100000)
int fstat(int descriptor, struct stat *facts);
int stat(const char *path, struct stat *facts);
int fchmod(int descriptor, unsigned mode);

#endif /* KILN_BIONIC_SYS_STAT_H */
