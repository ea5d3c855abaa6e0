#pragma once

// What the JSON of orders and of reports have in common: fields that are read as what they must be.
// For messages.h's own files.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/cluster/address.h"
#include "launcher/ssh/messages.h"

namespace dtf::launcher::fields {

inline constexpr size_t kTasksMax = 4096;  // of a job: twice what a cluster file may have

// Errors of all these: kBadData: a value that is impossible, a field that is missing or of another
// type.
[[noreturn]] void refuse(const std::string& what);
size_t taskOf(const Json& message);    // its "task"
TaskId idOf(const std::string& name);  // "worker/1"
std::filesystem::path absoluteOf(const std::string& text);
uint16_t portOf(const Json& number);
std::string launchOf(
    const std::string& text);  // letters and digits: it becomes part of a file's name
double secondsOf(const Json& message, const char* key);
uint64_t bytesOf(const Json& message, const char* key);
cluster::Address addressOf(const std::string& text);
ErrorCode codeOf(const std::string& word);  // another: kUnavailable
Json filesJson(const SentFiles& files);
SentFiles readFiles(const Json& message);  // its "files"
std::map<std::string, std::string> textsOf(const Json& object);
FileSizes sizesOf(const Json& object);

// The result of `read` for the message. Errors: kBadData.
template <class Read>
auto parsed(std::string_view text, Read read) {
  constexpr int kDepthMax = 4;  // one more than the deepest has
  try {
    return read(Json::parse(text, kDepthMax));
  } catch (const Error& error) {
    refuse("a malformed message: " + error.message());
  }
}

}  // namespace dtf::launcher::fields
