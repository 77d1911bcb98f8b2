// SPDX-License-Identifier: Apache-2.0
/* Files and pages of Windows, as file.c and pages.c have them for POSIX; paths are UTF-8. A file that is mapped cannot
 * be replaced or removed here. */
#include "file.h"
#include "status.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { PATH_UNITS = 4096, REASON_UNITS = 256 };
/* What is written at a time, at most. */
enum { WRITTEN_BYTES = 1 << 30 };

/* KILN_FILE_ERROR, with the system's words for a number of GetLastError. */
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

/* The path in UTF-16; false with an error of the system's. */
static bool widen(const char *path, wchar_t wide[PATH_UNITS]) {
  if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, PATH_UNITS) > 0)
    return true;
  if (GetLastError() == ERROR_INSUFFICIENT_BUFFER)
    SetLastError(ERROR_FILENAME_EXCED_RANGE);
  return false;
}

/* Memory of an open file; null with an error of the system's. */
static void *map_handle(HANDLE file, size_t bytes, bool is_written) {
  HANDLE mapping = CreateFileMappingW(file, NULL, is_written ? PAGE_WRITECOPY : PAGE_READONLY, 0, 0, NULL);
  if (!mapping)
    return NULL;
  void *memory = MapViewOfFile(mapping, is_written ? FILE_MAP_COPY : FILE_MAP_READ, 0, 0, bytes);
  const DWORD number = GetLastError();
  CloseHandle(mapping); /* the view keeps it */
  SetLastError(number);
  return memory;
}

kiln_status_t kiln_file_map(const char *path, bool is_written, kiln_file_t *file, kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  wchar_t wide[PATH_UNITS];
  LARGE_INTEGER bytes;
  file->image = "";
  file->bytes = 0;
  HANDLE handle = INVALID_HANDLE_VALUE;
  if (widen(path, wide))
    handle = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                         FILE_ATTRIBUTE_NORMAL, NULL);
  if (handle == INVALID_HANDLE_VALUE)
    return fail(error, "open", path);
  if (GetFileType(handle) != FILE_TYPE_DISK) {
    status = kiln_file_error(error, "read", path, "not a regular file");
  } else if (!GetFileSizeEx(handle, &bytes)) {
    status = fail(error, "read", path);
  } else if (bytes.QuadPart > 0) { /* an empty file cannot be mapped: its image stays empty, and malformed */
    const void *map = map_handle(handle, (size_t)bytes.QuadPart, is_written);
    if (!map) {
      status = fail(error, "map", path);
    } else {
      file->image = map;
      file->bytes = (size_t)bytes.QuadPart;
    }
  }
  CloseHandle(handle);
  return status;
}

void kiln_file_unmap(kiln_file_t *file) {
  if (file->bytes > 0)
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

/* Pages that are unlocked without being locked leave the process's working set. */
void kiln_file_give_back(const kiln_file_t *file, const char *begin, const char *end) {
  (void)file;
  VirtualUnlock((void *)begin, (size_t)(end - begin));
}

kiln_status_t kiln_file_write(const kiln_output_t *output, const void *bytes, uint64_t count, kiln_error_t *error) {
  for (const char *from = bytes; count > 0;) {
    DWORD written = 0;
    if (!WriteFile((HANDLE)output->handle, from, count < WRITTEN_BYTES ? (DWORD)count : WRITTEN_BYTES, &written, NULL))
      return fail(error, "write", output->path);
    from += written;
    count -= written;
  }
  return KILN_OK;
}

kiln_status_t kiln_file_keep(const kiln_output_t *output, kiln_error_t *error) {
  return FlushFileBuffers((HANDLE)output->handle) ? KILN_OK : fail(error, "write", output->path);
}

/* Makes the file that is written beside another one, which nobody else opens meanwhile. One that a process left which
 * was killed can be removed. */
static HANDLE create_part(const wchar_t *part) {
  for (int turn = 0;; ++turn) {
    HANDLE handle = CreateFileW(part, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle != INVALID_HANDLE_VALUE || turn > 0 || GetLastError() != ERROR_FILE_EXISTS || !DeleteFileW(part))
      return handle;
  }
}

/* Writes `part`, and gives it the name `path`. */
static kiln_status_t write_part(const char *part, const char *path, kiln_write_t write_all, const void *context,
                                kiln_error_t *error) {
  wchar_t wide_part[PATH_UNITS], wide_path[PATH_UNITS];
  HANDLE handle = INVALID_HANDLE_VALUE;
  if (widen(path, wide_path) && widen(part, wide_part))
    handle = create_part(wide_part);
  if (handle == INVALID_HANDLE_VALUE)
    return fail(error, "create", part);
  const kiln_output_t output = {(intptr_t)handle, part};
  kiln_status_t status = write_all(context, &output, error);
  if (!status)
    status = kiln_file_keep(&output, error);
  CloseHandle(handle);
  if (!status && !MoveFileExW(wide_part, wide_path, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
    status = fail(error, "create", path);
  if (status)
    DeleteFileW(wide_part);
  return status ? status : kiln_error_clear(error);
}

kiln_status_t kiln_file_replace(const char *path, kiln_write_t write_all, const void *context, kiln_error_t *error) {
  char part[3 * PATH_UNITS];
  if (kiln_text_print(part, sizeof part, "%s.%lu.part", path, GetCurrentProcessId()) >= sizeof part)
    return fail_for(error, "create", path, ERROR_FILENAME_EXCED_RANGE);
  return write_part(part, path, write_all, context, error);
}
