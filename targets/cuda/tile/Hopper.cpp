// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/tile/Hopper.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln::cuda::tile {

using namespace mlir;

/// An instruction with effects that LLVM does not know; `type` null: it has no result.
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

void publishBarriers(Builder &b) { assembly(b, "fence.mbarrier_init.release.cluster;", "~{memory}", {}); }

void arrive(Builder &b, Value barrier) {
  assembly(b, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", {barrier});
}

/// The arrival publishes nothing to other blocks: what it tells is that reads are over, which it is behind.
void arriveAt(Builder &b, Value barrier, Value block) {
  assembly(b,
           "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, $0, $1;\n"
           "mbarrier.arrive.shared::cluster.b64 _, [there];\n}",
           "r,r,~{memory}", {barrier, block});
}

void arriveExpecting(Builder &b, Value barrier, int64_t bytes) {
  assembly(b, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}", {barrier, b.integer(bytes)});
}

/// An attempt waits for as many nanoseconds at most.
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

void barrierOf(Builder &b, int64_t number, int64_t threads) {
  NVVM::BarrierOp::create(b, Type(), b.integer(number), b.integer(threads), NVVM::BarrierReductionAttr(), Value());
}

//===- Shared memory of other blocks -------------------------------------===//

Value addressIn(Builder &b, Value address, Value block) {
  return assembly(b, "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", {address, block}, b.getI32Type());
}

/// Of a result that is several registers.
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

void writeBeforeCopies(Builder &b) { assembly(b, "fence.proxy.async.shared::cta;", "~{memory}", {}); }

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

//===- Products ----------------------------------------------------------===//

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

/// Constraints of so many f32 that an instruction changes: results, and operands in the same registers.
static std::string changed(size_t count) {
  std::string results, operands;
  for (size_t i = 0; i < count; ++i) {
    results += "=f,";
    operands += std::to_string(i) + ",";
  }
  return results + operands;
}

static Values changeSums(Builder &b, const Twine &text, StringRef more, ValueRange sums, ValueRange others) {
  Values operands(sums);
  operands.append(others.begin(), others.end());
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(sums.getTypes()));
  return partsOf(b, assembly(b, text, changed(sums.size()) + more.str(), operands, type), sums.size());
}

Values addProduct(Builder &b, const MatrixProduct &product, Value a, Value c, ValueRange sums) {
  const size_t count = sums.size();
  static constexpr StringLiteral types[] = {"f16", "bf16", "tf32"};
  const std::string type = types[size_t(product.type)].str();
  const std::string depth = std::to_string(mmaDepthBytes / bytesOf(product.type));
  std::string text = "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\nwgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(product.n) + "k" + depth + ".f32." + type + "." + type + " {";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(i);
  text += "}, $" + std::to_string(2 * count) + ", $" + std::to_string(2 * count + 1) + ", adds, 1, 1";
  if (product.type != MmaType::TF32)
    text += std::string(product.transposesA ? ", 1" : ", 0") + (product.transposesB ? ", 1" : ", 0");
  return changeSums(b, text + ";\n}", "l,l", sums, {a, c});
}

void commitProducts(Builder &b) { assembly(b, "wgmma.commit_group.sync.aligned;", "~{memory}", {}); }

void awaitProducts(Builder &b, int64_t groups) {
  assembly(b, "wgmma.wait_group.sync.aligned " + Twine(groups) + ";", "~{memory}", {});
}

/// Sums go through the instruction, so that nothing reads them before.
Values awaitSums(Builder &b, ValueRange sums) {
  return changeSums(b, "wgmma.wait_group.sync.aligned 0;", "~{memory}", sums, {});
}

} // namespace kiln::cuda::tile
