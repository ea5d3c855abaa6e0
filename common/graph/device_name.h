#pragma once

// TensorFlow's device strings: "/job:ps/replica:0/task:1/device:CPU:0", complete or partial.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/ids.h"

namespace dtf::graph {

// A device, or a constraint on one: an empty field constrains nothing. Value type.
struct DeviceName {
  std::optional<std::string> job;  // lower case: "ps", "worker"
  std::optional<uint32_t> replica;
  std::optional<uint32_t> task;
  std::optional<std::string> type;  // upper case: "CPU", "GPU"
  std::optional<uint32_t> index;
  bool operator==(const DeviceName&) const = default;

  // Parses fields in any order, each at most once. "/cpu:0" and "/gpu:0" are short for
  // "/device:CPU:0" and "/device:GPU:0"; "*" and an empty string are no constraint; "/device:GPU"
  // has no index. Jobs and device types are read in any case: "/job:PS" is "/job:ps".
  // Errors: kBadConfig with the text and its mistake.
  static DeviceName parse(std::string_view text);

  // Returns the set fields in TensorFlow's order; empty if none is set.
  std::string str() const;

  // Returns this name overlaid with the fields of `inner`: of nested device scopes the innermost
  // wins, field by field.
  DeviceName mergedWith(const DeviceName& inner) const;

  // Returns the task, or nullopt if job or task is open.
  // Errors: kBadConfig for a job that is neither ps nor worker.
  std::optional<TaskId> taskId() const;
};

// Returns whether the device can be the first CPU of some task: no field names another
// replica, type or index.
bool canBeFirstCpu(const DeviceName& device);

// Returns the task on which a device keeps variables of a job: "/job:ps/task:1", alone or with its
// only CPU, "/job:ps/replica:0/task:1/cpu:0"; nullopt for any other text.
std::optional<TaskId> variableTask(std::string_view device);

// Returns a device with every field: "/job:ps/replica:0/task:1/device:CPU:0".
DeviceName fullDevice(TaskId task, std::string type = "CPU", uint32_t index = 0);

}  // namespace dtf::graph
