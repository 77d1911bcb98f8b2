// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/tile/Hopper.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln::cuda::tile {

using namespace mlir;

/// Emits an instruction with side effects that LLVM does not know; `type` null: it has no result.
static Value assembly(Builder &b, const Twine &text, StringRef constraints, ValueRange operands, Type type = {}) {
  auto op = LLVM::InlineAsmOp::create(b, type ? TypeRange(type) : TypeRange(), operands, text.str(), constraints,
                                      /*has_side_effects=*/true, /*is_align_stack=*/false,
                                      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  return type ? op.getRes() : Value();
}

Value sharedAddress(Builder &b, Value pointer) { return LLVM::PtrToIntOp::create(b, b.getI32Type(), pointer); }

Value warpOf(Builder &b, Value thread) {
  return NVVM::ShflOp::create(b, b.getI32Type(), b.integer(-1), b.div(thread, b.integer(32)), b.integer(0),
                              b.integer(0x1f), NVVM::ShflKind::idx, UnitAttr());
}

Value gridSize(Builder &b) { return NVVM::GridDimXOp::create(b, b.getI32Type()); }

//===- Barriers ----------------------------------------------------------===//

void initBarrier(Builder &b, Value barrier, int64_t arrivals) {
  assembly(b, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}", {barrier, b.integer(arrivals)});
}

void barrierAmong(Builder &b, Value number, int64_t threads) {
  NVVM::BarrierOp::create(b, Type(), number, b.integer(threads), NVVM::BarrierReductionAttr(), Value());
}

void orderBeforeCopies(Builder &b) { assembly(b, "fence.proxy.async.shared::cta;", "~{memory}", {}); }

void publishBarriers(Builder &b) { assembly(b, "fence.mbarrier_init.release.cluster;", "~{memory}", {}); }

void arrive(Builder &b, Value barrier) {
  assembly(b, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", {barrier});
}

void arriveWhereZero(Builder &b, Value barrier, Value number) {
  assembly(b,
           "{\n.reg .pred arrives;\nsetp.eq.s32 arrives, $1, 0;\n"
           "@arrives mbarrier.arrive.shared::cta.b64 _, [$0];\n}",
           "r,r,~{memory}", {barrier, number});
}

/// The arrival publishes no writes to other blocks: it only signals that reads are over, and it follows them.
void arriveAt(Builder &b, Value barrier, Value block) {
  assembly(b,
           "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, $0, $1;\n"
           "mbarrier.arrive.shared::cluster.b64 _, [there];\n}",
           "r,r,~{memory}", {barrier, block});
}

void arriveExpecting(Builder &b, Value barrier, int64_t bytes) {
  assembly(b, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}", {barrier, b.integer(bytes)});
}

/// Each attempt waits for at most 10,000,000 nanoseconds.
void awaitPhase(Builder &b, Value barrier, Value parity) {
  assembly(b,
           "{\n.reg .pred done;\nWAIT_${:uid}:\n"
           "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1, 10000000;\n@!done bra WAIT_${:uid};\n}",
           "r,r,~{memory}", {barrier, parity});
}

void clusterBarrier(Builder &b) {
  NVVM::ClusterArriveOp::create(b, UnitAttr());
  NVVM::ClusterWaitOp::create(b, UnitAttr());
}

//===- Shared memory of other blocks -------------------------------------===//

Value addressIn(Builder &b, Value address, Value block) {
  return assembly(b, "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", {address, block}, b.getI32Type());
}

/// Splits a result that consists of several registers.
static Values partsOf(Builder &b, Value all, size_t count) {
  Values parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(b, all, ArrayRef<int64_t>(int64_t(i))));
  return parts;
}

Values loadFourFrom(Builder &b, Value address) {
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  Value all =
      assembly(b, "ld.shared::cluster.v4.f32 {$0, $1, $2, $3}, [$4];", "=f,=f,=f,=f,r,~{memory}", {address}, type);
  return partsOf(b, all, 4);
}

//===- Copies ------------------------------------------------------------===//

void copyBox(Builder &b, Value to, Value map, ArrayRef<Value> at, Value barrier, int64_t blocks) {
  Values operands{to, map, barrier};
  operands.append(at.begin(), at.end());
  std::string coordinates, constraints = "r,l,r";
  for (size_t i = 0; i < at.size(); ++i) {
    coordinates += (i ? ", $" : "$") + std::to_string(i + 3);
    constraints += ",r";
  }
  std::string text = "cp.async.bulk.tensor." + std::to_string(at.size()) +
                     "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes";
  std::string places = " [$0], [$1, {" + coordinates + "}], [$2]";
  if (blocks > 1) {
    text += ".multicast::cluster";
    places += ", $" + std::to_string(operands.size());
    constraints += ",h";
    operands.push_back(b.integer(b.getI16Type(), (int64_t(1) << blocks) - 1));
  }
  assembly(b, text + places + ";", constraints + ",~{memory}", operands);
}

//===- wgmma -------------------------------------------------------------===//

void setRegisters(Builder &b, int64_t count, bool isMore) {
  assembly(b, Twine("setmaxnreg.") + (isMore ? "inc" : "dec") + ".sync.aligned.u32 " + Twine(count) + ";", "", {});
}

Value matrixDescriptor(Builder &b, Value address, int64_t leading, int64_t stride) {
  constexpr uint64_t swizzled128 = uint64_t(1) << 62;
  Type i64 = b.getI64Type();
  Value start = b.both(b.div(address, b.integer(16)), b.integer(0x3fff));
  const uint64_t fields = swizzled128 | uint64_t(stride / 16) << 32 | uint64_t(leading / 16) << 16;
  return arith::OrIOp::create(b, LLVM::ZExtOp::create(b, i64, start), b.integer(i64, int64_t(fields)));
}

Value advanceDescriptor(Builder &b, Value descriptor, Value bytes) {
  return b.add(descriptor, LLVM::ZExtOp::create(b, b.getI64Type(), b.div(bytes, b.integer(16))));
}

Value advanceDescriptor(Builder &b, Value descriptor, int64_t bytes) {
  return bytes == 0 ? descriptor : b.add(descriptor, b.integer(b.getI64Type(), bytes / 16));
}

void beginProducts(Builder &b) { assembly(b, "wgmma.fence.sync.aligned;", "~{memory}", {}); }

/// Return the constraints of `count` f32 that an instruction makes, or changes: results, and operands in the same
/// registers.
static std::string made(size_t count) {
  std::string results;
  for (size_t i = 0; i < count; ++i)
    results += "=f,";
  return results;
}
static std::string changed(size_t count) {
  std::string operands;
  for (size_t i = 0; i < count; ++i)
    operands += std::to_string(i) + ",";
  return made(count) + operands;
}

static Values makeSums(Builder &b, const Twine &text, StringRef constraints, size_t count, ValueRange operands) {
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(count, b.getF32Type()));
  return partsOf(b, assembly(b, text, constraints, operands, type), count);
}

