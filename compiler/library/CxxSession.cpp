// SPDX-License-Identifier: Apache-2.0
//
// Writes the class Session of NAME.hpp.
#include "compiler/library/CxxText.h"

#include "compiler/library/Names.h"

#include <fmt/format.h>

namespace kiln {

std::string sessionClass(const ModelInterface &model) {
  const std::string macro = macroName(model.name);
  std::string sizes, methods;
  for (const EntryInterface &entry : model.entries) {
    if (entry.isBatch())
      continue;
    sizes += fmt::format("    bytes = std::max<std::size_t>(bytes, {}_{}_ARENA_BYTES(workers));\n", macro,
                         macroName(entry.name));
    const MethodText method = entryText(model, entry);
    const std::string name = methodName(model, entry);
    methods += fmt::format("  kiln_status_t {0}({1}) {{ return session_model ? session_model->{0}(session_call{2}) : "
                           "KILN_NULL_ARGUMENT; }}\n",
                           name, method.parameters.substr(2), method.forwarded);
    if (hasArgumentStruct(entry))
      methods += fmt::format(
          "  kiln_status_t {0}(const {1}_arguments &arguments) {{\n"
          "    return session_model ? session_model->{0}(session_call, arguments) : KILN_NULL_ARGUMENT;\n  }}\n",
          name, entry.name);
  }
  const std::string kept = model.hasOptimizerState() ? "training" : model.states.empty() ? "" : "session";
  std::string text = fmt::format(
      R"(
/// A session owns an arena, which holds the model's state between calls, and the options of calls. Movable; never
/// throws. The model must outlive the session and must not move. A session serves one call at a time.
class Session {{
public:
  Session() = default;
  Session(Session &&other) noexcept : session_model(other.session_model), session_call(other.session_call) {{
    other.session_model = nullptr;
  }}
  Session &operator=(Session &&other) noexcept {{
    if (this == &other)
      return *this;
    release();
    session_model = other.session_model;
    session_call = other.session_call;
    other.session_model = nullptr;
    return *this;
  }}
  ~Session() {{ release(); }}

  /// Allocates an arena that is large enough for every entry with the executor of the options, and begins a session in
  /// it. The options' arena and arena_bytes are ignored.
  kiln_status_t begin(const Model &model, const kiln_call_t &options = {{}}) {{
    const std::uint32_t workers = options.executor ? options.executor->workers : 1;
    std::size_t bytes = 0;
{1}    void *memory = nullptr;
    const kiln_status_t status = model.allocate_memory(bytes, &memory, options.error);
    if (status != KILN_OK)
      return status;
    release();
    session_model = &model;
    session_call = options;
    session_call.arena = memory;
    session_call.arena_bytes = bytes;
    return restart();
  }}
  /// Begins the session again: discards the state of earlier calls.
  kiln_status_t restart() {{ return session_model ? {2} : KILN_NULL_ARGUMENT; }}
  /// Copies the state of another session of the same model, which remains unchanged.
  kiln_status_t fork(const Session &other) {{
    return session_model && session_model == other.session_model ? {3} : KILN_NULL_ARGUMENT;
  }}
  /// Returns the options of calls, including the arena. The caller may change trace, error and stream.
  kiln_call_t &call() {{ return session_call; }}
  /// Returns the session as a sequence of a batched entry, with these extents.
  kiln_sequence_t sequence(const std::int64_t *extents) const {{ return {{session_call.arena, extents}}; }}

)",
      model.name, sizes,
      kept.empty()
          ? "KILN_OK"
          : fmt::format("{}_begin_{}(session_model->get(), session_call.arena, session_call.error)", model.name, kept),
      kept.empty()
          ? "KILN_OK"
          : fmt::format("session_model->copy_memory(session_call.arena, other.session_call.arena, {}_{}_BYTES, "
                        "session_call.error)",
                        macro, model.hasOptimizerState() ? "TRAINING" : "STATE"));
  return text + methods + R"(
private:
  void release() {
    if (session_model)
      session_model->release_memory(session_call.arena);
    session_model = nullptr;
  }

  const Model *session_model = nullptr;
  kiln_call_t session_call{};
};
)";
}

} // namespace kiln
