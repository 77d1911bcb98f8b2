// SPDX-License-Identifier: Apache-2.0
//
// FOLDER/KEY.read lists the files that the command read when it last ran, where KEY is a hash of the command. The
// result is named by the hash of KEY and of the contents of these files. So a changed header leads to another result,
// and a header that is included for the first time implies a change of a listed file. Limitation: a new header is not
// detected if it is in a folder that is searched before the one in which a header of the same name was found.
#include "tools/kiln/GeneratorCache.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

namespace kiln {

namespace {

/// The 128-bit FNV-1a hash (Fowler, Noll and Vo, 1991).
class Hash {
public:
  Hash &add(const std::string &bytes) {
    for (char byte : bytes)
      value = (value ^ static_cast<unsigned char>(byte)) * prime;
    value = (value ^ 0x100 ^ bytes.size()) * prime; // marks the end of a part
    return *this;
  }
  std::string text() const {
    return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(value >> 64), static_cast<std::uint64_t>(value));
  }

private:
  using Number = unsigned __int128;
  static constexpr Number prime = (Number(1) << 88) + 0x13b;
  Number value = (Number(0x6c62272e07bb0142) << 64) + 0x62b821756295c58d;
};

std::optional<std::string> readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

/// Identifies the program that a word names, if any: another version of the compiler has another size or time.
std::string describeProgram(const std::string &word) {
  std::error_code error;
  const fs::path program = findProgram(word);
  if (!fs::is_regular_file(program, error))
    return "";
  return fmt::format("{} {} {}", program.string(), fs::file_size(program, error),
                     fs::last_write_time(program, error).time_since_epoch().count());
}

/// Returns the files after the colon of a make rule.
std::vector<std::string> filesOfRule(const std::string &rule) {
  std::vector<std::string> files;
  std::string file;
  const std::size_t colon = rule.find(": ");
  auto finish = [&] {
    if (!file.empty())
      files.push_back(std::exchange(file, ""));
  };
  for (std::size_t at = colon == std::string::npos ? rule.size() : colon + 1; at < rule.size(); ++at) {
    const char c = rule[at], next = at + 1 < rule.size() ? rule[at + 1] : '\n';
    if (c == '\\' && (next == ' ' || next == '#' || next == '\\'))
      file += rule[++at];
    else if (c == '$' && next == '$')
      file += rule[++at];
    else if (c == '\\' && next == '\n')
      finish(), ++at;
    else if (c == '\n') // the next rule
      break;
    else if (c == ' ' || c == '\t')
      finish();
    else
      file += c;
  }
  finish();
  return files;
}

/// Writes to a temporary name and renames the file, so that a reader sees all of it or nothing.
bool writeFile(const fs::path &path, const std::string &text) {
  const fs::path partial = fmt::format("{}.{}.partial", path.string(), getpid());
  std::error_code error;
  if (std::ofstream file(partial, std::ios::binary); !(file << text) || !file.flush()) {
    fs::remove(partial, error);
    return false;
  }
  fs::rename(partial, path, error);
  return !error;
}

} // namespace

fs::path findProgram(const std::string &name) {
  std::error_code error;
  if (name.find('/') != std::string::npos)
    return fs::canonical(name, error);
  const char *given = std::getenv("PATH");
  const std::string path = given ? given : "";
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const fs::path candidate = fs::path(path.substr(begin, end - begin)) / name;
    if (access(candidate.c_str(), X_OK) == 0)
      return fs::canonical(candidate, error);
    begin = end + 1;
  }
  return {};
}

std::string quoteFlag(const std::string &word) {
  const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos)
    return word;
  std::string text = "'";
  for (char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

fs::path generatorsFolder(const fs::path &cache) { return cache.empty() ? fs::path() : cache / "generators"; }

std::vector<std::string> splitWords(const std::string &text) {
  std::vector<std::string> words;
  std::string word;
  bool isWord = false;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote ? c == quote : c == '"' || c == '\'') {
      quote = quote ? 0 : c;
      isWord = true;
    } else if (c == '\\' && quote != '\'' && at + 1 < text.size()) {
      word += text[++at];
      isWord = true;
    } else if (!quote && (c == ' ' || c == '\t' || c == '\n')) {
      if (isWord)
        words.push_back(std::exchange(word, ""));
      isWord = false;
    } else {
      word += c;
      isWord = true;
    }
  }
  if (isWord)
    words.push_back(word);
  return words;
}

