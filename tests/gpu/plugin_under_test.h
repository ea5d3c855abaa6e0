#pragma once

// The plug-ins that the tests build.

#include <cstdlib>
#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/runtime/plugin_library.h"

namespace dtf::runtime::testing {

// Path of libdtf_NAME_plugin.so in the folder DTF_TEST_PLUGINS, which meson.build sets.
inline std::string testPluginPath(const std::string& name) {
  const char* const folder = std::getenv("DTF_TEST_PLUGINS");
  DTF_CHECK_MSG(folder != nullptr,
                "run this test with meson, or set DTF_TEST_PLUGINS=BUILD/tests/gpu");
  return std::string(folder) + "/libdtf_" + name + "_plugin.so";
}

inline std::shared_ptr<const PluginLibrary> hostPlugin() {
  static const auto plugin = std::make_shared<const PluginLibrary>(testPluginPath("host"));
  return plugin;
}

}  // namespace dtf::runtime::testing
