// SPDX-License-Identifier: Apache-2.0
//
// The configuration of the machine in environment variables. A value that cannot be parsed ends the process: a test
// that runs on another machine than the requested one tests nothing.
#include <charconv>
#include <cstdlib>

#include "Driver.h"

namespace kiln::fake {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

template <class Number> bool parse(std::string_view text, Number &number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool parseDevice(std::string_view text, Device &device) {
  const auto parts = split(text, ':');
  const auto capability = split(parts[0], '.');
  if (parts.size() > 2 || capability.size() != 2 || !parse(capability[0], device.major) ||
      !parse(capability[1], device.minor) || device.minor > 9)
    return false;
  if (parts.size() == 2) {
    std::size_t megabytes = 0;
    if (!parse(parts[1], megabytes) || !megabytes)
      return false;
    device.bytes = megabytes << 20;
  }
  return true;
}

[[noreturn]] void refuse(const char *variable, const char *value) {
  std::fprintf(stderr, "fake CUDA driver: %s=%s is not understood\n", variable, value);
  std::exit(2);
}

} // namespace

bool parseDevices(std::string_view text, std::vector<Device> &devices) {
  std::vector<Device> parsed;
  if (text != "none")
    for (const std::string_view part : split(text, ','))
      if (!parseDevice(part, parsed.emplace_back()))
        return false;
  devices = std::move(parsed);
  return true;
}

std::set<std::string, std::less<>> parseNames(std::string_view text) {
  std::set<std::string, std::less<>> names;
  for (const std::string_view name : split(text, ','))
    names.emplace(name);
  return names;
}

std::vector<Injection> parseInjections(const char *text) {
  std::vector<Injection> injections;
  for (const std::string_view part : split(text, ',')) {
    const auto fields = split(part, ':');
    unsigned nth = 0, error = 0;
    if (fields.size() != 3 || !parse(fields[1], nth) || !parse(fields[2], error) || !nth || !error)
      refuse("KILN_FAKE_CUDA_INJECT", text);
    injections.push_back({std::string(fields[0]), nth, static_cast<CUresult>(error)});
  }
  return injections;
}

Configuration configurationOfEnvironment() {
  Configuration configuration;
  if (const char *value = std::getenv("KILN_FAKE_CUDA_DEVICES"); value && !parseDevices(value, configuration.devices))
    refuse("KILN_FAKE_CUDA_DEVICES", value);
  if (const char *value = std::getenv("KILN_FAKE_CUDA_VERSION");
      value && !parse(std::string_view(value), configuration.version))
    refuse("KILN_FAKE_CUDA_VERSION", value);
  if (const char *value = std::getenv("KILN_FAKE_CUDA_ABSENT"))
    configuration.absent = parseNames(value);
  if (const char *value = std::getenv("KILN_FAKE_CUDA_ORDER")) {
    configuration.eager = std::string_view(value) == "eager";
    if (!configuration.eager && std::string_view(value) != "lazy")
      refuse("KILN_FAKE_CUDA_ORDER", value);
  }
  return configuration;
}

} // namespace kiln::fake