static Values changeSums(Builder &b, const Twine &text, StringRef more, ValueRange sums, ValueRange others) {
  Values operands(sums);
  operands.append(others.begin(), others.end());
  return makeSums(b, text, changed(sums.size()) + more.str(), sums.size(), operands);
}

/// Returns "$first, $(first + 1), .."
static std::string list(size_t first, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text;
}

/// `first`: the operand number of a, which is a descriptor or four registers; the descriptor of c follows.
static std::string productText(const MatrixProduct &product, size_t first, bool isInRegisters, bool adds) {
  static constexpr StringLiteral types[] = {"f16", "bf16", "tf32"};
  const std::string type = types[size_t(product.type)].str();
  const std::string depth = std::to_string(mmaKBytes / bytesOf(product.type));
  std::string text = "{\n.reg .pred adds;\nsetp.ne.b32 adds, " + std::string(adds ? "1" : "0") +
                     ", 0;\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(product.n) + "k" + depth + ".f32." +
                     type + "." + type + " {" + list(0, size_t(product.sumsOfThread())) + "}, ";
  text += isInRegisters ? "{" + list(first, 4) + "}, " + list(first + 4, 1) : list(first, 2);
  text += ", adds, 1, 1";
  auto flag = [&](bool isSet) { text += isSet ? ", 1" : ", 0"; };
  if (product.type != MmaType::TF32 && !isInRegisters)
    flag(product.transposesA);
  if (product.type != MmaType::TF32)
    flag(product.transposesB);
  return text + ";\n}";
}

Values addProduct(Builder &b, const MatrixProduct &product, Value a, Value c, ValueRange sums) {
  return changeSums(b, productText(product, 2 * sums.size(), false, true), "l,l", sums, {a, c});
}

Values firstProduct(Builder &b, const MatrixProduct &product, Value a, Value c) {
  const size_t count = size_t(product.sumsOfThread());
  return makeSums(b, productText(product, count, false, false), made(count) + "l,l", count, {a, c});
}

Values addProduct(Builder &b, const MatrixProduct &product, ArrayRef<Value> a, Value c, ValueRange sums) {
  Values others(a);
  others.push_back(c);
  return changeSums(b, productText(product, 2 * sums.size(), true, true), "r,r,r,r,l", sums, others);
}

void commitProducts(Builder &b) { assembly(b, "wgmma.commit_group.sync.aligned;", "~{memory}", {}); }

void awaitProducts(Builder &b, int64_t groups) {
  assembly(b, "wgmma.wait_group.sync.aligned " + Twine(groups) + ";", "~{memory}", {});
}

/// The accumulators pass through the instruction, so that nothing reads them before.
Values awaitSums(Builder &b, ValueRange sums, int64_t groups) {
  return changeSums(b, "wgmma.wait_group.sync.aligned " + Twine(groups) + ";", "~{memory}", sums, {});
}

/// A store that would happen only if `computed` were below 0. A branch instead would end the wgmma in flight.
void keepBefore(Builder &b, Value computed, Value shared) {
  assembly(b, "{\n.reg .pred never;\nsetp.lt.f32 never, $0, 0f00000000;\n@never st.shared.f32 [$1], $0;\n}",
           "f,r,~{memory}", {computed, shared});
}

Value exponential2(Builder &b, Value x) {
  auto op = LLVM::InlineAsmOp::create(b, b.getF32Type(), ValueRange{x}, "ex2.approx.ftz.f32 $0, $1;", "=f,f",
                                      /*has_side_effects=*/false, /*is_align_stack=*/false,
                                      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  return op.getRes();
}

} // namespace kiln::cuda::tile
