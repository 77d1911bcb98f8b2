// SPDX-License-Identifier: Apache-2.0
//
// One error for a compiler, a standard or a library that cannot compile the language.
#pragma once

#include <version>

#if __cplusplus < 202002L
#error "kiln: standard: too old; expected -std=c++20 or later"
#elif defined(__clang__) && !defined(__apple_build_version__) && __clang_major__ < 16
#error "kiln: compiler: too old; expected clang 16 or later, or g++ 12 or later"
#elif !defined(__clang__) && __GNUC__ < 12
#error "kiln: compiler: too old; expected g++ 12 or later, or clang 16 or later"
#elif defined(__clang__) && __clang_major__ < 18 && __cplusplus > 202002L && _GLIBCXX_RELEASE >= 14
// std::tuple of one element needs constraints that these versions evaluate too late.
#error "kiln: standard: too new for clang 17 with libstdc++ 14; expected -std=c++20, -stdlib=libc++ or clang 18"
#endif
