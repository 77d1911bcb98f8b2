#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the symbols of an archive for Windows: check_symbols.sh NM ARCHIVE NAME
#   - every global symbol that it defines begins with NAME_, except constants that are named by their value
#   - undefined symbols are defined in the archive, or in the C library and the system as listed below, or are functions
#     of the program, NAME_custom_
set -eu
nm=$1 archive=$2 name=$3 failed=0
fail() { echo "check_symbols: $1" >&2; failed=1; }

defined=$("$nm" -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort -u)
own=$(echo "$defined" | grep -c "^${name}_" || true)
echo "$own global symbols"
[ "$own" -ge 10 ] || fail "an archive defines at least 10 functions, got $own"
foreign=$(echo "$defined" | grep -v -e "^${name}_" -e '^__\(real\|xmm\|ymm\|zmm\)@[0-9a-f]*$' || true)
[ -z "$foreign" ] || fail "global symbols must begin with ${name}_, got: $foreign"

c="memchr memcmp memcpy memmove memset strchr strcmp strlen strncmp strrchr strstr vsnprintf __imp__aligned_free
__imp__aligned_malloc"
system="AcquireSRWLockExclusive CloseHandle CreateFileMappingW CreateFileW CreateThread DeleteFileW FlushFileBuffers
FormatMessageW GetCurrentProcessId GetFileAttributesW GetFileSizeEx GetFileType GetFinalPathNameByHandleW
GetLastError InitializeConditionVariable InitializeSRWLock lstrlenW MapViewOfFile MoveFileExW
MultiByteToWideChar QueryPerformanceCounter QueryPerformanceFrequency ReadFile ReleaseSRWLockExclusive
ReplaceFileW SetLastError SleepConditionVariableSRW SwitchToThread UnmapViewOfFile VirtualAlloc VirtualFree
VirtualQuery VirtualUnlock WaitForSingleObject WakeAllConditionVariable WakeConditionVariable
WideCharToMultiByte WriteFile"
undefined=$("$nm" -u "$archive" | awk '$1 == "U" { print $2 }' | sort -u)
for symbol in $(echo "$undefined" | grep -v "^${name}_custom_"); do
  printf '%s\n' "$defined" $c $system | grep -qxF "${symbol#__imp_}" || printf '%s\n' $c | grep -qxF "$symbol" ||
    fail "undefined symbol that neither the archive nor the system has: $symbol"
done
exit $failed
