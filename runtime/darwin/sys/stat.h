/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The macOS declarations of this header that the runtime uses (README.md); the fields that it reads have the
 * system's offsets. */
#ifndef KILN_DARWIN_SYS_STAT_H
#define KILN_DARWIN_SYS_STAT_H

struct stat {
  int device;
  unsigned short st_mode, links;
  unsigned long long inode;
  unsigned st_uid, st_gid;
  char others[72];
  long long st_size;
  char more[40];
};
#define S_ISREG(mode) (((mode) & 0170000) == 0100000)
#if defined(__x86_64__) && defined(__ENVIRONMENT_MAC_OS_X_VERSION_MIN_REQUIRED__)
/* On macOS the unsuffixed symbols use an older struct there. */
int fstat(int descriptor, struct stat *facts) __asm__("_fstat$INODE64");
int stat(const char *path, struct stat *facts) __asm__("_stat$INODE64");
#else
int fstat(int descriptor, struct stat *facts);
int stat(const char *path, struct stat *facts);
#endif
int fchmod(int descriptor, unsigned short mode);

#endif /* KILN_DARWIN_SYS_STAT_H */
