// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/CxxText.h"

#include "compiler/library/Names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {

static std::string viewType(const ArgumentInterface &argument) {
  std::string text =
      fmt::format("::kiln::View<{}std::{}", argument.isOutput ? "" : "const ", info(argument.element).c_type);
  if (argument.element == ElementType::f32)
    text = fmt::format("::kiln::View<{}float", argument.isOutput ? "" : "const ");
  for (const Dim &dim : argument.shape)
    text += dim.fixed() ? fmt::format(", {}", dim.offset) : std::string(", ::kiln::dynamic");
  return text + ">";
}

/// Returns the expression of the first argument dimension that is exactly the symbol, or "" if there is none.
static std::string symbolSource(const EntryInterface &entry, const ParameterNames &names, const Symbol &symbol) {
  for (auto [number, argument] : llvm::enumerate(entry.arguments))
    for (size_t i = 0; i < argument.shape.size(); ++i)
      if (const Dim &dim = argument.shape[i]; dim.named() && dim.symbols[0] == symbol)
        return fmt::format("{}.extent({})", names.argument(number), i);
  return "";
}

static const char *kindOf(const ArgumentInterface &argument) { return argument.isOutput ? "output" : "input"; }

static void addTensors(MethodText &method, const EntryInterface &entry, const ParameterNames &names,
                       llvm::function_ref<std::string(const Dim &, const std::string &)> extentText) {
  std::string whole, extents;
  for (auto [i, argument] : llvm::enumerate(entry.arguments)) {
    const std::string &name = names.argument(i);
    method.parameters += fmt::format(", {} {}", viewType(argument), name);
    method.forwarded += ", " + name;
    method.members += fmt::format("  {} {}{{}};\n", viewType(argument), name);
    method.memberValues += fmt::format(", arguments.{}", name);
    method.values += fmt::format(", {}.data()", name);
    if (llvm::count_if(argument.shape, [](const Dim &dim) { return !dim.fixed(); }) == 1)
      whole += fmt::format("    check.whole(\"{}\", \"{}\", {});\n", kindOf(argument), argument.name, name);
    std::string expected;
    for (size_t d = 0; d < argument.shape.size(); ++d)
      expected += (d ? ", " : "") + extentText(argument.shape[d], fmt::format("{}.extent({})", name, d));
    extents += fmt::format("    check.extents(\"{}\", \"{}\", {}, {{{}}});\n", kindOf(argument), argument.name, name,
                           expected);
  }
  method.checks += whole + extents + "    if (check.status != KILN_OK)\n      return check.status;\n";
}

MethodText entryText(const ModelInterface &model, const EntryInterface &entry) {
  const ParameterNames names(model, entry);
  MethodText method;
  method.checks = fmt::format("    ::kiln::Check check{{call.error, \"{}\"}};\n", entry.name);
  for (const Symbol &symbol : entry.symbols) {
    const std::string source = symbolSource(entry, names, symbol), &name = names.extent(symbol);
    if (source.empty()) { // the symbol is only part of composed dimensions: the caller passes it
      method.parameters += fmt::format(", std::int64_t {}", name);
      method.forwarded += ", " + name;
      method.members += fmt::format("  std::int64_t {} = 0;\n", name);
      method.memberValues += fmt::format(", arguments.{}", name);
    } else {
      method.checks += fmt::format("    const std::int64_t {} = {};\n", name, source);
    }
    method.values += fmt::format(", {}", name);
  }
  addTensors(method, entry, names, [&](const Dim &dim, const std::string &) { return names.expression(dim); });
  return method;
}

static MethodText batchText(const ModelInterface &model, const EntryInterface &entry) {
  const ParameterNames names(model, entry);
  MethodText method;
  method.parameters = ", ::kiln::Span<const kiln_sequence_t> sequences";
  method.members = "  ::kiln::Span<const kiln_sequence_t> sequences{};\n";
  method.memberValues = ", arguments.sequences";
  method.values = ", sequences.size(), sequences.data()";
  method.checks = fmt::format("    ::kiln::Check check{{call.error, \"{}\"}};\n", entry.name);
  if (!entry.ownRows.empty()) {
    const auto own = llvm::find_if(entry.ownSymbols, [&](const Symbol &each) { return each.name == entry.ownRows; });
    method.checks += fmt::format("    std::int64_t rows = 0;\n    for (const kiln_sequence_t &sequence : sequences)\n"
                                 "      rows += sequence.extents ? sequence.extents[{}] : 0;\n",
                                 own - entry.ownSymbols.begin());
  }
  addTensors(method, entry, names, [&](const Dim &dim, const std::string &given) -> std::string {
    if (dim.fixed())
      return std::to_string(dim.offset);
    if (dim.symbols[0] == entry.symbols.front())
      return fmt::format("{} * static_cast<std::int64_t>(sequences.size())", dim.factor);
    return dim.symbols[0] == entry.symbols.back() ? "rows" : given;
  });
  return method;
}

