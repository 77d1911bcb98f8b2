// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Windows versions of file.c and pages.c; paths are UTF-8. On Windows a mapped file cannot be replaced or removed. */
#include "base/status.h"
#include "os/file.h"

#include <string.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { PATH_UNITS = 4096, REASON_UNITS = 256 };
/* The maximum number of bytes of a read or write call. */
enum { MOVED_BYTES = 1 << 30 };

/* Returns KILN_FILE_ERROR with the system's text of a GetLastError code. */
static kiln_status_t fail_for(kiln_error_t *error, const char *action, const char *path, DWORD number) {
  wchar_t wide[REASON_UNITS];
  char reason[3 * REASON_UNITS + 1];
  const DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
  int units = (int)FormatMessageW(flags, NULL, number, 0, wide, REASON_UNITS, NULL);
  while (units > 0 && (wide[units - 1] <= L' ' || wide[units - 1] == L'.'))
    --units;
  const int length = WideCharToMultiByte(CP_UTF8, 0, wide, units, reason, (int)sizeof reason - 1, NULL, NULL);
  reason[length] = '\0';
  return kiln_file_error(error, action, path, units > 0 ? reason : "unknown error");
}

static kiln_status_t fail(kiln_error_t *error, const char *action, const char *path) {
  return fail_for(error, action, path, GetLastError());
}

/* Converts the path to UTF-16; false with a system error. */
static bool widen(const char *path, wchar_t wide[PATH_UNITS]) {
  if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, PATH_UNITS) > 0)
    return true;
  if (GetLastError() == ERROR_INSUFFICIENT_BUFFER)
    SetLastError(ERROR_FILENAME_EXCED_RANGE);
  return false;
}

/* Maps an open file; null with a system error. */
static void *map_handle(HANDLE file, size_t bytes, bool is_written) {
  HANDLE mapping = CreateFileMappingW(file, NULL, is_written ? PAGE_WRITECOPY : PAGE_READONLY, 0, 0, NULL);
  if (!mapping)
    return NULL;
  void *memory = MapViewOfFile(mapping, is_written ? FILE_MAP_COPY : FILE_MAP_READ, 0, 0, bytes);
  const DWORD number = GetLastError();
  CloseHandle(mapping); /* the view keeps it alive */
  SetLastError(number);
  return memory;
}

/* The open handle prevents others from writing to the file. */
kiln_status_t kiln_file_map(const char *path, bool is_written, kiln_file_t *file, kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  wchar_t wide[PATH_UNITS];
  LARGE_INTEGER bytes;
  HANDLE handle = INVALID_HANDLE_VALUE;
  if (widen(path, wide))
    handle = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                         FILE_ATTRIBUTE_NORMAL, NULL);
  *file = (kiln_file_t){"", 0, path, (intptr_t)handle, NULL};
  if (handle == INVALID_HANDLE_VALUE)
    return fail(error, "open", path);
  if (GetFileType(handle) != FILE_TYPE_DISK) {
    status = kiln_file_error(error, "read", path, "not a regular file");
  } else if (!GetFileSizeEx(handle, &bytes)) {
    status = fail(error, "read", path);
  } else if (bytes.QuadPart >
             0) { /* an empty file cannot be mapped: its image stays empty, and is rejected as malformed */
    const void *map = map_handle(handle, (size_t)bytes.QuadPart, is_written);
    if (!map) {
      status = fail(error, "map", path);
    } else {
      file->image = map;
      file->bytes = (size_t)bytes.QuadPart;
    }
  }
  if (status)
    kiln_file_close(file);
  return status;
}

kiln_status_t kiln_file_read(const kiln_file_t *file, uint64_t offset, void *to, size_t bytes, kiln_error_t *error) {
  for (size_t at = 0; file->handle != -1 && at < bytes;) {
    const uint64_t from = offset + at;
    OVERLAPPED place = {.Offset = (DWORD)from, .OffsetHigh = (DWORD)(from >> 32)};
    const size_t left = bytes - at;
    DWORD got = 0;
    if (!ReadFile((HANDLE)file->handle, (char *)to + at, left < MOVED_BYTES ? (DWORD)left : MOVED_BYTES, &got, &place))
      return fail(error, "read", file->path);
    at += got;
  }
  if (file->handle == -1)
    memcpy(to, (const char *)file->image + offset, bytes);
  return KILN_OK;
}

kiln_status_t kiln_file_check(const kiln_file_t *file, kiln_error_t *error) {
  (void)file, (void)error;
  return KILN_OK;
}

void kiln_file_close(kiln_file_t *file) {
  if (file->handle != -1)
    CloseHandle((HANDLE)file->handle);
  file->handle = -1;
}

void kiln_file_unmap(kiln_file_t *file) {
  kiln_file_close(file);
  if (file->copied)
    file->copied->release(file->copied->self, (void *)file->image);
  else if (file->bytes > 0)
    kiln_pages_release((void *)file->image, file->bytes);
}

char *kiln_pages_allocate(size_t bytes) { return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }

