// SPDX-License-Identifier: Apache-2.0
//
// mov and selp, which copy unwritten values without an error: LLVM moves and packs undefined values, and the error is
// reported at a use. cvta and other address arithmetic.
#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"

namespace kiln::ptx {
namespace {

template <class T> void move(Warp &warp, const Instruction &i) {
  const std::uint32_t missing = ~warp.definedLanes(i.operands[1]) & warp.executing;
  T values[warpSize];
  std::memcpy(values, warp.peek<T>(i.operands[1]), sizeof values);
  warp.put(i.operands[0], values);
  if (missing)
    warp.undefine(i.operands[0], missing);
}

void movePredicate(Warp &warp, const Instruction &i) {
  warp.writePredicate(i.operands[0], warp.readPredicate(i.operands[1]));
}

template <class T> void (*moveOf())(Warp &, const Instruction &) { return &move<T>; }
Handler moveOfWidth(unsigned bits) {
  return bits == 16 ? moveOf<std::uint16_t>() : bits == 32 ? moveOf<std::uint32_t>() : moveOf<std::uint64_t>();
}

std::uint64_t valueAt(const Warp &warp, const Operand &operand, unsigned lane) {
  return operand.bits == 16   ? warp.peek<std::uint16_t>(operand)[lane]
         : operand.bits == 32 ? warp.peek<std::uint32_t>(operand)[lane]
                              : warp.peek<std::uint64_t>(operand)[lane];
}
void setAt(Warp &warp, const Operand &operand, unsigned lane, std::uint64_t value) {
  if (operand.bits == 16)
    warp.write<std::uint16_t>(operand)[lane] = static_cast<std::uint16_t>(value);
  else if (operand.bits == 32)
    warp.write<std::uint32_t>(operand)[lane] = static_cast<std::uint32_t>(value);
  else
    warp.write<std::uint64_t>(operand)[lane] = value;
}

/// mov.b32 %r, {%rs1, %rs2}: the first one is lowest.
void pack(Warp &warp, const Instruction &i) {
  std::uint64_t values[warpSize] = {};
  std::uint32_t missing = 0;
  const unsigned width = i.operands[0].bits / (i.count - 1);
  for (unsigned part = 1; part < i.count; ++part) {
    missing |= ~warp.definedLanes(i.operands[part]) & warp.executing;
    eachLane(warp.executing,
             [&](unsigned lane) { values[lane] |= valueAt(warp, i.operands[part], lane) << width * (part - 1); });
  }
  eachLane(warp.executing, [&](unsigned lane) { setAt(warp, i.operands[0], lane, values[lane]); });
  warp.undefine(i.operands[0], missing);
}

/// mov.b32 {%rs1, %rs2}, %r.
void unpack(Warp &warp, const Instruction &i) {
  const Operand &source = i.operands[i.count - 1];
  const std::uint32_t missing = ~warp.definedLanes(source) & warp.executing;
  const unsigned width = source.bits / (i.count - 1);
  std::uint64_t values[warpSize];
  eachLane(warp.executing, [&](unsigned lane) { values[lane] = valueAt(warp, source, lane); });
  for (unsigned part = 0; part + 1 < i.count; ++part) {
    eachLane(warp.executing, [&](unsigned lane) { setAt(warp, i.operands[part], lane, values[lane] >> width * part); });
    warp.undefine(i.operands[part], missing);
  }
}

/// %clock and %globaltimer: return the number of the warp's instructions so far.
void clock(Warp &warp, const Instruction &i) {
  eachLane(warp.executing, [&](unsigned lane) { setAt(warp, i.operands[0], lane, warp.instructions); });
}

/// Returns the type of each part of a packed operand.
Type partType(Decoding &d, Type type, std::size_t parts) {
  const unsigned bits = bitsOf(type) / static_cast<unsigned>(parts);
  if (bits != 16 && bits != 32 && bits != 64)
    d.fail("parts of less than 16 bits are not modelled");
  return bits == 16 ? Type::b16 : bits == 32 ? Type::b32 : Type::b64;
}

void decodeMov(Decoding &d) {
  const Type type = d.takeType();
  d.expectOperands(2);
  using Form = syntax::Operand::Form;
  const syntax::Operand &to = d.operand(0), &from = d.operand(1);
  if (type == Type::pred) {
    d.predicateTarget(to);
    d.predicateSource(from);
    return d.emit(&movePredicate);
  }
  if (from.name == "%clock" || from.name == "%clock64" || from.name == "%globaltimer" || from.name == "%clock_hi" ||
      from.name == "%globaltimer_lo") {
    d.target(to, type);
    return d.emit(&clock);
  }
  if (from.form == Form::list) {
    d.target(to, type);
    for (const syntax::Operand &part : from.parts)
      d.source(part, partType(d, type, from.parts.size()));
    return d.emit(&pack);
  }
  if (to.form == Form::list) {
    for (const syntax::Operand &part : to.parts)
      d.target(part, partType(d, type, to.parts.size()));
    d.source(from, type);
    return d.emit(&unpack);
  }
  if (bitsOf(type) < 16 || bitsOf(type) > 64)
    d.failType(type);
  d.target(to, type);
  d.source(from, type);
  d.emit(moveOfWidth(bitsOf(type)));
}

template <class T> void select(Warp &warp, const Instruction &i) {
  const std::uint32_t chosen = warp.readPredicate(i.operands[3]);
  const T *a = warp.peek<T>(i.operands[1]), *b = warp.peek<T>(i.operands[2]);
  const std::uint32_t there =
      (warp.definedLanes(i.operands[1]) & chosen) | (warp.definedLanes(i.operands[2]) & ~chosen);
  T result[warpSize];
  for (unsigned lane = 0; lane < warpSize; ++lane)
    result[lane] = chosen >> lane & 1 ? a[lane] : b[lane];
  warp.put(i.operands[0], result);
  warp.undefine(i.operands[0], ~there & warp.executing);
}

void decodeSelp(Decoding &d) {
  const Type type = d.takeType();
  d.expectOperands(4);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  d.source(d.operand(2), type);
  d.predicateSource(d.operand(3));
  const unsigned bits = bitsOf(type);
  if (bits < 16 || bits > 64)
    d.failType(type);
  d.emit(bits == 16 ? &select<std::uint16_t> : bits == 32 ? &select<std::uint32_t> : &select<std::uint64_t>);
}

/// flags: the window, high and low; whether it is added or subtracted.
void convertAddress(Warp &warp, const Instruction &i) {
  const std::uint64_t window = static_cast<std::uint64_t>(i.flags[0]) << 32;
  const bool wide = i.operands[1].bits == 64;
  const auto *a64 = wide ? warp.read<std::uint64_t>(i.operands[1]) : nullptr;
  const auto *a32 = wide ? nullptr : warp.read<std::uint32_t>(i.operands[1]);
  std::uint64_t result[warpSize];
  eachLane(warp.executing, [&](unsigned lane) {
    const std::uint64_t from = wide ? a64[lane] : a32[lane];
    if (i.flags[1] && window && (from & ~(windowSize - 1)) != window)
      throw Fault("takes a generic address for one of a space that it is not in", static_cast<int>(lane));
    result[lane] = i.flags[1] ? from - window : from + window;
  });
  warp.put(i.operands[0], result);
}

void decodeCvta(Decoding &d) {
  d.out.flags[1] = d.take("to");
  const std::string_view space =
      d.takeOneOf({"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param"});
  if (space.empty())
    d.fail("cvta needs a space");
  // A conversion to the cluster's window keeps generic addresses of its own block as they are.
  const std::uint64_t window = space == "local"                 ? localWindow
                               : space == "param"               ? paramWindow
                               : space.substr(0, 6) == "shared" ? sharedWindow
                                                                : 0;
  d.out.flags[0] = static_cast<std::uint32_t>(window >> 32);
  const Type type = d.takeType();
  if (type != Type::u64)
    d.failType(type);
  d.expectOperands(2);
  d.target(d.operand(0), type);
  d.source(d.operand(1), type);
  // The address of a called function's parameter variable is known from its name.
  d.emit(&convertAddress);
}

/// isspacep. flags: the window.
void isSpace(Warp &warp, const Instruction &i) {
  const auto *a = warp.read<std::uint64_t>(i.operands[1]);
  const std::uint64_t window = static_cast<std::uint64_t>(i.flags[0]) << 32;
  std::uint32_t lanes = 0;
  eachLane(warp.executing, [&](unsigned lane) {
    const std::uint64_t in = a[lane] & ~(windowSize - 1);
    const bool global = in != sharedWindow && in != localWindow && in != paramWindow;
    lanes |= static_cast<std::uint32_t>(window ? in == window : global) << lane;
  });
  warp.writePredicate(i.operands[0], lanes);
}

void decodeIsSpace(Decoding &d) {
  const std::string_view space = d.takeOneOf({"global", "shared", "shared::cta", "shared::cluster", "local", "param"});
  const std::uint64_t window = space == "local"                 ? localWindow
                               : space == "param"               ? paramWindow
                               : space.substr(0, 6) == "shared" ? sharedWindow
                                                                : 0;
  d.out.flags[0] = static_cast<std::uint32_t>(window >> 32);
  d.expectOperands(2);
  d.predicateTarget(d.operand(0));
  d.source(d.operand(1), Type::u64);
  d.emit(&isSpace);
}

} // namespace

std::span<const Opcode> moveOpcodes() {
  static constexpr Opcode opcodes[] = {
      {"cvta", &decodeCvta}, {"isspacep", &decodeIsSpace}, {"mov", &decodeMov}, {"selp", &decodeSelp}};
  return opcodes;
}

} // namespace kiln::ptx
