// SPDX-License-Identifier: Apache-2.0
//
// The table of PTX types.
#include "Type.h"

#include <iterator>

namespace kiln::ptx {
namespace {

struct Row {
  std::string_view name;
  unsigned bits;
  char kind; // b, u, s, f; p for pred
};

/// The rows have the order of Type.
constexpr Row rows[] = {
    {"", 0, ' '},        {"pred", 1, 'p'},  {"b8", 8, 'b'},   {"b16", 16, 'b'}, {"b32", 32, 'b'},  {"b64", 64, 'b'},
    {"b128", 128, 'b'},  {"u8", 8, 'u'},    {"u16", 16, 'u'}, {"u32", 32, 'u'}, {"u64", 64, 'u'},  {"s8", 8, 's'},
    {"s16", 16, 's'},    {"s32", 32, 's'},  {"s64", 64, 's'}, {"f16", 16, 'f'}, {"bf16", 16, 'f'}, {"f16x2", 32, 'f'},
    {"bf16x2", 32, 'f'}, {"tf32", 32, 'f'}, {"f32", 32, 'f'}, {"f64", 64, 'f'}};

const Row &row(Type type) { return rows[static_cast<unsigned>(type)]; }

} // namespace

Type typeOf(std::string_view name) {
  for (unsigned i = 1; i < std::size(rows); ++i)
    if (rows[i].name == name)
      return static_cast<Type>(i);
  return Type::none;
}

std::string_view nameOf(Type type) { return row(type).name; }
unsigned bitsOf(Type type) { return row(type).bits; }
bool isSigned(Type type) { return row(type).kind == 's'; }
bool isInteger(Type type) { return row(type).kind == 'u' || row(type).kind == 's' || row(type).kind == 'b'; }
bool isFloat(Type type) { return row(type).kind == 'f'; }

} // namespace kiln::ptx
