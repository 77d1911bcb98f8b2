/* SPDX-License-Identifier: Apache-2.0 */
/* run PROGRAM [ARGUMENT ...]: runs a macOS or iOS program, of this CPU's architecture, on Linux, as far as library
 * tests need it: the program has no threads before main, and calls only the system functions in the table below. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void stop(const char *why, const char *what) {
  fprintf(stderr, "run: %s %s\n", why, what);
  exit(120);
}

/* --- Differences between macOS and Linux; macOS's constants are in runtime/darwin. */

static int *darwin_error(void) { return &errno; }

static int open_file(const char *path, int flags, int mode) {
  const int known[][2] = {
      {0x1, O_WRONLY}, {0x4, O_NONBLOCK}, {0x200, O_CREAT}, {0x800, O_EXCL}, {0x1000000, O_CLOEXEC}};
  int own = 0;
  for (unsigned i = 0; i < sizeof known / sizeof *known; ++i)
    own |= flags & known[i][0] ? known[i][1] : 0;
  return open(path, own, mode);
}

static void write_facts(const struct stat *own, char *facts) {
  memset(facts, 0, 144);
  const uint16_t mode = (uint16_t)own->st_mode;
  const uint32_t owner = own->st_uid, group = own->st_gid;
  const int64_t size = own->st_size;
  memcpy(facts + 4, &mode, sizeof mode);
  memcpy(facts + 16, &owner, sizeof owner);
  memcpy(facts + 20, &group, sizeof group);
  memcpy(facts + 96, &size, sizeof size);
}
static int darwin_fstat(int descriptor, char *facts) {
  struct stat own;
  if (fstat(descriptor, &own) != 0)
    return -1;
  write_facts(&own, facts);
  return 0;
}
static int darwin_stat(const char *path, char *facts) {
  struct stat own;
  if (stat(path, &own) != 0)
    return -1;
  write_facts(&own, facts);
  return 0;
}
static int darwin_fchmod(int descriptor, uint16_t mode) { return fchmod(descriptor, mode); }

static void *darwin_mmap(void *address, size_t bytes, int protection, int flags, int descriptor, int64_t offset) {
  return mmap(address, bytes, protection, MAP_PRIVATE | (flags & 0x1000 ? MAP_ANONYMOUS : 0), descriptor, offset);
}

static long darwin_sysconf(int name) {
  if (name != 29 && name != 58)
    stop("sysconf", "of another name");
  return sysconf(name == 29 ? _SC_PAGESIZE : _SC_NPROCESSORS_ONLN);
}

static int darwin_clock_gettime(int clock, struct timespec *time) {
  if (clock != 6)
    stop("clock_gettime", "of another clock");
  return clock_gettime(CLOCK_MONOTONIC, time);
}

static int darwin_sigfillset(uint32_t *set) {
  *set = ~0u;
  return 0;
}
static int darwin_sigmask(int how, const uint32_t *set, uint32_t *before) {
  (void)set;
  if (before)
    *before = 0;
  return how == 3 ? 0 : EINVAL;
}

static int darwin_strerror_r(int number, char *text, size_t room) {
  snprintf(text, room, "%s", strerror(number));
  return 0;
}

static void darwin_bzero(void *to, size_t count) { memset(to, 0, count); }

#if defined(__aarch64__)
/* Variadic arguments are passed on the stack there, eight bytes each; a va_list is their address. */
static int darwin_open(const char *path, int flags, long a, long b, long c, long d, long e, long f, int mode) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  return open_file(path, flags, mode);
}
static int darwin_vsnprintf(char *to, size_t room, const char *format, const char *values) {
  size_t length = 0;
  for (const char *at = format; *at;) {
    char one[16], text[512];
    const size_t plain = strcspn(at, "%"), left = length < room ? room - length : 0;
    if (plain > 0) {
      length += (size_t)snprintf(left ? to + length : NULL, left, "%.*s", (int)plain, at);
      at += plain;
      continue;
    }
    const size_t count = 1 + strcspn(at + 1, "sdugxc") + 1;
    snprintf(one, sizeof one, "%.*s", (int)count, at);
    at += count;
    int64_t next = 0, width = 0;
    double number = 0;
    if (strchr(one, '*')) {
      memcpy(&width, values, 8);
      values += 8;
    }
    memcpy(&next, values, 8);
    memcpy(&number, values, 8);
    values += 8;
    if (strchr(one, '*'))
      snprintf(text, sizeof text, one, (int)width, (const char *)next);
    else if (strchr(one, 'g'))
      snprintf(text, sizeof text, one, number);
    else
      snprintf(text, sizeof text, one, next);
    length += (size_t)snprintf(left ? to + length : NULL, left, "%s", text);
  }
  return (int)length;
}
/* All CPUs in the tests have dot products. */
static int darwin_sysctlbyname(const char *name, void *value, size_t *bytes, void *given, size_t given_bytes) {
  const int has_dot_products = 1;
  if (strcmp(name, "hw.optional.arm.FEAT_DotProd") != 0 || *bytes != sizeof has_dot_products || given || given_bytes)
    stop("sysctlbyname", "of another value");
  memcpy(value, &has_dot_products, sizeof has_dot_products);
  return 0;
}
#else
#define darwin_open open_file
#define darwin_vsnprintf vsnprintf
#endif

