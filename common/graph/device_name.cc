#include "common/graph/device_name.h"

#include <cctype>
#include <charconv>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::graph {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::kBadConfig,
              "the device '" + std::string(text) + "' is not understood: " + why +
                  "; write it like /job:ps/task:1 or /job:worker/task:0/device:GPU:0");
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool isName(std::string_view word) {
  if (word.empty() || !std::isalpha(static_cast<unsigned char>(word[0]))) return false;
  for (const char c : word) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

template <class T>
void setOnce(std::optional<T>& field, T value, std::string_view text, const std::string& what) {
  if (field) refuse(text, what + " is given twice");
  field = std::move(value);
}

void setNumber(std::optional<uint32_t>& field, const std::string& word, std::string_view text,
               const std::string& what) {
  if (word == "*") return;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) {
    refuse(text, what + " must be a number, not '" + word + "'");
  }
  setOnce(field, value, text, what);
}

void setName(std::optional<std::string>& field, std::string word, std::string_view text,
             const std::string& what) {
  if (word == "*") return;
  if (!isName(word)) refuse(text, what + " must be a name, not '" + word + "'");
  setOnce(field, std::move(word), text, what);
}

// Sets the field between two slashes, split at its colons: {"job", "ps"}, {"device", "GPU", "0"},
// {"gpu", "0"}.
void setField(DeviceName& name, const std::vector<std::string>& words, std::string_view text) {
  const std::string& key = words[0];
  if (key == "device" && (words.size() == 2 || words.size() == 3)) {
    setName(name.type, upper(words[1]), text, "the device type");
    if (words.size() == 3) setNumber(name.index, words[2], text, "the device index");
  } else if (words.size() != 2) {
    refuse(text, "'" + join(words, ":") + "' is not a field");
  } else if (key == "job") {
    setName(name.job, lower(words[1]), text, "the job");
  } else if (key == "replica") {
    setNumber(name.replica, words[1], text, "the replica");
  } else if (key == "task") {
    setNumber(name.task, words[1], text, "the task");
  } else if (upper(key) == "CPU" || upper(key) == "GPU") {
    setName(name.type, upper(key), text, "the device type");
    setNumber(name.index, words[1], text, "the device index");
  } else {
    refuse(text, "unknown field '" + key + "'");
  }
}

}  // namespace

DeviceName DeviceName::parse(std::string_view text) {
  DeviceName name;
  if (text.empty()) return name;
  if (text[0] != '/') refuse(text, "it must begin with '/'");
  for (const std::string& field : split(text.substr(1), '/')) {
    setField(name, split(field, ':'), text);
  }
  return name;
}

std::string DeviceName::str() const {
  std::string text;
  if (job) text += "/job:" + *job;
  if (replica) text += "/replica:" + std::to_string(*replica);
  if (task) text += "/task:" + std::to_string(*task);
  if (type || index) text += "/device:" + type.value_or("*");
  if (index) text += ":" + std::to_string(*index);
  return text;
}

DeviceName DeviceName::mergedWith(const DeviceName& inner) const {
  DeviceName merged = *this;
  if (inner.job) merged.job = inner.job;
  if (inner.replica) merged.replica = inner.replica;
  if (inner.task) merged.task = inner.task;
  if (inner.type) merged.type = inner.type;
  if (inner.index) merged.index = inner.index;
  return merged;
}

std::optional<TaskId> DeviceName::taskId() const {
  if (!job || !task) return std::nullopt;
  const std::optional<JobKind> kind = parseJobName(*job);
  if (!kind) {
    throw Error(ErrorCode::kBadConfig,
                "the device '" + str() + "' names the job '" + *job + "': there are ps and worker");
  }
  return TaskId{*kind, *task};
}

bool canBeFirstCpu(const DeviceName& device) {
  return device.replica.value_or(0) == 0 && device.type.value_or("CPU") == "CPU" &&
         device.index.value_or(0) == 0;
}

std::optional<TaskId> variableTask(std::string_view device) {
  try {
    const DeviceName name = DeviceName::parse(device);
    return canBeFirstCpu(name) ? name.taskId() : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

DeviceName fullDevice(TaskId task, std::string type, uint32_t index) {
  DTF_CHECK(!type.empty());
  return {.job = std::string(jobName(task.job)),
          .replica = 0,
          .task = task.index,
          .type = std::move(type),
          .index = index};
}

}  // namespace dtf::graph
