// SPDX-License-Identifier: Apache-2.0
//
// Resolves names in a function's text: registers, including special ones, variables, constants.
#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "Decoder.h"
#include "Fault.h"

namespace kiln::ptx {
namespace {

struct SpecialName {
  std::string_view name;
  Special special;
};
constexpr SpecialName specialNames[] = {{"%tid.x", Special::tidX},
                                        {"%tid.y", Special::tidY},
                                        {"%tid.z", Special::tidZ},
                                        {"%ntid.x", Special::ntidX},
                                        {"%ntid.y", Special::ntidY},
                                        {"%ntid.z", Special::ntidZ},
                                        {"%ctaid.x", Special::ctaidX},
                                        {"%ctaid.y", Special::ctaidY},
                                        {"%ctaid.z", Special::ctaidZ},
                                        {"%nctaid.x", Special::nctaidX},
                                        {"%nctaid.y", Special::nctaidY},
                                        {"%nctaid.z", Special::nctaidZ},
                                        {"%laneid", Special::laneid},
                                        {"%warpid", Special::warpid},
                                        {"%nwarpid", Special::nwarpid},
                                        {"%lanemask_eq", Special::lanemaskEq},
                                        {"%lanemask_le", Special::lanemaskLe},
                                        {"%lanemask_lt", Special::lanemaskLt},
                                        {"%lanemask_ge", Special::lanemaskGe},
                                        {"%lanemask_gt", Special::lanemaskGt},
                                        {"%smid", Special::smid},
                                        {"%nsmid", Special::nsmid},
                                        {"%gridid", Special::gridid},
                                        {"%dynamic_smem_size", Special::dynamicSmemSize},
                                        {"%total_smem_size", Special::totalSmemSize},
                                        {"%cluster_ctarank", Special::clusterCtaRank},
                                        {"%cluster_ctaid.x", Special::clusterCtaidX},
                                        {"%cluster_ctaid.y", Special::clusterCtaidY},
                                        {"%cluster_ctaid.z", Special::clusterCtaidZ},
                                        {"%cluster_nctaid.x", Special::clusterNctaidX},
                                        {"%cluster_nctaid.y", Special::clusterNctaidY},
                                        {"%cluster_nctaid.z", Special::clusterNctaidZ},
                                        {"%cluster_nctarank", Special::clusterNctaRank},
                                        {"%clusterid.x", Special::clusteridX},
                                        {"%clusterid.y", Special::clusteridY},
                                        {"%clusterid.z", Special::clusteridZ},
                                        {"%nclusterid.x", Special::nclusteridX},
                                        {"%nclusterid.y", Special::nclusteridY},
                                        {"%nclusterid.z", Special::nclusteridZ}};

} // namespace

Symbol *Decoder::find(std::string_view name) {
  // %r12 is in the range %r.
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  unsigned number = 0;
  std::from_chars(name.data() + digits, name.data() + name.size(), number);
  auto &scopes = frames.back().scopes;
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    if (const auto found = scope->find(name); found != scope->end())
      return &found->second;
    if (digits == name.size())
      continue;
    const auto range = scope->find(std::string(name.substr(0, digits)) + "<");
    if (range == scope->end() || number >= range->second.count)
      continue;
    Symbol one = range->second;
    one.kind = Symbol::Kind::registerName;
    return &scope->emplace(std::string(name), one).first->second;
  }
  return nullptr;
}

Symbol &Decoder::lookUp(std::string_view name) {
  if (Symbol *found = find(name))
    return *found;
  const auto variable = layout.variables.find(name);
  if (variable == layout.variables.end())
    throw SyntaxFault(0, fmt::format("unknown name \"{}\"", name));
  Symbol symbol;
  symbol.kind = Symbol::Kind::variable;
  symbol.space = variable->second->space;
  symbol.size = variable->second->size;
  if (symbol.space == Space::shared)
    symbol.address = layout.shared.at(variable->second);
  else if (variable->second->external)
    throw SyntaxFault(0, fmt::format("variable {} is declared and not in the module", name));
  else
    symbol.global = std::string(name);
  return frames.front().scopes.front().emplace(std::string(name), symbol).first->second;
}

Operand Decoder::newRegister(const std::string &name, Type type) {
  const unsigned bits = bitsOf(type);
  if (bits != 1 && bits != 16 && bits != 32 && bits != 64)
    throw SyntaxFault(0, fmt::format("registers of {} bits are not modelled: {}", bits, name));
  Operand operand;
  operand.number = static_cast<std::int32_t>(program.registerNames.size());
  operand.bits = static_cast<std::uint8_t>(bits);
  operand.row = program.rowBytes;
  program.registerNames.push_back(name);
  if (type != Type::pred)
    program.rowBytes += bits / 8 * warpSize;
  return operand;
}

Operand Decoder::scratch(unsigned bits) {
  const auto [found, fresh] = scratches.try_emplace(bits);
  if (fresh)
    found->second = newRegister("_", bits == 1    ? Type::pred
                                     : bits == 16 ? Type::b16
                                     : bits == 64 ? Type::b64
                                                  : Type::b32);
  return found->second;
}

Operand Decoder::constant(std::uint64_t bits, unsigned width, const std::string &variable) {
  if (width < 64)
    bits &= (1ULL << width) - 1;
  const auto [found, fresh] = constants.try_emplace({bits, width, variable});
  if (fresh) {
    found->second.row = program.constantBytes;
    found->second.bits = static_cast<std::uint8_t>(width);
    program.constants.push_back({bits, width, variable});
    program.constantBytes += std::max(width / 8, 4U) * warpSize;
  }
  return found->second;
}

bool Decoder::special(std::string_view name, Operand &operand) {
  if (name == "WARP_SZ") {
    operand = constant(warpSize, 32);
    return true;
  }
  if (const auto known = specials.find(name); known != specials.end()) {
    operand = known->second;
    return true;
  }
  const auto *row = std::find_if(std::begin(specialNames), std::end(specialNames),
                                 [&](const SpecialName &s) { return s.name == name; });
  if (row == std::end(specialNames))
    return false;
  operand = newRegister(std::string(name), Type::u32);
  specials.emplace(std::string(name), operand);
  program.specials.emplace_back(row->special, operand);
  return true;
}

} // namespace kiln::ptx
