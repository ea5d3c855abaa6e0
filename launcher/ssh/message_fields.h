#pragma once

// What the JSON of orders and of reports have in common: fields that are read as what they must be.
// For messages.h's own files.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/cluster/address.h"
#include "launcher/ssh/messages.h"

namespace dtf::launcher::fields {

using nlohmann::json;

inline constexpr size_t kTasksMax = 4096;  // of a job: twice what a cluster file may have

// Errors of all these: kBadData, saying what can't be; those of nlohmann::json for what is not there,
// or of another type.
[[noreturn]] void refuse(const std::string& what);
size_t taskOf(const json& message);    // its "task"
TaskId idOf(const std::string& name);  // "worker/1"
std::filesystem::path absoluteOf(const std::string& text);
uint16_t portOf(const json& number);
std::string launchOf(
    const std::string& text);  // letters and digits: it becomes part of a file's name
double secondsOf(const json& message, const char* key);
uint64_t bytesOf(const json& message, const char* key);
cluster::Address addressOf(const std::string& text);
ErrorCode codeOf(const std::string& word);  // another: kUnavailable
json filesJson(const SentFiles& files);
SentFiles readFiles(const json& message);  // its "files"
// The text as JSON of no more levels than a message has.
// Errors: kBadData only.
json parse(std::string_view text);

// What `read` makes of the message. Errors: kBadData.
template <class Read>
auto parsed(std::string_view text, Read read) {
  try {
    return read(parse(text));
  } catch (const json::exception& error) {
    refuse(std::string("a message that can't be read: ") + error.what());
  }
}

}  // namespace dtf::launcher::fields
