/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of crt.txt, which archives use, as a static C library defines them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

__declspec(dllimport) void *GetProcessHeap(void);
__declspec(dllimport) void *HeapAlloc(void *heap, unsigned flags, size_t bytes);
__declspec(dllimport) int HeapFree(void *heap, unsigned flags, void *memory);
int _vsnprintf(char *to, size_t room, const char *format, va_list values); /* of ntdll.dll */

int vsnprintf(char *to, size_t room, const char *format, va_list values) {
  const int length = _vsnprintf(to, room, format, values);
  if (room > 0)
    to[room - 1] = '\0';
  return length;
}

void *_aligned_malloc(size_t bytes, size_t alignment) {
  char *const memory = HeapAlloc(GetProcessHeap(), 0, bytes + alignment + sizeof(void *));
  if (!memory)
    return NULL;
  const uintptr_t first = (uintptr_t)memory + sizeof(void *);
  void **const aligned = (void **)((first + alignment - 1) / alignment * alignment);
  aligned[-1] = memory;
  return aligned;
}
void _aligned_free(void *memory) {
  if (memory)
    HeapFree(GetProcessHeap(), 0, ((void **)memory)[-1]);
}

void *memset(void *to, int value, size_t count) {
  for (volatile char *at = to; count > 0; --count)
    *at++ = (char)value;
  return to;
}
void *memcpy(void *to, const void *from, size_t count) {
  const char *next = from;
  for (volatile char *at = to; count > 0; --count)
    *at++ = *next++;
  return to;
}
void *memmove(void *to, const void *from, size_t count) {
  if ((uintptr_t)to <= (uintptr_t)from)
    return memcpy(to, from, count);
  for (volatile char *at = to; count > 0; --count)
    at[count - 1] = ((const char *)from)[count - 1];
  return to;
}
int memcmp(const void *left, const void *right, size_t count) {
  const unsigned char *a = left, *b = right;
  for (; count > 0; --count, ++a, ++b)
    if (*a != *b)
      return *a - *b;
  return 0;
}
void *memchr(const void *bytes, int wanted, size_t count) {
  for (const unsigned char *at = bytes; count > 0; --count, ++at)
    if (*at == (unsigned char)wanted)
      return (void *)at;
  return NULL;
}
size_t strlen(const char *text) {
  size_t length = 0;
  while (((const volatile char *)text)[length])
    ++length;
  return length;
}
int strncmp(const char *left, const char *right, size_t count) {
  for (; count > 0; --count, ++left, ++right)
    if (*left != *right || !*left)
      return (unsigned char)*left - (unsigned char)*right;
  return 0;
}
int strcmp(const char *left, const char *right) { return strncmp(left, right, SIZE_MAX); }
char *strchr(const char *text, int wanted) {
  for (;; ++text)
    if (*text == (char)wanted || !*text)
      return *text == (char)wanted ? (char *)text : NULL;
}
char *strrchr(const char *text, int wanted) { /* `wanted` is not zero */
  char *last = NULL;
  while ((text = strchr(text, wanted)))
    last = (char *)text++;
  return last;
}
char *strstr(const char *text, const char *wanted) {
  for (const size_t length = strlen(wanted);; ++text)
    if (strncmp(text, wanted, length) == 0 || !*text)
      return strncmp(text, wanted, length) == 0 ? (char *)text : NULL;
}