fs::path defaultCacheFolder() {
  const auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (const fs::path own = variable("KILN_CACHE_DIR"); !own.empty())
    return own;
  if (const fs::path all = variable("XDG_CACHE_HOME"); all.is_absolute())
    return all / "kiln";
  if (const fs::path home = variable("HOME"); home.is_absolute())
    return home / ".cache/kiln";
  return {};
}

CompiledFile::CompiledFile(const fs::path &cache, std::string suffix, const std::vector<std::string> &command,
                           std::size_t most)
    : folder(generatorsFolder(cache)), suffix(std::move(suffix)), most(most) {
  Hash hash;
  hash.add("kiln generator 1").add(this->suffix);
  for (const std::string &word : command)
    hash.add(word);
  for (const std::string &word : command) // a compiler may be two words: ccache g++
    if (word.starts_with("-"))
      break;
    else
      hash.add(describeProgram(word));
  for (const char *name : {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX",
                           "LD_RUN_PATH", "LIBRARY_PATH", "SOURCE_DATE_EPOCH"})
    if (const char *value = std::getenv(name))
      hash.add(name).add(value);
  std::error_code error;
  hash.add(fs::current_path(error).string()); // relative paths depend on this folder
  key = hash.text();
}

/// Returns the path of the result, or an empty path if one of the files cannot be read.
fs::path CompiledFile::pathOf(const std::vector<std::string> &read) const {
  Hash hash;
  hash.add(key);
  for (const std::string &name : read) {
    const std::optional<std::string> text = readFile(name);
    if (!text)
      return {};
    hash.add(name).add(*text);
  }
  return folder / (hash.text() + suffix);
}

std::optional<fs::path> CompiledFile::find() const {
  if (folder.empty())
    return std::nullopt;
  const std::optional<std::string> list = readFile(listPath());
  if (!list)
    return std::nullopt;
  std::vector<std::string> read;
  for (std::size_t begin = 0, end; (end = list->find('\n', begin)) != std::string::npos; begin = end + 1)
    read.push_back(list->substr(begin, end - begin));
  const fs::path path = pathOf(read);
  std::error_code error;
  if (read.empty() || path.empty() || !fs::is_regular_file(path, error))
    return std::nullopt;
  fs::last_write_time(path, fs::file_time_type::clock::now(), error); // records the last use
  return path;
}

std::optional<fs::path> CompiledFile::keep(const fs::path &file, const fs::path &rule, fs::file_time_type begin) const {
  const std::optional<std::string> text = folder.empty() ? std::nullopt : readFile(rule);
  if (!text)
    return std::nullopt;
  std::error_code error;
  std::vector<std::string> read;
  for (const std::string &name : filesOfRule(*text)) {
    if (name.ends_with(".gch")) // built from the other files
      continue;
    if (name.find('\n') != std::string::npos || fs::last_write_time(name, error) >= begin || error)
      return std::nullopt;
    read.push_back(name);
  }
  const fs::path path = pathOf(read);
  fs::create_directories(folder, error);
  const fs::path partial = fmt::format("{}.{}.partial", path.string(), getpid());
  if (read.empty() || path.empty() || !fs::copy_file(file, partial, fs::copy_options::overwrite_existing, error))
    return std::nullopt;
  fs::rename(partial, path, error);
  std::string list;
  for (const std::string &name : read)
    list += name + "\n";
  if (error || !writeFile(listPath(), list))
    return std::nullopt;
  trim();
  return path;
}

/// Removes the least recently used files, and files that a killed process left.
void CompiledFile::trim() const {
  const fs::file_time_type longAgo = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::vector<std::pair<fs::file_time_type, fs::path>> files, lists;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const fs::file_time_type used = entry.last_write_time(error);
    if (name.ends_with(suffix))
      files.emplace_back(used, entry.path());
    else if (name.ends_with(".read"))
      lists.emplace_back(used, entry.path());
    else if (name.ends_with(".partial") && used < longAgo)
      fs::remove(entry.path(), error);
  }
  auto remove = [&](auto &all, std::size_t kept) {
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i + kept < all.size(); ++i)
      fs::remove(all[i].second, error), fs::remove(all[i].second.replace_extension(), error); // for X.h.gch, also X.h
  };
  remove(files, most);
  remove(lists, 256);
}

} // namespace kiln