static MethodText methodText(const ModelInterface &model, const EntryInterface &entry) {
  return entry.isBatch() ? batchText(model, entry) : entryText(model, entry);
}

static std::string entryMethod(const ModelInterface &model, const EntryInterface &entry) {
  const MethodText method = methodText(model, entry);
  const std::string name = methodName(model, entry);
  std::string text =
      entry.isBatch()
          ? fmt::format("  /// Runs entry \"{}\" for several sequences, whose rows follow each other in the views.\n",
                        entry.single)
          : fmt::format("  /// Runs entry \"{}\". The views must agree on the dynamic dimensions.\n", entry.name);
  text += fmt::format("  kiln_status_t {0}(const kiln_call_t &call{1}) const {{\n{2}"
                      "    return {3}_{4}(handle, &call{5});\n  }}\n",
                      name, method.parameters, method.checks, model.name, entry.name, method.values);
  if (hasArgumentStruct(entry))
    text += fmt::format("  kiln_status_t {0}(const kiln_call_t &call, const {1}_arguments &arguments) const {{\n"
                        "    return {0}(call{2});\n  }}\n",
                        name, entry.name, method.memberValues);
  return text;
}

/// Returns structs of arguments by name, for entries that have many.
static std::string argumentStructs(const ModelInterface &model) {
  std::string text;
  for (const EntryInterface &entry : model.entries)
    if (hasArgumentStruct(entry))
      text += fmt::format("/// Holds the arguments of entry \"{0}\" by name: model.{1}(call, {{.{2} = ..., ...}}).\n"
                          "struct {0}_arguments {{\n{3}}};\n\n",
                          entry.name, methodName(model, entry), ParameterNames(model, entry).argument(0),
                          methodText(model, entry).members);
  return text;
}

/// Returns the method of models with embedded weights.
static std::string embeddedMethod(const std::string &name) {
  return fmt::format(
      R"(  /// Creates the model, if there is none yet, and binds the weights that are embedded in the archive.
  kiln_status_t bind_embedded(kiln_error_t *error = nullptr) {{
    kiln_status_t status = create(error);
    return status == KILN_OK ? {0}_bind_embedded(handle, error) : status;
  }}

)",
      name);
}

static std::string selfTestMethod(const std::string &name) {
  return fmt::format(
      R"(  /// Compares the results of a separate model with those that the compiler evaluated: {0}_selftest.
  static kiln_status_t selftest(kiln_error_t *error = nullptr) {{ return {0}_selftest(nullptr, error); }}

)",
      name);
}

static std::string trainingMethods(const std::string &name) {
  return fmt::format(
      R"(  /// Creates the model, if there is none yet, and binds initial weights for a seed: {0}_initialise_weights.
  kiln_status_t initialise_weights(std::uint64_t seed, kiln_error_t *error = nullptr) {{
    kiln_status_t status = create(error);
    return status == KILN_OK ? {0}_initialise_weights(handle, seed, error) : status;
  }}
  /// These methods save, resume and average a training: {0}_save_training, load_training and swap_average.
  kiln_status_t save_training(const void *arena, const kiln_training_t &training, const char *path,
                              kiln_error_t *error = nullptr) const {{
    return {0}_save_training(handle, arena, &training, path, error);
  }}
  kiln_status_t load_training(void *arena, kiln_training_t &training, const char *path,
                              kiln_error_t *error = nullptr) {{
    kiln_status_t status = create(error);
    return status == KILN_OK ? {0}_load_training(handle, arena, &training, path, error) : status;
  }}
  kiln_status_t swap_average(void *arena, kiln_error_t *error = nullptr) {{
    return {0}_swap_average(handle, arena, error);
  }}

)",
      name);
}

