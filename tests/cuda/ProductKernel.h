// SPDX-License-Identifier: Apache-2.0
//
// GEMM kernels, and counts in their device code.
#pragma once

#include "DeviceKernel.h"
#include "KernelText.h"
#include "LinearKernel.h"
#include "Prepare.h"
#include "compiler/schedule/SearchSpace.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/cuda/Compile.h"

namespace kiln::testing {

/// Indexing maps of a GEMM's inputs, by whether each is transposed: rows a, columns b, reduction dimension c.
struct Form {
  bool transposeA, transposeB;
  std::vector<std::string> maps() const { return {transposeA ? "c, a" : "a, c", transposeB ? "b, c" : "c, b", "a, b"}; }
};

/// Returns x * w; dimensions are numbers, or s0, s1 and s2 of 1 (s1: 0) to `bound`.
inline std::string matmulKernel(Form form, const std::string &m, const std::string &n, const std::string &k,
                                int bound) {
  KernelText text({{1, bound}, {0, bound}, {1, bound}});
  Value x = text.argument(form.transposeA ? text.type({k, m}) : text.type({m, k}));
  Value w = text.argument(form.transposeB ? text.type({n, k}) : text.type({k, n}));
  return text.finish({text.reduce("ppr", {x, w}, text.type({m, n}), form.maps(), "0.0 : f32", multiplyAdd)});
}

inline size_t countOf(const std::string &text, const std::string &what) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
    ++count;
  return count;
}

inline const std::string &textOf(const DeviceKernel &kernel) { return kernel.plan().images.back().text; }

/// Returns the kernel's shape-specialised variants.
inline std::vector<ShapeVariant> shapeVariantsOf(const std::string &text) {
  mlir::MLIRContext context;
  auto module = prepare(context, text);
  return cuda::createKernelCompiler("", "")->shapeVariants(*module->getOps<mlir::func::FuncOp>().begin());
}

/// Returns the kernel's search space.
inline SearchSpace spaceOf(const std::string &text) {
  mlir::MLIRContext context;
  auto module = prepare(context, text);
  return cuda::createKernelCompiler("", "")->describe(*module->getOps<mlir::func::FuncOp>().begin()).space;
}

/// Returns a legal configuration for each value of each parameter of the plain variant, or of the TMA variant. The
/// other parameters have their defaults where these are legal.
inline std::vector<ScheduleConfig> endsOf(SearchSpace space, bool areTma = false) {
  for (TuningParameter &parameter : space)
    if (llvm::StringRef(parameter.key).starts_with("wgmma_") != areTma)
      parameter.values = {parameter.defaultValue};
  std::vector<ScheduleConfig> all{{}}, ends;
  for (const TuningParameter &parameter : space) {
    std::vector<ScheduleConfig> longer;
    for (const ScheduleConfig &config : all)
      for (int64_t value : parameter.values)
        (longer.emplace_back(config))[parameter.key] = value;
    all = std::move(longer);
  }
  const ScheduleConfig defaultConfig = defaultConfigOf(space);
  auto distance = [&](const ScheduleConfig &config) {
    return std::count_if(config.begin(), config.end(),
                         [&](const auto &of) { return defaultConfig.at(of.first) != of.second; });
  };
  std::erase_if(all, [&](const ScheduleConfig &config) { return !obeysRules(space, config); });
  for (const TuningParameter &parameter : space)
    for (int64_t value : parameter.values) {
      if (parameter.values.size() == 1)
        continue;
      const ScheduleConfig *best = nullptr;
      for (const ScheduleConfig &config : all)
        if (config.at(parameter.key) == value && (!best || distance(config) < distance(*best)))
          best = &config;
      if (best)
        ends.push_back(*best);
    }
  ends.push_back(all.front());
  ends.push_back(all.back());
  return ends;
}

} // namespace kiln::testing
