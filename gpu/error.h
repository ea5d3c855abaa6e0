#pragma once

// What fails in the plug-in, as an exception until plugin.cc makes a status of it.

#include <stdexcept>
#include <string>

#include "common/runtime/device_plugin.h"

namespace dtf::gpu {

// `message` is a complete sentence: what happened, where, and what to do next.
class PluginError : public std::runtime_error {
 public:
  PluginError(dtf_plugin_code code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  dtf_plugin_code code() const { return code_; }

 private:
  dtf_plugin_code code_;
};

}  // namespace dtf::gpu