#define OWN(name) {"_" #name, (void *)name}
#define OTHER(name) {"_" #name, (void *)darwin_##name}
static const struct {
  const char *name;
  void *address;
} functions[] = {
    {"___error", (void *)darwin_error},
    {"_fstat$INODE64", (void *)darwin_fstat},
    {"_stat$INODE64", (void *)darwin_stat},
    {"___bzero", (void *)darwin_bzero},
    {"_pthread_sigmask", (void *)darwin_sigmask},
    {"dyld_stub_binder", (void *)abort},
#if defined(__aarch64__)
    OTHER(sysctlbyname),
#endif
    OTHER(bzero),
    OTHER(clock_gettime),
    OTHER(fchmod),
    OTHER(fstat),
    OTHER(mmap),
    OTHER(open),
    OTHER(sigfillset),
    OTHER(stat),
    OTHER(strerror_r),
    OTHER(sysconf),
    OTHER(vsnprintf),
    OWN(aligned_alloc),
    OWN(close),
    OWN(fchown),
    OWN(flock),
    OWN(free),
    OWN(fsync),
    OWN(getpid),
    OWN(madvise),
    OWN(memchr),
    OWN(memcmp),
    OWN(memcpy),
    OWN(memmove),
    OWN(memset),
    OWN(munmap),
    OWN(pread),
    OWN(pthread_cond_broadcast),
    OWN(pthread_cond_destroy),
    OWN(pthread_cond_init),
    OWN(pthread_cond_signal),
    OWN(pthread_cond_wait),
    OWN(pthread_create),
    OWN(pthread_join),
    OWN(pthread_mutex_destroy),
    OWN(pthread_mutex_init),
    OWN(pthread_mutex_lock),
    OWN(pthread_mutex_unlock),
    OWN(read),
    OWN(readlink),
    OWN(rename),
    OWN(sched_yield),
    OWN(strchr),
    OWN(strcmp),
    OWN(strlen),
    OWN(strncmp),
    OWN(strstr),
    OWN(unlink),
    OWN(write),
};

static void *find(const char *name) {
  for (unsigned i = 0; i < sizeof functions / sizeof *functions; ++i)
    if (strcmp(functions[i].name, name) == 0)
      return functions[i].address;
  stop("there is no", name);
  return NULL;
}

/* --- The program: its segments, relocated by one distance, and the linker's rebase and bind lists. */

typedef struct program_t {
  const char *image;
  char *memory;        /* of the first segment with contents */
  uint64_t begin, end; /* addresses that it was linked for */
  uint64_t segments[16];
  unsigned count;
} program_t;

static uint32_t word_at(const char *at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return word;
}
static uint64_t long_at(const char *at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static uint64_t take_number(const unsigned char **at) {
  uint64_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const unsigned char byte = *(*at)++;
    number |= (uint64_t)(byte & 0x7F) << shift;
    if (!(byte & 0x80))
      return number;
  }
}

static char *place_of(const program_t *program, uint64_t address) {
  return program->memory + (address - program->begin);
}

/* Rebases `count` pointers, which are `skip` bytes apart. Returns the address after them. */
static uint64_t move(const program_t *program, uint64_t address, uint64_t count, uint64_t skip) {
  for (; count > 0; --count, address += 8 + skip) {
    const char *const moved = place_of(program, long_at(place_of(program, address)));
    memcpy(place_of(program, address), &moved, sizeof moved);
  }
  return address;
}

/* Binds `count` pointers to a system function. Returns the address after them. */
static uint64_t bind(const program_t *program, uint64_t address, uint64_t count, uint64_t skip, const char *name) {
  for (; count > 0; --count, address += 8 + skip) {
    void *const function = find(name);
    memcpy(place_of(program, address), &function, sizeof function);
  }
  return address;
}

/* Reads the numbers in the order of the list: the order of evaluation of arguments is unspecified. */
typedef struct run_t {
  uint64_t count, skip;
} run_t;
static run_t take_run(const unsigned char **at) {
  const uint64_t count = take_number(at);
  return (run_t){count, take_number(at)};
}

