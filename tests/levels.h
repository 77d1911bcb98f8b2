// SPDX-License-Identifier: Apache-2.0
//
// The targets of this machine's architecture as string literals, by the names of tests/CMakeLists.txt: V2 is the lowest
// level, which each machine of the tests has, V3 the next one; and the default targets. SYMBOL: as part of symbols.
#pragma once

#if defined(__aarch64__)
#define KILN_V2 "aarch64"
#define KILN_V3 "aarch64-dotprod"
#define KILN_DEFAULT_TARGETS "aarch64"
#define KILN_ARCHITECTURE_SYMBOL "aarch64"
#define KILN_V2_SYMBOL "aarch64"
#else
#define KILN_V2 "x86-64-v2"
#define KILN_V3 "x86-64-v3"
#define KILN_DEFAULT_TARGETS "x86-64-v4,x86-64-v3"
#define KILN_ARCHITECTURE_SYMBOL "x86_64"
#define KILN_V2_SYMBOL "x86_64_v2"
#endif
