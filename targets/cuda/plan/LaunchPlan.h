// SPDX-License-Identifier: Apache-2.0
//
// The launch plan of a kernel: functions as PTX, and the launches that the host performs. The host launcher is
// generated from it, and tests run it without a GPU.
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
  bool isForThatAlone = false; // else also for later capabilities
};

struct DeviceFunction {
  std::string name;
  uint32_t threads = 0;           // per block, along x
  uint32_t sharedBytes = 0;       // dynamic shared memory per block
  uint32_t cluster = 1;           // size of a cluster, along x, which divides the number of blocks
  bool isDependentLaunch = false; // programmatic dependent launch: in images for 9.0 or later it waits for earlier work
};

/// Makes a function with `sharedBytes` of dynamic shared memory.
DeviceFunction makeFunction(const std::string &name, const tile::KernelLaunch &launch, int64_t sharedBytes = 0);

/// The argument for a parameter of a function.
struct Parameter {
  enum Kind {
    Symbol,  // the kernel's index argument `number`, i32
    Tensor,  // the address of tensor `number`: arguments, then results
    Scratch, // the address `number` bytes after the start of scratch memory
    Map      // tensor map `number` of the launch
  };
  Kind kind = Symbol;
  int64_t number = 0;
  bool operator==(const Parameter &) const = default;
};

/// A tensor map, which the driver encodes: its boxes are stored in shared memory in rows of 128 bytes with the
/// 128-byte swizzle.
struct TensorMap {
  enum Element : uint32_t { F16 = 6, BF16 = 9, TF32 = 11 }; // the driver's numbers
  Parameter tensor;                                         // address of its first element
  Element element = F16;
  std::vector<mlir::AffineExpr> extents; // in elements, innermost dimension first; two or three
  std::vector<mlir::AffineExpr> pitches; // in bytes, of all but the innermost dimension
  std::vector<uint32_t> box;             // size of a copy, in elements
};

/// The TMA variant of some launches: it is launched instead of them if its tensor maps can be made.
struct TmaLaunch {
  unsigned count = 1;          // how many launches it replaces, from the one that has it on
  unsigned function = 0;       // index into tmaFunctions
  std::vector<TensorMap> maps; // passed as the first parameters
  std::vector<Parameter> parameters;
  mlir::AffineExpr blocks; // as many as have work; fewer blocks do all of it
};

struct Launch {
  unsigned function = 0;
  mlir::AffineExpr blocks; // along x, over the kernel's index arguments; if 0, nothing is launched
  std::vector<Parameter> parameters;
  std::optional<TmaLaunch> tma = std::nullopt;
};

struct LaunchPlan {
  std::string strategy; // strategy of the stage with the most work
  ScheduleConfig schedule;
  std::vector<Image> images; // best first, all with the same functions
  std::vector<DeviceFunction> functions;
  std::vector<Launch> launches; // in order
  // The functions of TMA variants; empty if there are none.
  std::vector<DeviceFunction> tmaFunctions;
  std::optional<Image> tmaImage;
  int64_t scratchBytes = 0; // at the kernel's bounds
  std::string text;         // MLIR of the functions before lowering
};

} // namespace kiln::cuda
