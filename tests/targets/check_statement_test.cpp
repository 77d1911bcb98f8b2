// SPDX-License-Identifier: Apache-2.0
//
// Statements with invalid accesses, and the messages of the check. Each is lowered by Halide from a pipeline with an
// unsafe schedule, a promise that does not hold, or arguments that it does not support.
#include "targets/halide/check/StatementChecker.h"
#include "targets/halide/workarounds/StridedLoads.h"
#include <gtest/gtest.h>

namespace kiln::halide {
namespace {

using namespace Halide;
using Halide::TailStrategy;

/// A pipeline with one output "out" of dynamic size n.
struct Pipe {
  Param<int32_t> n{"n"};
  Var x{"x"}, y{"y"}, outer{"outer"}, inner{"inner"};
  ImageParam in{Float(32), 1, "in"};
  Func out{"out"};
  StatementRun run;
  bool boundsLoads = false; // as kernels do

  Pipe() { in.dim(0).set_bounds(0, n).set_stride(1); }

  /// Returns the message of the check with `size` elements.
  std::string check(int64_t size, int64_t given = -1) {
    Internal::Stmt stmt;
    Pipeline pipeline(out);
    if (boundsLoads)
      pipeline.add_custom_lowering_pass(new BoundStridedLoads);
    pipeline.add_custom_lowering_pass(new KeepStatement(stmt));
    pipeline.compile_to_module({n, in}, "pipe", Target("x86-64-linux-avx2-no_runtime-no_asserts-no_bounds_query"));
    run.buffers = {{"in", "argument 0", false, Float(32), {given < 0 ? size : given}},
                   {out.name(), "result 0", true, kiln::halide::typesOf(out)[0], {size}}};
    run.scalars["n"] = size;
    if (!run.overwritten.empty())
      run.overwriting = out.name();
    return checkStatement(stmt, run);
  }
};

TEST(CheckStatement, AGuardedTailIsFine) {
  Pipe p;
  p.out(p.x) = p.in(p.x) * 2;
  p.out.bound(p.x, 0, p.n).vectorize(p.x, 8, TailStrategy::GuardWithIf);
  for (int64_t size : {1, 7, 8, 9, 31})
    EXPECT_EQ(p.check(size), "");
  p.run.overwritten = "in";
  EXPECT_EQ(p.check(13), "");
}

TEST(CheckStatement, ATailThatIsShiftedWritesTwice) {
  Pipe p;
  p.out(p.x) = p.in(p.x) * 2;
  p.out.bound(p.x, 0, p.n).vectorize(p.x, 8, TailStrategy::ShiftInwards);
  EXPECT_EQ(p.check(16), "");
  EXPECT_EQ(p.check(13), "element (5) of result 0 is written twice");
  EXPECT_EQ(p.check(5), "a load reads element -3 of argument 0, which has 5");
}

TEST(CheckStatement, InPlaceATailThatIsShiftedReadsWhatItWrote) {
  Pipe p;
  p.out(p.x) = p.in(p.x) * 2;
  p.out.bound(p.x, 0, p.n).vectorize(p.x, 8, TailStrategy::ShiftInwards);
  p.run.overwritten = "in";
  EXPECT_EQ(p.check(13), "element (5) of result 0 is read as argument 0 after it was overwritten");
}

TEST(CheckStatement, InPlaceNeighboursMustNotBeRead) {
  Pipe p;
  p.out(p.x) = p.in(p.x) + p.in(max(p.x - 1, 0));
  p.out.bound(p.x, 0, p.n);
  EXPECT_EQ(p.check(4), "");
  p.run.overwritten = "in";
  EXPECT_EQ(p.check(4), "element (0) of result 0 is read as argument 0 after it was overwritten");
}

TEST(CheckStatement, ATailThatIsRoundedUpLeavesTheBuffers) {
  Pipe p;
  p.out(p.x) = cast<float>(p.x);
  p.out.bound(p.x, 0, p.n).vectorize(p.x, 8, TailStrategy::RoundUp);
  EXPECT_EQ(p.check(16), "");
  EXPECT_EQ(p.check(13), "a store writes element 13 of result 0, which has 13");
}

TEST(CheckStatement, AnArgumentThatIsTooSmall) {
  Pipe p;
  p.out(p.x) = p.in(p.x);
  p.out.bound(p.x, 0, p.n);
  EXPECT_EQ(p.check(5, /*given=*/4), "a load reads element 4 of argument 0, which has 4");
}

TEST(CheckStatement, AStridedLoadBeginsBeforeItsBuffer) {
  Pipe p;
  p.out(p.x) = p.in(p.x * 3 + 8 - p.n);
  p.out.bound(p.x, 0, p.n).vectorize(p.x, 8, TailStrategy::RoundUp);
  EXPECT_EQ(p.check(8, /*given=*/22),
            stridedLoadsStartEarly ? "the code of a load reads element -2 of argument 0, which has 22" : "");
  p.boundsLoads = true;
  EXPECT_EQ(p.check(8, /*given=*/22), "");
}

TEST(CheckStatement, AStridedLoadMayReadThePaddingOfAnAllocation) {
  Pipe p;
  Func scratch("scratch");
  scratch(p.x) = cast<float>(p.x);
  scratch.compute_root();
  p.out(p.x) = scratch(p.x * 3); // later versions of Halide load 24 elements, the last two from the padding
  p.out.bound(p.x, 0, p.n).vectorize(p.x, 8, TailStrategy::RoundUp);
  EXPECT_EQ(p.check(8), "");
}

TEST(CheckStatement, APromiseThatDoesNotHold) {
  Pipe p;
  p.out(p.x) = p.in(unsafe_promise_clamped(p.x * 2, 0, p.n - 1));
  p.out.bound(p.x, 0, p.n);
  EXPECT_EQ(p.check(1), "");
  EXPECT_EQ(p.check(5), "a load reads element 6 of argument 0, which has 5");
}

TEST(CheckStatement, UndefinedElements) {
  Pipe p;
  Func scratch("scratch");
  scratch(p.x) = undef<float>();
  RDom r(0, p.n - 1);
  scratch(r) = p.in(r);
  p.out(p.x) = scratch(p.x) * 2;
  p.out.bound(p.x, 0, p.n);
  scratch.compute_root();
  p.run.prefix = "";
  std::string words = p.check(5);
  EXPECT_EQ(words.substr(0, words.find('"')), "element (4) of result 0 is computed from element 4 of ") << words;
  EXPECT_NE(words.find(", which was never written"), std::string::npos) << words;
}

TEST(CheckStatement, UndefinedElementsThatAreNotStoredAreFine) {
  Pipe p;
  Func scratch("scratch");
  scratch(p.x) = undef<float>();
  RDom r(0, p.n - 1);
  scratch(r) = p.in(r);
  p.out(p.x) = select(p.x < p.n - 1, scratch(p.x), 0.f);
  p.out.bound(p.x, 0, p.n).vectorize(p.x, 4, TailStrategy::GuardWithIf);
  scratch.compute_root();
  EXPECT_EQ(p.check(5), "");
}

/// The guard and the choice depend on floats, so that the check does not know that they agree.
TEST(CheckStatement, AStageThatIsSkippedWhereItIsNotUsed) {
  Pipe p;
  Func scratch("scratch");
  scratch(p.x) = p.in(p.x) + 1;
  p.out(p.x) = select(strict_float(p.in(p.x) < p.in(p.x) * 2), scratch(p.x), 7.0f);
  scratch.compute_at(p.out, p.x);
  p.out.bound(p.x, 0, p.n);
  for (p.run.seed = 0; p.run.seed < 8; ++p.run.seed)
    EXPECT_EQ(p.check(9), "");
}

TEST(CheckStatement, ElementsThatAreLeftOut) {
  Pipe p;
  RDom r(0, p.n - 1);
  p.out(p.x) = undef<float>();
  p.out(r) = p.in(r);
  p.out.bound(p.x, 0, p.n);
  EXPECT_EQ(p.check(5), "element (4) of result 0 is never written");
}

TEST(CheckStatement, TasksThatWriteOneElement) {
  Pipe p;
  RDom r(0, p.n);
  p.out(p.x) = undef<float>();
  p.out(r / 2) = p.in(r);
  p.out.bound(p.x, 0, p.n);
  p.out.update().allow_race_conditions().parallel(r);
  std::string words = p.check(4);
  EXPECT_EQ(words.substr(0, words.find('"')), "tasks 0 and 1 of the loop ") << words;
  EXPECT_EQ(words.substr(words.rfind('"')), "\" both write element (0) of result 0") << words;
}

TEST(CheckStatement, TasksThatReadWhatOthersWrite) {
  Pipe p;
  Func scratch("scratch");
  RDom r(1, p.n - 1);
  scratch(p.x) = p.in(p.x);
  scratch(r) = scratch(r - 1) + 1;
  scratch.compute_root().update().allow_race_conditions().parallel(r);
  p.out(p.x) = scratch(p.x);
  p.out.bound(p.x, 0, p.n);
  std::string words = p.check(4);
  EXPECT_EQ(words.substr(0, words.find('"')), "tasks 0 and 1 of the loop ") << words;
  EXPECT_NE(words.find("one reads what the other one writes, element 1 of "), std::string::npos) << words;
}

/// Halide 14 drops the branch, later versions do not.
TEST(CheckStatement, ABranchThatTheSimplifierDropped) {
  // A value is loaded twice, so that it gets a name, from rows without padding: guarded lanes of the second vector are
  // past the end, and Halide stores the first vector in place of the second one.
  Func row("row"), out("out");
  Var x("x"), y("y");
  ImageParam in(Float(32), 1, "in");
  in.dim(0).set_bounds(0, 3).set_stride(1);
  row(x) = in(x) * 2;
  Expr value = row(x);
  out(x) = value * value + select(value > 1, value, 0.f);
  out.bound(x, 0, 3).output_buffer().dim(0).set_bounds(0, 3).set_stride(1);
  row.compute_root();
  out.vectorize(x, 2, TailStrategy::GuardWithIf);
  Internal::Stmt stmt;
  Pipeline pipeline(out);
  pipeline.add_custom_lowering_pass(new KeepStatement(stmt));
  pipeline.compile_to_module({in}, "pipe", Target("x86-64-linux-avx2-no_runtime-no_asserts-no_bounds_query"));
  StatementRun run;
  run.buffers = {{"in", "argument 0", false, Float(32), {3}}, {out.name(), "result 0", true, Float(32), {3}}};
  EXPECT_EQ(checkStatement(stmt, run), HALIDE_VERSION_MAJOR < 15 ? "element (0) of result 0 is written twice" : "");
}

TEST(CheckStatement, CastsOfFloatsThatHalideJoined) {
  Pipe p;
  Expr rounded = cast<int32_t>(round(p.in(p.x)));
  p.out(p.x) = reinterpret<float>(cast<uint32_t>(rounded) + 1);
  p.out.bound(p.x, 0, p.n);
  EXPECT_EQ(p.check(4), "a float is cast to an unsigned integer, which negative ones do not survive");
  Pipe q;
  Expr kept = cast<int32_t>(round(q.in(q.x)));
  q.out(q.x) = reinterpret<float>(reinterpret<uint32_t>(reinterpretsByCast ? hidden(kept) : kept) + 1);
  q.out.bound(q.x, 0, q.n);
  EXPECT_EQ(q.check(4), "");
}

TEST(CheckStatement, StepsAreLimited) {
  Pipe p;
  p.out(p.x) = p.in(p.x);
  p.out.bound(p.x, 0, p.n);
  p.run.stepLimit = 1000;
  EXPECT_EQ(p.check(10), "");
  EXPECT_THROW(p.check(10000), StepsExceeded);
}

TEST(CheckStatement, NodesThatItDoesNotKnowAreErrors) {
  Pipe p;
  p.out(p.x) = p.in(p.x);
  p.out.bound(p.x, 0, p.n).vectorize(p.x, 4, TailStrategy::GuardWithIf);
  p.out(p.x) += Internal::Call::make(Float(32), "somewhere_else", {p.x}, Internal::Call::PureExtern);
  p.out.update().unscheduled();
  EXPECT_THROW(p.check(4), Halide::InternalError);
}

} // namespace
} // namespace kiln::halide
