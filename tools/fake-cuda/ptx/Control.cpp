// SPDX-License-Identifier: Apache-2.0
//
// Branches, exits, and instructions that have no effect here.
#include <fmt/format.h>

#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

void branch(Warp &warp, const Instruction &i) { warp.jump(i.target); }

void decodeBra(Decoding &d) {
  d.take("uni");
  d.expectOperands(1);
  d.label(d.operand(0));
  d.emit(&branch);
}

/// brx.idx: branches to each lane's index into a list of labels.
void branchByIndex(Warp &warp, const Instruction &i) {
  const auto *indices = warp.read<std::uint32_t>(i.operands[0]);
  std::uint32_t targets[warpSize] = {};
  eachLane(warp.executing, [&](unsigned lane) {
    if (indices[lane] >= i.count - 1)
      throw Fault(fmt::format("branches to label {} of {}", indices[lane], i.count - 1), static_cast<int>(lane));
    targets[lane] = i.operands[1 + indices[lane]].row;
  });
  warp.jumpEach(targets);
}

void decodeBrx(Decoding &d) {
  if (!d.take("idx"))
    d.fail("brx is modelled as brx.idx");
  d.take("uni");
  d.expectOperands(2);
  d.source(d.operand(0), Type::u32);
  d.targets(d.operand(1));
  d.emit(&branchByIndex);
}

void leave(Warp &warp, const Instruction &) { warp.exit(); }

void decodeExit(Decoding &d) {
  d.expectOperands(0);
  d.emit(&leave);
}

void decodeRet(Decoding &d) {
  d.take("uni");
  if (!d.inner())
    return decodeExit(d);
  d.branchTo(d.endLabel());
  d.emit(&branch);
}

void trap(Warp &, const Instruction &) { throw Fault("the kernel executes a trap"); }
void decodeTrap(Decoding &d) { d.emit(&trap); }

void nothing(Warp &, const Instruction &) {}

/// Fences have no effect, because memory is sequentially consistent here; the race detector checks that barriers exist.
void decodeFence(Decoding &d) {
  d.modifiers().clear();
  d.emit(&nothing);
}

void waitForKernels(Warp &warp, const Instruction &) { warp.waited |= warp.executing; }

/// Kernels run one after the other here. Warp::reach checks that a kernel that waits accesses no memory before the
/// wait.
void decodeGridControl(Decoding &d) {
  const bool waits = d.takeOneOf({"wait", "launch_dependents"}) == "wait";
  d.expectOperands(0);
  if (waits)
    d.noteWait();
  d.emit(waits ? &waitForKernels : &nothing);
}

} // namespace

std::span<const Opcode> controlOpcodes() {
  static constexpr Opcode opcodes[] = {
      {"bra", &decodeBra},      {"brkpt", &decodeTrap},      {"brx", &decodeBrx},
      {"exit", &decodeExit},    {"fence", &decodeFence},     {"griddepcontrol", &decodeGridControl},
      {"membar", &decodeFence}, {"nanosleep", &decodeFence}, {"pmevent", &decodeFence},
      {"ret", &decodeRet},      {"trap", &decodeTrap}};
  return opcodes;
}

} // namespace kiln::ptx