static void move_pointers(const program_t *program, uint32_t offset, uint32_t bytes) {
  const unsigned char *at = (const unsigned char *)program->image + offset, *const end = at + bytes;
  uint64_t address = 0;
  while (at < end) {
    const unsigned char code = *at & 0xF0, small = *at & 0x0F;
    run_t run;
    ++at;
    if (code == 0x20) /* location: a segment, and an offset in it */
      address = program->segments[small] + take_number(&at);
    else if (code == 0x30)
      address += take_number(&at);
    else if (code == 0x40)
      address += small * 8u;
    else if (code == 0x50)
      address = move(program, address, small, 0);
    else if (code == 0x60)
      address = move(program, address, take_number(&at), 0);
    else if (code == 0x70)
      address = move(program, address, 1, take_number(&at));
    else if (code == 0x80)
      run = take_run(&at), address = move(program, address, run.count, run.skip);
    else if (code != 0x00 && code != 0x10) /* the end, a type */
      stop("there is another code among", "pointers to move");
  }
}

static void bind_pointers(const program_t *program, uint32_t offset, uint32_t bytes) {
  const unsigned char *at = (const unsigned char *)program->image + offset, *const end = at + bytes;
  const char *name = NULL;
  uint64_t address = 0;
  while (at < end) {
    const unsigned char code = *at & 0xF0, small = *at & 0x0F;
    run_t run;
    ++at;
    if (code == 0x20) /* a library */
      take_number(&at);
    else if (code == 0x40)
      name = (const char *)at, at += strlen(name) + 1;
    else if (code == 0x70) /* location: a segment, and an offset in it */
      address = program->segments[small] + take_number(&at);
    else if (code == 0x80)
      address += take_number(&at);
    else if (code == 0x90)
      address = bind(program, address, 1, 0, name);
    else if (code == 0xA0)
      address = bind(program, address, 1, take_number(&at), name);
    else if (code == 0xB0)
      address = bind(program, address, 1, small * 8u, name);
    else if (code == 0xC0)
      run = take_run(&at), address = bind(program, address, run.count, run.skip, name);
    else if (code != 0x00 && code != 0x10 && code != 0x50) /* the end of one entry, a library, a type */
      stop("there is another code among", "pointers to bind");
  }
}

static void load_segments(program_t *program, int is_copied) {
  const char *command = program->image + 32;
  program->count = 0;
  for (uint32_t i = word_at(program->image + 16); i > 0; --i, command += word_at(command + 4)) {
    if (word_at(command) != 0x19) /* LC_SEGMENT_64 */
      continue;
    const uint64_t address = long_at(command + 24), bytes = long_at(command + 32);
    const uint64_t offset = long_at(command + 40), stored = long_at(command + 48);
    program->segments[program->count++] = address;
    if (strcmp(command + 8, "__PAGEZERO") == 0)
      continue;
    if (is_copied)
      memcpy(program->memory + (address - program->begin), program->image + offset, stored);
    program->begin = program->begin ? program->begin : address;
    program->end = address + bytes;
  }
}

int main(int count, char **arguments) {
  struct stat facts;
  const int file = count > 1 ? open(arguments[1], O_RDONLY) : -1;
  if (file < 0 || fstat(file, &facts) != 0)
    stop("cannot open", count > 1 ? arguments[1] : "no program");
  program_t program = {mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0), NULL, 0, 0, {0}, 0};
  if (program.image == MAP_FAILED || word_at(program.image) != 0xFEEDFACF)
    stop("no program for macOS:", arguments[1]);
  load_segments(&program, 0);
  program.memory =
      mmap(NULL, program.end - program.begin, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (program.memory == MAP_FAILED)
    stop("no memory for", arguments[1]);
  load_segments(&program, 1);
  const char *command = program.image + 32;
  uint64_t entry = 0;
  for (uint32_t i = word_at(program.image + 16); i > 0; --i, command += word_at(command + 4)) {
    if (word_at(command) == 0x80000022) { /* LC_DYLD_INFO_ONLY */
      move_pointers(&program, word_at(command + 8), word_at(command + 12));
      bind_pointers(&program, word_at(command + 16), word_at(command + 20));
      bind_pointers(&program, word_at(command + 32), word_at(command + 36)); /* lazy bindings */
    } else if (word_at(command) == 0x80000028) {                             /* LC_MAIN */
      entry = long_at(command + 8);
    }
  }
  if (entry == 0)
    stop("no main in", arguments[1]);
  __builtin___clear_cache(program.memory, program.memory + (program.end - program.begin));
  return ((int (*)(int, char **))(uintptr_t)(program.memory + entry))(count - 1, arguments + 1);
}
