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
  std::optional<std::string> job;
  std::optional<uint32_t> replica;
  std::optional<uint32_t> task;
  std::optional<std::string> type;  // upper case: "CPU", "GPU"
  std::optional<uint32_t> index;
  bool operator==(const DeviceName&) const = default;

  // Parses fields in any order, each at most once. "/cpu:0" and "/gpu:0" are short for
  // "/device:CPU:0" and "/device:GPU:0"; "*" and an empty string are no constraint; "/device:GPU"
  // has no index.
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

// Returns a device with every field: "/job:ps/replica:0/task:1/device:CPU:0".
DeviceName fullDevice(TaskId task, std::string type = "CPU", uint32_t index = 0);

}  // namespace dtf::graph