/// Returns the methods of libraries in which each of several processes has a part of the model.
static std::string ranksMethods(const ModelInterface &model, const ParallelLayout &layout) {
  std::string text = !layout.dividesWeights()
                         ? ""
                         : fmt::format(R"(  /// Writes one file of all processes together: {0}_save_weights_together.
  kiln_status_t save_weights_together(const kiln_call_t &call, const char *path) const {{
    return {0}_save_weights_together(handle, &call, path);
  }}
)",
                                       model.name);
  if (model.trains())
    text +=
        fmt::format(R"(  kiln_status_t save_training_together(const kiln_call_t &call, const kiln_training_t &training,
                                       const char *path) const {{
    return {0}_save_training_together(handle, &call, &training, path);
  }}
)",
                    model.name);
  return text + "\n";
}

/// Returns the methods of models that may run on a GPU.
static std::string deviceMethods(const std::string &name) {
  return fmt::format(
      R"(  /// Returns the kernels as the driver has assembled them, for a later load_cuda_image; empty if none is new.
  kiln_status_t cuda_image(::kiln::Span<const std::byte> &image, kiln_error_t *error = nullptr) const {{
    const void *data = nullptr;
    std::size_t bytes = 0;
    const kiln_status_t status = {0}_cuda_image(handle, &data, &bytes, error);
    image = {{static_cast<const std::byte *>(data), bytes}};
    return status;
  }}
  /// Loads such an image. Call it between create_on and the first call.
  kiln_status_t load_cuda_image(::kiln::Span<const std::byte> image, kiln_error_t *error = nullptr) {{
    return {0}_load_cuda_image(handle, image.data(), image.size(), error);
  }}
  double cuda_assembly_seconds() const {{ return {0}_cuda_assembly_seconds(handle); }}
  /// Makes later calls record themselves as CUDA graphs.
  kiln_status_t capture_entries(kiln_error_t *error = nullptr) {{ return {0}_capture_entries(handle, error); }}

)",
      name);
}

/// A macro that keeps functions out of the symbols of a shared object. An inline function would be such a symbol: then
/// a host and its plug-in, each with a model of this name, would share one copy, whose calls go to the host's library.
/// Hiding the type instead would make g++ warn about each user class with such a member.
static constexpr const char *hiddenText = R"(#ifndef KILN_HIDDEN
#if defined(__GNUC__) && !defined(_WIN32) && !defined(__CYGWIN__)
#define KILN_HIDDEN __attribute__((visibility("hidden")))
#else
#define KILN_HIDDEN
#endif
#endif

)";

/// Returns the length of "template <...> " at the beginning of a declaration, or 0.
static size_t templateHead(llvm::StringRef declaration) {
  if (!declaration.starts_with("template <"))
    return 0;
  int depth = 0;
  for (size_t i = declaration.find('<'); i < declaration.size(); ++i) {
    depth += (declaration[i] == '<') - (declaration[i] == '>');
    if (depth == 0)
      return declaration.find_first_not_of(' ', i + 1) == llvm::StringRef::npos ? declaration.size() : i + 2;
  }
  return declaration.size();
}

/// Returns the position in the line at which the declaration of a function with this indentation begins, after the head
/// of a template; npos: none begins there.
static size_t beginOfFunction(llvm::StringRef line, size_t indentation) {
  llvm::StringRef declaration = line.drop_while([](char c) { return c == ' '; });
  if (line.size() - declaration.size() != indentation)
    return llvm::StringRef::npos;
  declaration = declaration.drop_front(templateHead(declaration));
  if (declaration.empty() || !(llvm::isAlpha(declaration.front()) || declaration.front() == '~'))
    return llvm::StringRef::npos;
  const llvm::StringRef word = declaration.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (llvm::is_contained({"requires", "using", "friend", "namespace", "class", "struct", "static_assert", "typedef",
                          "extern", "KILN_HIDDEN"},
                         word))
    return llvm::StringRef::npos;
  const size_t parameters = declaration.find('('), value = declaration.find('=');
  const bool isFunction =
      parameters != llvm::StringRef::npos && (value > parameters || declaration.contains("operator"));
  return isFunction ? line.size() - declaration.size() : llvm::StringRef::npos;
}

