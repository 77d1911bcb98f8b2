// SPDX-License-Identifier: Apache-2.0
//
// An entry is a file whose name is the hash of its key. It has one line with the hash of its bytes, followed by the
// bytes. It is written under another name and renamed, so that a reader sees all of it or nothing. Its modification
// time is the time of its last use.
#include "compiler/jobs/ObjectCache.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <cstdlib>

namespace kiln {

using namespace llvm;
namespace fs = sys::fs;

static constexpr StringLiteral entrySuffix = ".kernel", temporarySuffix = ".partial";
static constexpr size_t hashLetters = 64;

static std::string hashOf(StringRef bytes) {
  SHA256 hash;
  hash.update(bytes);
  return toHex(hash.final(), /*LowerCase=*/true);
}

ObjectCache::ObjectCache(std::string folder, uint64_t maxBytes) : folder(std::move(folder)), maxBytes(maxBytes) {}

std::string ObjectCache::defaultFolder() {
  const auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return StringRef(value ? value : "");
  };
  if (StringRef own = variable("KILN_CACHE_DIR"); !own.empty())
    return own.str();
  // The specification of this variable requires that a relative path is ignored.
  if (StringRef all = variable("XDG_CACHE_HOME"); sys::path::is_absolute(all))
    return (all + "/kiln").str();
  if (StringRef home = variable("HOME"); sys::path::is_absolute(home))
    return (home + "/.cache/kiln").str();
  return "";
}

std::string ObjectCache::pathOf(StringRef key) const { return (folder + "/" + hashOf(key) + entrySuffix).str(); }

std::optional<std::string> ObjectCache::find(StringRef key) const {
  if (folder.empty())
    return std::nullopt;
  Expected<fs::file_t> file = fs::openNativeFileForRead(pathOf(key));
  if (!file) {
    consumeError(file.takeError());
    return std::nullopt;
  }
  std::optional<std::string> bytes;
  SmallString<0> text;
  if (Error error = fs::readNativeFileToEOF(*file, text)) {
    consumeError(std::move(error));
  } else {
    auto [sum, rest] = text.str().split('\n');
    if (sum == hashOf(rest))
      bytes = rest.str();
  }
  if (bytes) // fails where the folder is read only; it is then never trimmed either
    fs::setLastAccessAndModificationTime(*file, std::chrono::system_clock::now());
  fs::closeFile(*file);
  return bytes;
}

void ObjectCache::store(StringRef key, StringRef bytes) {
  if (folder.empty() || fs::create_directories(folder, /*IgnoreExisting=*/true, fs::all_all))
    return;
  SmallString<0> temporary;
  int descriptor;
  if (fs::createUniqueFile(folder + "/" + hashOf(key) + ".%%%%%%%%" + temporarySuffix, descriptor, temporary))
    return;
  raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  out << hashOf(bytes) << '\n' << bytes;
  out.close();
  if (out.has_error() || fs::rename(temporary, pathOf(key)))
    fs::remove(temporary);
  else
    isChanged = true;
  out.clear_error();
}

/// Whether the name is one that store() creates, with this suffix. Other files in the folder do not belong to the
/// cache.
static bool isOurs(StringRef name, StringRef suffix) {
  return name.ends_with(suffix) && name.size() >= hashLetters + suffix.size() &&
         all_of(name.take_front(hashLetters), isHexDigit) && name[hashLetters] == '.';
}

void ObjectCache::trim() {
  if (!isChanged)
    return;
  isChanged = false;
  struct Entry {
    sys::TimePoint<> used;
    uint64_t bytes;
    std::string path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  const sys::TimePoint<> longAgo = std::chrono::system_clock::now() - std::chrono::hours(1);
  std::error_code code;
  for (fs::directory_iterator file(folder, code), end; !code && file != end; file.increment(code)) {
    StringRef name = sys::path::filename(file->path());
    fs::file_status status;
    if ((!isOurs(name, entrySuffix) && !isOurs(name, temporarySuffix)) || fs::status(file->path(), status))
      continue;
    if (name.ends_with(entrySuffix)) {
      entries.push_back({status.getLastModificationTime(), status.getSize(), file->path()});
      total += status.getSize();
    } else if (status.getLastModificationTime() < longAgo) {
      fs::remove(file->path()); // left by a build that was killed
    }
  }
  sort(entries, [](const Entry &a, const Entry &b) { return std::tie(a.used, a.path) < std::tie(b.used, b.path); });
  for (const Entry &entry : entries) {
    if (total <= maxBytes)
      break;
    fs::remove(entry.path);
    total -= entry.bytes;
  }
}

} // namespace kiln