void kiln_pages_release(void *memory, size_t bytes) {
  MEMORY_BASIC_INFORMATION facts;
  (void)bytes;
  if (VirtualQuery(memory, &facts, sizeof facts) == sizeof facts && facts.Type == MEM_MAPPED)
    UnmapViewOfFile(memory);
  else
    VirtualFree(memory, 0, MEM_RELEASE);
}

/* VirtualUnlock on pages that are not locked removes them from the working set. */
void kiln_file_give_back(const kiln_file_t *file, const char *begin, const char *end) {
  (void)file;
  VirtualUnlock((void *)begin, (size_t)(end - begin));
}

kiln_status_t kiln_file_write(const kiln_output_t *output, const void *bytes, uint64_t count, kiln_error_t *error) {
  for (const char *from = bytes; count > 0;) {
    DWORD written = 0;
    if (!WriteFile((HANDLE)output->handle, from, count < MOVED_BYTES ? (DWORD)count : MOVED_BYTES, &written, NULL))
      return fail(error, "write", output->path);
    from += written;
    count -= written;
  }
  return KILN_OK;
}

kiln_status_t kiln_file_keep(const kiln_output_t *output, kiln_error_t *error) {
  return FlushFileBuffers((HANDLE)output->handle) ? KILN_OK : fail(error, "write", output->path);
}

/* Creates the temporary file, opened exclusively. A leftover file of a killed process can be removed. */
static HANDLE create_part(const wchar_t *part) {
  for (int turn = 0;; ++turn) {
    HANDLE handle = CreateFileW(part, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle != INVALID_HANDLE_VALUE || turn > 0 || GetLastError() != ERROR_FILE_EXISTS || !DeleteFileW(part))
      return handle;
  }
}

/* Resolves the links at a path; *is_there: whether there is a file, which must be a regular one. If there is none,
 * the path is unchanged. Windows does not tell the target of a dangling link. */
static kiln_status_t find_target(const char *path, wchar_t wide[PATH_UNITS], bool *is_there, kiln_error_t *error) {
  const DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  wchar_t target[PATH_UNITS];
  *is_there = false;
  if (!widen(path, wide))
    return fail(error, "create", path);
  /* Without GENERIC_READ, so that a device is not opened; folders can be opened, too. */
  HANDLE handle = CreateFileW(wide, 0, shared, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
  if (handle == INVALID_HANDLE_VALUE) {
    const DWORD number = GetLastError(), attributes = GetFileAttributesW(wide);
    return attributes == INVALID_FILE_ATTRIBUTES || number != ERROR_FILE_NOT_FOUND
               ? KILN_OK /* creating the file will report the error */
               : kiln_file_error(error, "write", path, "a link to a file that does not exist");
  }
  *is_there = true;
  const bool is_regular =
      GetFileType(handle) == FILE_TYPE_DISK && !(GetFileAttributesW(wide) & FILE_ATTRIBUTE_DIRECTORY);
  const DWORD units = is_regular ? GetFinalPathNameByHandleW(handle, target, PATH_UNITS, 0) : 0;
  CloseHandle(handle);
  if (!is_regular)
    return kiln_file_error(error, "write", path, "not a regular file");
  if (units > 0 && units < PATH_UNITS) /* a file system without final paths has no links */
    memcpy(wide, target, (units + 1) * sizeof *wide);
  return KILN_OK;
}

/* Appends ".PID.part" to a path; false if there is no room. */
static bool name_part(const wchar_t *path, wchar_t part[PATH_UNITS]) {
  char ending[32];
  const size_t length = (size_t)lstrlenW(path),
               ends = kiln_text_print(ending, sizeof ending, ".%lu.part", GetCurrentProcessId());
  if (length + ends >= PATH_UNITS) {
    SetLastError(ERROR_FILENAME_EXCED_RANGE);
    return false;
  }
  memcpy(part, path, length * sizeof *part);
  for (size_t i = 0; i <= ends; ++i)
    part[length + i] = (wchar_t)ending[i];
  return true;
}

kiln_status_t kiln_file_replace(const char *path, kiln_write_t write_all, const void *context, kiln_error_t *error) {
  wchar_t target[PATH_UNITS], part[PATH_UNITS];
  bool is_there;
  kiln_status_t status = find_target(path, target, &is_there, error);
  if (status)
    return status;
  HANDLE handle = name_part(target, part) ? create_part(part) : INVALID_HANDLE_VALUE;
  if (handle == INVALID_HANDLE_VALUE)
    return fail(error, "create", path);
  const kiln_output_t output = {(intptr_t)handle, path};
  status = write_all(context, &output, error);
  if (!status)
    status = kiln_file_keep(&output, error);
  CloseHandle(handle);
  /* ReplaceFileW keeps attributes and access rights of the existing file. */
  if (!status && !(is_there ? ReplaceFileW(target, part, NULL, 0, NULL, NULL)
                            : MoveFileExW(part, target, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)))
    status = fail(error, "create", path);
  if (status)
    DeleteFileW(part);
  return status ? status : kiln_error_clear(error);
}
