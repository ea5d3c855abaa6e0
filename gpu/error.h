#pragma once

// Failures in the plug-in, as exceptions until plugin.cc converts them to statuses.

#include <stdexcept>
#include <string>

#include "common/runtime/device_plugin.h"

namespace dtf::gpu {

// `message` is a complete sentence: the failure, its place, and the next action.
class PluginError : public std::runtime_error {
 public:
  PluginError(dtf_plugin_code code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  dtf_plugin_code code() const { return code_; }

 private:
  dtf_plugin_code code_;
};

}  // namespace dtf::gpu
