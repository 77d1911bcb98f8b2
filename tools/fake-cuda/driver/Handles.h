// SPDX-License-Identifier: Apache-2.0
//
// Handles of the driver's objects. Values are never reused, so that a destroyed handle is recognised, and are addresses
// that no process has, so that a client that dereferences one faults.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

namespace kiln::fake {

template <class Handle, class Object> class Handles {
public:
  Handle add(std::shared_ptr<Object> object) {
    const auto handle = reinterpret_cast<Handle>(next());
    objects.emplace(handle, std::move(object));
    return handle;
  }
  /// Returns null if there is no such object, or if it was destroyed.
  std::shared_ptr<Object> find(Handle handle) const {
    const auto found = objects.find(handle);
    return found == objects.end() ? nullptr : found->second;
  }
  bool remove(Handle handle) { return objects.erase(handle) != 0; }
  template <class Condition> unsigned removeIf(Condition condition) {
    return static_cast<unsigned>(std::erase_if(objects, [&](const auto &entry) { return condition(*entry.second); }));
  }
  unsigned size() const { return static_cast<unsigned>(objects.size()); }
  const std::map<Handle, std::shared_ptr<Object>> &all() const { return objects; }

private:
  static std::uintptr_t next() {
    static std::uintptr_t value =
        0x4000'0000'0000'0000; // shared by all kinds of handles: a handle of one kind is unknown as another
    return value += 16;
  }
  std::map<Handle, std::shared_ptr<Object>> objects;
};

} // namespace kiln::fake
