// A plug-in of another version of the boundary, for tests of the error that reports it.

#include "common/runtime/device_plugin.h"

extern "C" __attribute__((visibility("default"))) const dtf_device_plugin*
dtf_device_plugin_calls() {
  static const dtf_device_plugin calls = {.version = DTF_DEVICE_PLUGIN_VERSION + 1};
  return &calls;
}
