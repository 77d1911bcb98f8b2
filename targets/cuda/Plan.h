// SPDX-License-Identifier: Apache-2.0
//
// What a kernel becomes for a GPU: functions as PTX, and the launches by which the host runs them. The host stub is
// made of this, and tests run it without a GPU.
#pragma once

#include "targets/cuda/tile/Builder.h"
#include "targets/target.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::cuda {

/// Functions as PTX for a compute capability; 80 is 8.0.
struct Image {
  std::string text;
  uint32_t capability = 0;
  bool isForThatAlone = false; // else for later ones, too
};

struct DeviceFunction {
  std::string name;
  uint32_t threads = 0;     // of a block, along x
  uint32_t sharedBytes = 0; // dynamic shared memory of a block
  uint32_t cluster = 1;     // blocks of a cluster, along x, which divides their number
  bool isEarly = false;     // in images for 9.0 or later it waits for the work before it
};

/// With so many bytes of dynamic shared memory.
DeviceFunction makeFunction(const std::string &name, const tile::KernelLaunch &launch, int64_t sharedBytes = 0);

/// What is passed for a parameter of a function.
struct Parameter {
  enum Kind {
    Symbol,  // the kernel's index argument of that number, i32
    Tensor,  // the address of the tensor of that number: arguments, and behind them results
    Scratch, // the address so many bytes behind the start of scratch memory
    Map      // the tensor map of that number of the launch
  };
  Kind kind = Symbol;
  int64_t number = 0;
  bool operator==(const Parameter &) const = default;
};

/// What the driver makes a tensor map of: boxes of it lie in shared memory in rows of 128 bytes, swizzled by as many.
struct TensorMap {
  enum Element : uint32_t { F16 = 6, BF16 = 9, TF32 = 11 }; // the driver's numbers
  Parameter tensor;                                         // its first element
  Element element = F16;
  std::vector<mlir::AffineExpr> extents; // elements, of the innermost dimension first; two or three
  std::vector<mlir::AffineExpr> pitches; // bytes, of the dimensions behind the innermost one
  std::vector<uint32_t> box;             // elements of a copy
};

/// Another form of some launches: where its tensor maps can be made, it is launched instead.
struct MappedLaunch {
  unsigned count = 1;          // of launches, from the one that has it on
  unsigned function = 0;       // of the mapped ones
  std::vector<TensorMap> maps; // the first parameters
  std::vector<Parameter> parameters;
  mlir::AffineExpr blocks; // those that have work; fewer do it all
};

struct Launch {
  unsigned function = 0;
  mlir::AffineExpr blocks; // along x, over the kernel's index arguments; where it is 0 nothing is launched
  std::vector<Parameter> parameters;
  std::optional<MappedLaunch> mapped = std::nullopt;
};

struct DevicePlan {
  std::string strategy; // of the step of the most work
  SchedulePoint schedule;
  std::vector<Image> images; // the best first, all with the same functions
  std::vector<DeviceFunction> functions;
  std::vector<Launch> launches; // one after the other
  // What mapped launches launch; none: there is no such launch.
  std::vector<DeviceFunction> mappedFunctions;
  std::optional<Image> mappedImage;
  int64_t scratchBytes = 0; // at the kernel's bounds
  std::string text;         // the functions before they are lowered, as MLIR
};

/// The value of an extent, or of a number of blocks. Divisions are of what is not negative by what is positive.
int64_t valueOf(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> symbols);

} // namespace kiln::cuda
