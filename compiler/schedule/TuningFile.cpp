// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/TuningFile.h"

#include "compiler/object/ReplaceFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdio>

namespace kiln {

static constexpr llvm::StringLiteral firstWords = "kiln tuning ";
static constexpr int64_t version = 1;

static constexpr std::pair<Outcome, llvm::StringLiteral> outcomeNames[] = {{Outcome::Failed, "failed"},
                                                                           {Outcome::Crashed, "crashed"},
                                                                           {Outcome::TimedOut, "timeout"},
                                                                           {Outcome::Wrong, "wrong"}};
static constexpr std::pair<Limit, llvm::StringLiteral> limitNames[] = {{Limit::Fma, "fma"}, {Limit::Bytes, "bytes"}};

/// Former names of parameters, and the present ones. No parameter of a strategy may have a former name.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> renamedParameters[] = {
    {"parts", "partial_sums"}, {"splits", "split_kv"}, {"turns", "unroll"}};

// Writing.

/// Prints four digits, at least a nanosecond.
static std::string printMicroseconds(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3e", std::max(value, 1e-3));
  double rounded = std::strtod(text, nullptr);
  int digits = rounded < 10 ? 3 : rounded < 100 ? 2 : rounded < 1000 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f", digits, rounded);
  return text;
}

static std::string printList(const std::vector<int64_t> &numbers) {
  if (numbers.empty())
    return "-";
  return llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), ",");
}

llvm::StringRef toString(Outcome outcome) {
  for (auto [named, name] : outcomeNames)
    if (named == outcome)
      return name;
  return "measured";
}

static std::string toString(const TuningResult &result) {
  if (result.outcome != Outcome::Measured)
    return toString(result.outcome).str();
  std::string text = printMicroseconds(result.microseconds) + llvm::formatv("us n={0}", result.samples).str();
  for (auto [limit, name] : limitNames)
    if (result.limit == limit)
      text += llvm::formatv(" {0:f1}% {1}", result.limitFraction * 100, name);
  return text + (result.isDefault ? " default" : "");
}

std::string toString(const TuningCase &of, const TuningResult &result) {
  std::string config = of.config.empty() ? "-" : toString(of.config);
  return llvm::formatv("{0} {1} {2} {3} at={4} {5} threads={6} | {7} | {8}", of.strategy, of.structure,
                       toString(of.shape), toString(of.bounds), printList(of.extents), toString(of.machine), of.threads,
                       config, toString(result));
}

std::string TuningDatabase::text() const {
  std::string text = firstWords.str() + std::to_string(version) + "\n";
  for (const auto &[of, result] : all)
    text += toString(of, result) + "\n";
  return text;
}

// Reading.

namespace {

/// Reads a line; `problem` describes the error.
class LineReader {
public:
  explicit LineReader(llvm::StringRef line) : line(line) {}

  bool run();

  TuningCase of;
  TuningResult result;
  std::string problem;

private:
  template <typename... Values> bool fail(const char *format, const Values &...values) {
    problem = llvm::formatv(format, values...).str();
    return false;
  }

  static bool number(llvm::StringRef text, int64_t &value) {
    return !text.empty() && llvm::all_of(text, llvm::isDigit) && !text.getAsInteger(10, value);
  }
  static bool isName(llvm::StringRef text) {
    return !text.empty() && llvm::isAlpha(text[0]) &&
           llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  }

  /// Parses "-", or numbers separated by `separator`.
  static bool numbers(llvm::StringRef text, char separator, std::vector<int64_t> &values) {
    if (text == "-")
      return true;
    llvm::SmallVector<llvm::StringRef> parts;
    text.split(parts, separator);
    for (llvm::StringRef part : parts) {
      bool isNegative = part.consume_front("-");
      int64_t value;
      if (!number(part, value))
        return false;
      values.push_back(isNegative ? -value : value);
    }
    return true;
  }

  bool readBounds(llvm::StringRef text);
  bool readKey(llvm::StringRef text);
  bool readConfig(llvm::StringRef text);
  bool readResult(llvm::StringRef text);

  llvm::StringRef line;
};

bool LineReader::readBounds(llvm::StringRef text) {
  if (text == "-")
    return true;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [min, max] = part.split("..");
    Bounds bounds;
    if (!number(min, bounds.min) || !number(max, bounds.max) || bounds.min > bounds.max)
      return fail("bounds: wrong form; expected MIN..MAX for each dynamic dimension, got \"{0}\"", text);
    of.bounds.push_back(bounds);
  }
  return true;
}

