// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/rows/ThreadGroup.h"

#include "targets/cuda/tile/Shared.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::cuda {

using namespace mlir;
using arith::CmpIPredicate;
using tile::Values;

/// The most elements of a thread that are in registers at a time.
static constexpr int64_t mostWrittenOut = 16;
/// The loads of a loop that are in flight at a time.
static constexpr int64_t unrolled = 4;

ThreadGroup::ThreadGroup(tile::Builder &b, int64_t threads, int64_t perBlock) : b(b), threads(threads) {
  threadGroup = b.blockId();
  member = b.threadId();
  if (perBlock == 1)
    return;
  threadGroup = b.add(b.mul(threadGroup, b.integer(perBlock)), b.div(member, b.integer(lanesOfWarp)));
  member = b.rem(member, b.integer(lanesOfWarp));
}

ThreadGroup::ThreadGroup(tile::Builder &b, Value number) : b(b), threads(lanesOfWarp), threadGroup(number) {
  member = b.rem(b.threadId(), b.integer(lanesOfWarp));
}

void ThreadGroup::sync() { threads == lanesOfWarp ? tile::syncWarp(b) : tile::barrier(b); }

//===- Elements ----------------------------------------------------------===//

bool ThreadGroup::isWrittenOut(std::optional<int64_t> fixed) const {
  return fixed && *fixed > 0 && int64_t(llvm::divideCeil(*fixed, threads)) <= mostWrittenOut;
}

/// Returns the thread's element among those from `first` on, or the last one of all; the same SSA value each time, by
/// which the emitter recognises what it has loaded.
Value ThreadGroup::elementAt(int64_t first, int64_t count) {
  Value &element = elements[{first, count}];
  if (element)
    return element;
  element = b.add(member, b.integer(first));
  if (first + threads > count)
    element = b.createOrFold<arith::MinSIOp>(element, b.integer(count - 1));
  return element;
}

/// Returns whether the thread has an element among those.
Value ThreadGroup::isThere(int64_t first, int64_t count) {
  return b.compare(CmpIPredicate::slt, b.add(member, b.integer(first)), b.integer(count));
}

static Values choose(tile::Builder &b, Value condition, ValueRange yes, ValueRange no) {
  Values result;
  for (auto [x, y] : llvm::zip_equal(yes, no))
    result.push_back(b.createOrFold<arith::SelectOp>(condition, x, y));
  return result;
}

Values ThreadGroup::reduce(Value count, std::optional<int64_t> fixed, Values values,
                           function_ref<Values(Value, const Values &)> body) {
  if (isWrittenOut(fixed)) {
    for (int64_t first = 0; first < *fixed; first += threads) {
      Values next = body(elementAt(first, *fixed), values);
      values = first + threads <= *fixed ? next : choose(b, isThere(first, *fixed), next, values);
    }
    return values;
  }
  Value together = b.integer(threads * unrolled), iterations = b.div(count, together);
  values = b.loop(iterations, values, [&](Value iteration, ValueRange last) {
    Values next(last);
    Value element = b.add(b.mul(iteration, together), member);
    for (int64_t i = 0; i < unrolled; ++i)
      next = body(b.add(element, b.integer(i * threads)), next);
    return next;
  });
  Value first = b.add(b.mul(iterations, together), member);
  Value rest = b.div(b.add(b.sub(count, first), b.integer(threads - 1)), b.integer(threads));
  return b.loop(rest, values, [&](Value iteration, ValueRange last) {
    return body(b.add(first, b.mul(iteration, b.integer(threads))), Values(last));
  });
}

void ThreadGroup::forEach(Value count, std::optional<int64_t> fixed, function_ref<void(Value)> body) {
  if (!isWrittenOut(fixed)) {
    reduce(count, fixed, {}, [&](Value element, const Values &) {
      body(element);
      return Values();
    });
    return;
  }
  for (int64_t first = 0; first < *fixed; first += threads) {
    Value element = elementAt(first, *fixed);
    if (first + threads <= *fixed)
      body(element);
    else
      b.ifThen(isThere(first, *fixed), [&] { body(element); });
  }
}

//===- Partial results ---------------------------------------------------===//

Values ThreadGroup::start(const Combiner &combiner, const Values &initial) {
  return choose(b, b.compare(CmpIPredicate::eq, member, b.integer(0)), initial, combiner.neutral(b, initial));
}

/// Combines the values of `lanes` consecutive lanes, by butterfly shuffles over halves, quarters, ... of them.
Values ThreadGroup::combineWarp(const Combiner &combiner, Values values, int64_t lanes) {
  for (int64_t bits = lanes / 2; bits > 0; bits /= 2) {
    Values others;
    for (Value value : values)
      others.push_back(b.shuffleXor(value, int32_t(bits)));
    values = combiner.combine(b, values, others);
  }
  return values;
}

/// Shared memory is double-buffered: a thread that writes a half again has met all others at a barrier since they read
/// it.
Values ThreadGroup::combine(const Combiner &combiner, Values values) {
  values = combineWarp(combiner, std::move(values), lanesOfWarp);
  if (threads == lanesOfWarp)
    return values;
  const int64_t warps = threads / lanesOfWarp;
  Value half = b.integer(combines++ % 2 * warps), lane = b.rem(member, b.integer(lanesOfWarp));
  SmallVector<Value> memory;
  for (auto [number, value] : llvm::enumerate(values)) {
    Value &address = shared[{number, value.getType()}];
    if (!address)
      address = tile::addShared(b, value.getType(), 2 * warps);
    memory.push_back(address);
  }
  b.ifThen(b.compare(CmpIPredicate::eq, lane, b.integer(0)), [&] {
    for (auto [value, address] : llvm::zip_equal(values, memory))
      b.store(value, address, b.add(half, b.div(member, b.integer(lanesOfWarp))));
  });
  tile::barrier(b);
  for (auto [value, address] : llvm::zip_equal(values, memory))
    value = b.load(value.getType(), address, b.add(half, b.rem(lane, b.integer(warps))));
  return combineWarp(combiner, std::move(values), warps);
}

} // namespace kiln::cuda
