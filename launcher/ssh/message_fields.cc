#include "launcher/ssh/message_fields.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace dtf::launcher::fields {

void refuse(const std::string& what) {
  throw Error(ErrorCode::kBadData, what);
}

size_t taskOf(const Json& message) {
  const auto task = message.uint64At("task");
  if (task >= kTasksMax) refuse("there is no task " + std::to_string(task));
  return task;
}

TaskId idOf(const std::string& name) {
  const size_t slash = name.find('/');
  const std::optional<JobKind> job = parseJobName(name.substr(0, slash));
  if (slash != std::string::npos && job)
    for (uint32_t index = 0; index < kTasksMax; ++index)
      if (const TaskId id{*job, index}; id.name() == name) return id;
  refuse("there is no task '" + name + "'");
}

std::filesystem::path absoluteOf(const std::string& text) {
  const std::filesystem::path path(text);
  if (!path.is_absolute() || path != path.lexically_normal())
    refuse("'" + text + "' is not an absolute path");
  return path;
}

uint16_t portOf(const Json& number) {
  constexpr uint64_t kPortMax = 65535;
  const auto port = number.asUint64();
  if (port < 1 || port > kPortMax) refuse("there is no port " + std::to_string(port));
  return static_cast<uint16_t>(port);
}

std::string launchOf(const std::string& text) {
  constexpr size_t kLaunchBytesMax = 64;
  const bool is_plain =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c); });
  if (text.empty() || text.size() > kLaunchBytesMax || !is_plain)
    refuse("'" + text + "' is not the name of a launch");
  return text;
}

double secondsOf(const Json& message, const char* key) {
  constexpr double kSecondsMax = 86400;
  const auto seconds = message.doubleAt(key);
  if (!(seconds > 0 && seconds <= kSecondsMax)) refuse(std::string(key) + " is out of range");
  return seconds;
}

cluster::Address addressOf(const std::string& text) {
  cluster::Address address;
  const std::string wrong = cluster::parseAddress(text, address);
  if (!wrong.empty()) refuse("'" + text + "' is not an address: " + wrong);
  return address;
}

ErrorCode codeOf(const std::string& word) {
  for (const ErrorCode code : {ErrorCode::kTrainingFailed, ErrorCode::kUsage, ErrorCode::kBadData,
                               ErrorCode::kInternal, ErrorCode::kCannotWrite,
                               ErrorCode::kPermission, ErrorCode::kBadConfig, ErrorCode::kDeadline})
    if (errorCodeName(code) == word) return code;
  return ErrorCode::kUnavailable;
}

// Of a file of which nobody has so much.
uint64_t bytesOf(const Json& message, const char* key) {
  constexpr uint64_t kBytesMax = uint64_t{1} << 60;
  const auto bytes = message.uint64At(key);
  if (bytes > kBytesMax) refuse(std::string(key) + " is out of range");
  return bytes;
}

Json filesJson(const SentFiles& files) {
  Json named = Json::object();
  for (const auto& [path, text] : files) named[path.string()] = text;
  return named;
}

std::map<std::string, std::string> textsOf(const Json& object) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, text] : object.members()) texts[key] = text.asString();
  return texts;
}

FileSizes sizesOf(const Json& object) {
  FileSizes sizes;
  for (const auto& [name, size] : object.members()) sizes[name] = size.asUint64();
  return sizes;
}

SentFiles readFiles(const Json& message) {
  SentFiles files;
  for (const auto& [path, text] : message.at("files").members())
    files[absoluteOf(path)] = text.asString();
  return files;
}

}  // namespace dtf::launcher::fields