bool LineReader::readKey(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ' ', -1, false);
  if (words.size() != 7)
    return fail(
        "measurement: wrong number of words; expected 7 before the first \"|\" (strategy, structure, shape, bounds, "
        "at=, machine, threads=), got {0}",
        words.size());
  if (!isName(words[0]))
    return fail("strategy: not a name; expected a letter, then letters and digits, got \"{0}\"", words[0]);
  if (words[1].size() != 16 ||
      !llvm::all_of(words[1], [](char c) { return llvm::isDigit(c) || (c >= 'a' && c <= 'f'); }))
    return fail("structure: wrong form; expected 16 hexadecimal digits, got \"{0}\"", words[1]);
  of.strategy = words[0].str();
  of.structure = words[1].str();
  if (!numbers(words[2], 'x', of.shape))
    return fail("shape: wrong form; expected integers with \"x\" between them, got \"{0}\"", words[2]);
  if (!readBounds(words[3]))
    return false;
  llvm::StringRef extents = words[4];
  if (!extents.consume_front("at=") || !numbers(extents, ',', of.extents))
    return fail("dimensions: wrong form; expected at= and integers with \",\" between them, got \"{0}\"", words[4]);
  if (of.extents.size() != of.bounds.size())
    return fail("dimensions: not as many as bounds; expected {0}, got {1}", of.bounds.size(), of.extents.size());
  for (size_t i = 0; i < of.extents.size(); ++i)
    if (of.extents[i] < of.bounds[i].min || of.extents[i] > of.bounds[i].max)
      return fail("dimensions: size is out of bounds; expected {0}..{1}, got {2}", of.bounds[i].min, of.bounds[i].max,
                  of.extents[i]);
  std::optional<Machine> machine = parseMachine(words[5]);
  if (!machine)
    return fail(
        "machine: wrong form; expected ISA/cCORES/l1:SIZE/l2:SIZE/l3:SIZE or ISA/GPU/CAPABILITY/m:SIZE, got \"{0}\"",
        words[5]);
  of.machine = *machine;
  llvm::StringRef threads = words[6];
  if (!threads.consume_front("threads=") || !number(threads, of.threads) || of.threads < 1)
    return fail("threads: wrong form; expected threads= and an integer of at least 1, got \"{0}\"", words[6]);
  return true;
}

bool LineReader::readConfig(llvm::StringRef text) {
  if (text == "-")
    return true;
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ' ', -1, false);
  if (words.empty())
    return fail("schedule: no parameters; expected some, or - for none, got \"{0}\"", text);
  for (llvm::StringRef word : words) {
    auto [key, value] = word.split('=');
    std::vector<int64_t> parsed;
    if (!isName(key) || value == "-" || !numbers(value, ' ', parsed) || parsed.size() != 1)
      return fail("schedule: wrong form; expected NAME=NUMBER, got \"{0}\"", word);
    for (auto [former, name] : renamedParameters)
      if (key == former)
        return fail("schedule: former name of a parameter; expected \"{0}\", got \"{1}\"", name, key);
    if (!of.config.try_emplace(key.str(), parsed[0]).second)
      return fail("schedule: repeated parameter; expected each once, got \"{0}\" twice", key);
  }
  return true;
}

bool LineReader::readResult(llvm::StringRef text) {
  for (auto [outcome, name] : outcomeNames)
    if (text == name) {
      result.outcome = outcome;
      return true;
    }
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ' ', -1, false);
  size_t next = 0;
  auto word = [&] { return next < words.size() ? words[next] : llvm::StringRef(); };
  llvm::StringRef time = word();
  if (!time.consume_back("us") || time.getAsDouble(result.microseconds) || !(result.microseconds > 0) ||
      result.microseconds > 1e15)
    return fail("result: wrong form; expected failed, crashed, timeout, wrong, or a time such as 812.4us, got \"{0}\"",
                word());
  ++next;
  llvm::StringRef samples = word();
  if (!samples.consume_front("n=") || !number(samples, result.samples) || result.samples < 1)
    return fail("result: no number of samples; expected n= and the number after the time, got \"{0}\"", word());
  ++next;
  if (llvm::StringRef percent = word(); percent.consume_back("%")) {
    double value;
    if (percent.getAsDouble(value) || !(value >= 0) || value > 1e6)
      return fail("result: wrong percentage; expected one such as 93.1%, got \"{0}\"", word());
    result.limitFraction = value / 100;
    ++next;
    for (auto [limit, name] : limitNames)
      if (word() == name)
        result.limit = limit;
    if (result.limit == Limit::Unknown)
      return fail("result: unknown limit; expected fma or bytes after a percentage, got \"{0}\"", word());
    ++next;
  }
  if (word() == "default") {
    result.isDefault = true;
    ++next;
  }
  if (next < words.size())
    return fail("result ends with \"{0}\", which has no meaning", word());
  return true;
}