/// Hides every function of the header: members of classes, which are indented by two spaces, and free functions; also
/// templates. What a compiler declares remains: the default constructors of argument structs, which must stay
/// aggregates. They call nothing of the library.
static std::string hideFunctions(llvm::StringRef text) {
  std::string result;
  bool isInClass = false;
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    const bool isClass = line.starts_with("class ") || line.starts_with("struct ") || line.contains("> class ") ||
                         line.contains("> struct ");
    if (isClass && !line.starts_with(" "))
      isInClass = line.ends_with("{");
    else if (line.starts_with("};"))
      isInClass = false;
    const size_t begin = beginOfFunction(line, isInClass ? 2 : 0);
    if (begin != llvm::StringRef::npos)
      result += line.take_front(begin).str() + "KILN_HIDDEN " + line.drop_front(begin).str() + "\n";
    else
      result += line.str() + "\n";
  }
  result.pop_back();
  return result;
}

/// Puts the namespace's content into an inline namespace whose name changes with `digest`, so that headers that differ
/// define different types, also for templates of the standard library.
static std::string inlineNamespace(std::string text, const std::string &name, uint64_t digest) {
  const std::string begin = fmt::format("\nnamespace {} {{\n", name), end = fmt::format("}} // namespace {}\n", name);
  const std::string inner = fmt::format("of_{:016x}", digest);
  if (const size_t at = text.find(begin); at != std::string::npos)
    text.insert(at + begin.size(), fmt::format("inline namespace {} {{\n", inner));
  if (const size_t at = text.rfind(end); at != std::string::npos)
    text.insert(at, fmt::format("}} // inline namespace {}\n", inner));
  return text;
}

static std::string modelClass(const ModelInterface &model, const std::vector<Variant> &variants);

std::string writeCxxHeader(const ModelInterface &model, const std::vector<Variant> &variants) {
  std::string text =
      fmt::format("// SPDX-License-Identifier: {1}\n"
                  "// {0}.hpp: written by Kiln; do not edit. C++17 or later; {0}.h documents the functions.\n"
                  "#pragma once\n\n"
                  "#if !defined(__cplusplus)\n"
                  "#error \"{0}.hpp: this is no C++; expected a C++17 compiler, or {0}.h, which is for C\"\n"
                  "#elif __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)\n"
                  "#error \"{0}.hpp: this C++ is too old; expected C++17 (-std=c++17), or {0}.h, which is for C++11\"\n"
                  "#else\n\n#include \"{0}.h\"\n\n",
                  model.name, licenseOfLibraries);
  text += hiddenText;
  text += hideFunctions(inlineNamespace(cxxViewText, "kiln", llvm::xxh3_64bits(llvm::StringRef(cxxViewText))));
  return text + hideFunctions(inlineNamespace(modelClass(model, variants), model.name, model.digest)) +
         "\n#endif // C++17\n";
}

