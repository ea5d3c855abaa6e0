#pragma once

// TensorFlow's device strings: "/job:ps/replica:0/task:1/device:CPU:0", whole or in part.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/ids.h"

namespace dtf::graph {

// A device, or a constraint on one: a field without a value says nothing. Value type.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<uint32_t> replica;
  std::optional<uint32_t> task;
  std::optional<std::string> type;  // in capitals: "CPU", "GPU"
  std::optional<uint32_t> index;
  bool operator==(const DeviceName&) const = default;

  // Fields in any order, each at most once. Short forms "/cpu:0" and "/gpu:0" stand for
  // "/device:CPU:0" and "/device:GPU:0"; "*" and an empty string are no constraint; "/device:GPU"
  // has no index.
  // Errors: kBadConfig with the text and what is wrong in it.
  static DeviceName parse(std::string_view text);

  // The fields that have a value, in TensorFlow's order; empty when none has.
  std::string str() const;

  // This with `inner`'s fields on top: of nested device scopes the innermost wins, field by field.
  DeviceName mergedWith(const DeviceName& inner) const;

  // The process this names, or nullopt when job or task is open.
  // Errors: kBadConfig for a job that is neither ps nor worker.
  std::optional<TaskId> taskId() const;
};

// "/job:ps/replica:0/task:1/device:CPU:0": a device with every field.
DeviceName fullDevice(TaskId task, std::string type = "CPU", uint32_t index = 0);

}  // namespace dtf::graph