bool LineReader::run() {
  llvm::SmallVector<llvm::StringRef> parts;
  line.split(parts, '|');
  if (parts.size() != 3)
    return fail(
        "measurement: wrong number of parts; expected kernel, schedule and result with \"|\" between them, got {0}",
        parts.size());
  return readKey(parts[0].trim(' ')) && readConfig(parts[1].trim(' ')) && readResult(parts[2].trim(' '));
}

} // namespace

/// Returns the error in the first line, or an empty string.
static std::string checkFirstLine(llvm::StringRef line) {
  int64_t stated;
  if (!line.consume_front(firstWords) || line.getAsInteger(10, stated) || stated < 1)
    return llvm::formatv("a tuning file begins with \"{0}{1}\"", firstWords, version);
  if (stated > version)
    return llvm::formatv(
        "the tuning file has version {0}, but this compiler reads version {1} at most; use a newer one", stated,
        version);
  return "";
}

TuningDatabase TuningDatabase::parse(llvm::StringRef text, llvm::StringRef name, std::vector<std::string> &problems) {
  TuningDatabase database;
  size_t number = 0;
  auto report = [&](const std::string &problem) {
    problems.push_back(llvm::formatv("{0}:{1}: {2}", name, number, problem));
  };
  do {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    ++number;
    line.consume_back("\r");
    if (number == 1) {
      if (std::string problem = checkFirstLine(line); !problem.empty()) {
        report(problem);
        return database; // what follows has another format
      }
      continue;
    }
    if (line.empty() || line.starts_with("#"))
      continue;
    if (line.starts_with("<<<<<<<") || line.starts_with("=======") || line.starts_with(">>>>>>>")) {
      report("a merge conflict is not resolved; keep the lines of both sides and remove the markers");
      continue;
    }
    LineReader reader(line);
    if (!reader.run()) {
      report(reader.problem);
      continue;
    }
    TuningDatabase single;
    single.all.emplace(std::move(reader.of), reader.result);
    database.merge(single);
  } while (!text.empty());
  return database;
}

llvm::Expected<TuningDatabase> TuningDatabase::load(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError(buffer.getError(), "cannot read the tuning file \"%s\": %s", path.c_str(),
                                   buffer.getError().message().c_str());
  std::vector<std::string> problems;
  TuningDatabase database = parse((*buffer)->getBuffer(), path, problems);
  if (problems.empty())
    return database;
  constexpr size_t most = 10;
  if (problems.size() > most) {
    size_t more = problems.size() - most;
    problems.resize(most);
    problems.push_back(llvm::formatv("and {0} more", more));
  }
  return llvm::createStringError(llvm::join(problems, "\n"));
}

// Measurements of the same case.

bool isBetterFounded(const TuningResult &a, const TuningResult &b) {
  auto rank = [](const TuningResult &result) {
    switch (result.outcome) {
    case Outcome::Wrong:
      return 4;
    case Outcome::Measured:
      return 3;
    case Outcome::Crashed:
      return 2;
    case Outcome::Failed:
      return 1;
    case Outcome::TimedOut:
      break;
    }
    return 0;
  };
  if (rank(a) != rank(b))
    return rank(a) > rank(b);
  if (a.samples != b.samples)
    return a.samples > b.samples;
  if (a.microseconds != b.microseconds)
    return a.microseconds < b.microseconds;
  return toString(a) < toString(b);
}

void TuningDatabase::put(const TuningCase &of, const TuningResult &result) {
  // Rounds as the file does, so that a choice does not change when the database is saved.
  std::string line = toString(of, result);
  LineReader reader(line);
  bool isLegal = reader.run();
  assert(isLegal && "a measurement must have a line");
  if (isLegal)
    all.insert_or_assign(of, reader.result);
}

void TuningDatabase::merge(const TuningDatabase &other) {
  for (const auto &[of, result] : other.all) {
    auto [known, isNew] = all.try_emplace(of, result);
    if (!isNew && isBetterFounded(result, known->second))
      known->second = result;
  }
}

// Files.

llvm::Error TuningDatabase::save(const std::string &path) const { return replaceFile(path, text()); }

} // namespace kiln
