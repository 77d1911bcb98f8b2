// SPDX-License-Identifier: Apache-2.0
//
// The differences between the supported versions of Halide: 14 (Debian 12), 19 (Debian 13) and 21. All other files
// include Halide's header through this one, and none of the compiler's tests the version.
#pragma once

#include "Halide.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#ifndef HALIDE_VERSION_MAJOR // Halide 14 does not define it.
#define HALIDE_VERSION_MAJOR 14
#endif

namespace kiln::halide {

/// Links functions in the bitcode of Halide's LLVM to a module, which calls and inlines them. Halide 16 and later
/// cannot, and `linksBitcode` is false.
#if HALIDE_VERSION_MAJOR < 16
inline constexpr bool linksBitcode = true;
inline void linkBitcode(Halide::Module &module, const Halide::Target &target, std::vector<uint8_t> code,
                        const std::string &name) {
  module.append(Halide::ExternalCode::bitcode_wrapper(target, code, name));
}
#else
inline constexpr bool linksBitcode = false;
inline void linkBitcode(Halide::Module &, const Halide::Target &, const std::vector<uint8_t> &, const std::string &) {}
#endif

/// LLVM's intrinsic for a prefetch. Its name states the type of the pointer.
inline constexpr const char *prefetchIntrinsic = HALIDE_VERSION_MAJOR < 16 ? "llvm.prefetch.p0i8" : "llvm.prefetch.p0";

/// Halide's target for bitcode that LLVM 22 compiles for RISC-V. The RISC-V back end of later versions needs vectors of
/// a known length; that of 64-bit Arm without Neon emits LLVM's own vector operations.
inline constexpr const char *riscvTarget = HALIDE_VERSION_MAJOR < 15 ? "riscv-64-linux" : "arm-64-linux-no_neon";

/// Features of Halide's Target with and without LLVM's optimisations of loops, each of which is a default in some
/// version.
inline constexpr const char *withLoopOptimizations = HALIDE_VERSION_MAJOR < 16 ? "" : "-enable_llvm_loop_opt";
inline constexpr const char *withoutLoopOptimizations = HALIDE_VERSION_MAJOR < 16 ? "-disable_llvm_loop_opt" : "";

#if HALIDE_VERSION_MAJOR < 15
using PipelineParameter = Halide::Internal::Parameter;
inline const std::vector<Halide::Type> &typesOf(const Halide::Func &func) { return func.output_types(); }
#else
using PipelineParameter = Halide::Parameter;
inline const std::vector<Halide::Type> &typesOf(const Halide::Func &func) { return func.types(); }
#endif

/// Returns the value of an integer constant, and nothing for other expressions.
inline std::optional<int64_t> constantInt(const Halide::Expr &e) {
  const auto value = Halide::Internal::as_const_int(e); // a pointer or an optional
  return value ? std::optional<int64_t>(*value) : std::nullopt;
}

/// Whether the code of a strided load may read elements before the first one, which the statement does not state.
inline constexpr bool stridedLoadsStartEarly = HALIDE_VERSION_MAJOR < 15;

/// Returns the number of elements after an allocation that loads may read. Their values are undefined.
inline int paddingOf([[maybe_unused]] const Halide::Internal::Allocate &allocation) {
#if HALIDE_VERSION_MAJOR < 15
  return 0;
#else
  return allocation.padding;
#endif
}

/// Returns x if the expression is reinterpret(type, x), and an undefined expression otherwise.
inline Halide::Expr reinterpreted(const Halide::Expr &e) {
#if HALIDE_VERSION_MAJOR < 15
  const auto *op = Halide::Internal::Call::as_intrinsic(e, {Halide::Internal::Call::reinterpret});
  return op ? op->args[0] : Halide::Expr();
#else
  const auto *op = e.as<Halide::Internal::Reinterpret>();
  return op ? op->value : Halide::Expr();
#endif
}

/// Whether Halide takes a reinterpretation of integers for a cast, which its simplifier merges with other operations.
inline constexpr bool reinterpretsByCast = HALIDE_VERSION_MAJOR >= 15;

/// Returns the expression, hidden from Halide's simplifier but not from its inference of bounds.
inline Halide::Expr hidden(const Halide::Expr &e) {
  return Halide::Internal::Call::make(e.type(), Halide::Internal::Call::return_second,
                                      {Halide::Internal::make_zero(e.type()), e},
                                      Halide::Internal::Call::PureIntrinsic);
}

/// Returns the expression of floats, or of comparisons of floats, with each operation rounded as stated. Up to Halide
/// 19 that is a property of the whole expression; later each operation becomes a call of a strict one.
inline Halide::Expr strictly(const Halide::Expr &e) {
#if HALIDE_VERSION_MAJOR < 20
  return Halide::Internal::Call::make(e.type(), Halide::Internal::Call::strict_float, {e},
                                      Halide::Internal::Call::PureIntrinsic);
#else
  return Halide::Internal::strictify_float(e);
#endif
}

/// Whether the call marks its operand as strict.
inline bool isStrict([[maybe_unused]] const Halide::Internal::Call &op) {
#if HALIDE_VERSION_MAJOR < 20
  return op.is_intrinsic(Halide::Internal::Call::strict_float);
#else
  return false;
#endif
}

/// Returns the loop with another range and another body.
inline Halide::Internal::Stmt withRange(const Halide::Internal::For &loop, const Halide::Expr &min,
                                        const Halide::Expr &extent, Halide::Internal::Stmt body) {
  return Halide::Internal::For::make(loop.name, min, extent, loop.for_type,
#if HALIDE_VERSION_MAJOR >= 17
                                     loop.partition_policy,
#endif
                                     loop.device_api, std::move(body));
}

/// Returns the loop with another body.
inline Halide::Internal::Stmt withBody(const Halide::Internal::For &loop, Halide::Internal::Stmt body) {
  return withRange(loop, loop.min, loop.extent, std::move(body));
}

} // namespace kiln::halide