static std::string modelClass(const ModelInterface &model, const std::vector<Variant> &variants) {
  const std::string &name = model.name;
  std::string text = fmt::format(R"(
#include <algorithm>
#include <utility>

namespace {0} {{

{1}/// Owns a model. Movable; never throws.
class Model {{
public:
  Model() = default;
  Model(Model &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {{}}
  Model &operator=(Model &&other) noexcept {{
    std::swap(handle, other.handle);
    return *this;
  }}
  ~Model() {{ {0}_destroy(handle); }}

  /// Creates the model with options, such as a device, and replaces the previous model.
  kiln_status_t create_on(const kiln_options_t &options, kiln_error_t *error = nullptr) {{
    {0}_destroy(std::exchange(handle, nullptr));
    return {0}_create_on(&options, &handle, error);
  }}
  kiln_device_t device() const {{ return {0}_device(handle); }}
  /// Returns the target that is used; "" before there is a model.
  const char *target() const {{ return {0}_target(handle); }}

  /// Creates the model, if there is none yet, and binds its weights from a safetensors file, or the index of several.
  kiln_status_t bind(const char *path, kiln_error_t *error = nullptr) {{
    kiln_status_t status = create(error);
    return status == KILN_OK ? {0}_bind_weights(handle, path, error) : status;
  }}
  kiln_status_t bind(::kiln::Span<const std::byte> image, kiln_error_t *error = nullptr) {{
    kiln_status_t status = create(error);
    return status == KILN_OK ? {0}_bind_weights_from_memory(handle, image.data(), image.size(), error) : status;
  }}

  /// Binds a file whose tensors have other names.
  kiln_status_t bind(const char *path, ::kiln::Span<const kiln_rename_t> renames, kiln_error_t *error = nullptr) {{
    kiln_status_t status = create(error);
    return status == KILN_OK ? {0}_bind_weights_renamed(handle, path, renames.data(), renames.size(), error) : status;
  }}

  /// Creates the model, if there is none yet, and binds a quantised checkpoint: {0}_bind_gguf and {0}_bind_quantized.
  kiln_status_t bind_gguf(const char *path, ::kiln::Span<const kiln_rename_t> renames, kiln_error_t *error = nullptr) {{
    kiln_status_t status = create(error);
    return status == KILN_OK ? {0}_bind_gguf(handle, path, renames.data(), renames.size(), error) : status;
  }}
  kiln_status_t bind_quantized(const char *path, kiln_quantization_t quantization,
                               ::kiln::Span<const kiln_rename_t> renames, kiln_error_t *error = nullptr) {{
    kiln_status_t status = create(error);
    return status == KILN_OK
               ? {0}_bind_quantized(handle, path, quantization, renames.data(), renames.size(), error)
               : status;
  }}

  /// Creates the model, if there is none yet, and maps its weights from a packed file.
  kiln_status_t bind_packed(const char *path, kiln_error_t *error = nullptr) {{
    kiln_status_t status = create(error);
    return status == KILN_OK ? {0}_bind_packed(handle, path, error) : status;
  }}
  kiln_status_t save_packed(const char *path, kiln_error_t *error = nullptr) const {{
    return {0}_save_packed(handle, path, error);
  }}

  /// Writes the bound weights as a safetensors file.
  kiln_status_t save_weights(const char *path, kiln_error_t *error = nullptr) const {{
    return {0}_save_weights(handle, path, error);
  }}

  /// Both methods copy rows of a bound weight along its first dimension: {0}_read_weight and {0}_write_weight.
  kiln_status_t read_weight(const char *weight, uint64_t row, uint64_t rows, void *values,
                            kiln_error_t *error = nullptr) const {{
    return {0}_read_weight(handle, weight, row, rows, values, error);
  }}
  kiln_status_t write_weight(const char *weight, uint64_t row, uint64_t rows, const void *values,
                             kiln_error_t *error = nullptr) {{
    return {0}_write_weight(handle, weight, row, rows, values, error);
  }}

  /// These methods manage memory for the model's arenas: {0}_allocate_memory and the functions after it.
  kiln_status_t allocate_memory(std::size_t bytes, void **memory, kiln_error_t *error = nullptr) const {{
    return {0}_allocate_memory(handle, bytes, memory, error);
  }}
  void release_memory(void *memory) const {{ {0}_release_memory(handle, memory); }}
  kiln_status_t copy_to_memory(void *to, const void *from_host, std::size_t bytes,
                               kiln_error_t *error = nullptr) const {{
    return {0}_copy_to_memory(handle, to, from_host, bytes, error);
  }}
  kiln_status_t copy_from_memory(void *to_host, const void *from, std::size_t bytes,
                                 kiln_error_t *error = nullptr) const {{
    return {0}_copy_from_memory(handle, to_host, from, bytes, error);
  }}
  kiln_status_t copy_memory(void *to, const void *from, std::size_t bytes, kiln_error_t *error = nullptr) const {{
    return {0}_copy_memory(handle, to, from, bytes, error);
  }}
  kiln_status_t zero_memory(void *memory, std::size_t bytes, kiln_error_t *error = nullptr) const {{
    return {0}_zero_memory(handle, memory, bytes, error);
  }}

)",
                                 name, argumentStructs(model));
  if (model.embedsWeights)
    text += embeddedMethod(name);
  if (model.hasSelfTest)
    text += selfTestMethod(name);
  if (model.trains())
    text += trainingMethods(name);
  if (model.parallel && model.parallel->dividesModel())
    text += ranksMethods(model, *model.parallel);
  if (hasDevice(variants))
    text += deviceMethods(name);
  for (const EntryInterface &entry : model.entries)
    text += entryMethod(model, entry);
  text += fmt::format(R"(
  /// Returns the C handle; null before bind.
  {0}_t *get() const {{ return handle; }}

private:
  kiln_status_t create(kiln_error_t *error) {{ return handle ? KILN_OK : {0}_create(nullptr, &handle, error); }}

  {0}_t *handle = nullptr;
}};
{1}
}} // namespace {0}
)",
                      name, sessionClass(model));
  return text;
}

} // namespace kiln
