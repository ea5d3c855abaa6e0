// The boundary: maps calls of device_plugin.h to this library, and exceptions to statuses.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "gpu/backend.h"
#include "gpu/error.h"
#include "gpu/program.h"

// The boundary's opaque types.
struct dtf_plugin_device {
  dtf::gpu::Device device;
};
struct dtf_plugin_kernel {
  std::unique_ptr<dtf::gpu::Kernel> kernel;
  size_t inputs = 0, outputs = 0;
};
struct dtf_plugin_program {
  dtf::gpu::Program program;
};

namespace dtf::gpu {
namespace {

void setStatus(dtf_plugin_status* status, dtf_plugin_code code, const char* message) {
  status->code = code;
  std::snprintf(status->message, sizeof status->message, "%s", message);
}

// Returns f()'s result; on an exception sets the status, and returns zero.
template <class F>
auto guarded(dtf_plugin_status* status, const F& f) -> decltype(f()) {
  try {
    return f();
  } catch (const PluginError& error) {
    setStatus(status, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    setStatus(status, DTF_PLUGIN_UNAVAILABLE, "The host has no memory for the GPU plug-in.");
  } catch (const std::exception& error) {
    setStatus(status, DTF_PLUGIN_INTERNAL, error.what());
  }
  return decltype(f())();
}

int32_t deviceCount(dtf_plugin_status* status) {
  return guarded(status, [status] {
    std::string why;
    const int count = Device::count(why);
    std::snprintf(status->message, sizeof status->message, "%s", why.c_str());
    return static_cast<int32_t>(count);
  });
}

const char* const* ops(size_t* size) {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> made;
    for (const auto& [op, factory] : kernelTable()) made.push_back(op.c_str());
    return made;
  }();
  *size = names.size();
  return names.data();
}

dtf_plugin_device* open(int32_t index, dtf_plugin_status* status) {
  return guarded(status, [index] { return new dtf_plugin_device{Device(index)}; });
}

void close(dtf_plugin_device* device) {
  delete device;
}

const char* describe(dtf_plugin_device* device) {
  return device->device.description().c_str();
}

uint64_t kernelsLaunched(dtf_plugin_device* device) {
  return device->device.launched();
}

void* allocate(dtf_plugin_device* device, size_t bytes, dtf_plugin_status* status) {
  return guarded(status, [&] { return device->device.allocate(std::max<size_t>(bytes, 1)); });
}

void deallocate(dtf_plugin_device* device, void* memory) {
  device->device.deallocate(static_cast<std::byte*>(memory));
}

void copyToDevice(dtf_plugin_device* device, void* target, const void* source, size_t bytes,
                  dtf_plugin_status* status) {
  guarded(status, [&] {
    device->device.copyToDevice(static_cast<std::byte*>(target),
                                static_cast<const std::byte*>(source), bytes);
  });
}

void copyToHost(dtf_plugin_device* device, void* target, const void* source, size_t bytes,
                dtf_plugin_status* status) {
  guarded(status, [&] {
    device->device.copyToHost(static_cast<std::byte*>(target),
                              static_cast<const std::byte*>(source), bytes);
  });
}

void copyToDeviceBeside(dtf_plugin_device* device, void* target, const void* source, size_t bytes,
                        dtf_plugin_status* status) {
  guarded(status, [&] {
    device->device.copyToDeviceBeside(static_cast<std::byte*>(target),
                                      static_cast<const std::byte*>(source), bytes);
  });
}

void copyToHostBeside(dtf_plugin_device* device, void* target, const void* source, size_t bytes,
                      dtf_plugin_status* status) {
  guarded(status, [&] {
    device->device.copyToHostBeside(static_cast<std::byte*>(target),
                                    static_cast<const std::byte*>(source), bytes);
  });
}

void awaitHost(dtf_plugin_device* device, uint64_t copies, dtf_plugin_status* status) {
  guarded(status, [&] { device->device.awaitHost(copies); });
}

void copyFromPeer(dtf_plugin_device* device, void* target, dtf_plugin_device* peer,
                  const void* source, size_t bytes, dtf_plugin_status* status) {
  guarded(status, [&] {
    device->device.copyFromPeer(static_cast<std::byte*>(target), peer->device,
                                static_cast<const std::byte*>(source), bytes);
  });
}

void synchronise(dtf_plugin_device* device, dtf_plugin_status* status) {
  guarded(status, [&] { device->device.synchronise(); });
}

dtf_plugin_kernel* makeKernel(const dtf_plugin_operation* given, dtf_plugin_status* status) {
  return guarded(status, [given] {
    const Operation operation(*given);
    const auto factory = kernelTable().find(operation.op);
    if (factory == kernelTable().end())
      throw PluginError(DTF_PLUGIN_BAD_CONFIG, "There is no GPU kernel for the op " + operation.op +
                                                   " of node '" + operation.name +
                                                   "'; place the node on another kind of device.");
    auto made = std::make_unique<dtf_plugin_kernel>();
    made->kernel = factory->second(operation);
    made->inputs = operation.inputs.size();
    made->outputs = operation.outputs.size();
    return made.release();
  });
}

void destroyKernel(dtf_plugin_kernel* kernel) {
  delete kernel;
}

size_t kernelWorkspaceBytes(const dtf_plugin_kernel* kernel) {
  return kernel->kernel->workspaceBytes();
}

int32_t kernelCanOverwrite(const dtf_plugin_kernel* kernel, int32_t output, int32_t input) {
  return kernel->kernel->canOverwrite(output, input) ? 1 : 0;
}

const char* kernelWay(const dtf_plugin_kernel* kernel) {
  return kernel->kernel->way();
}

void prepareKernel(dtf_plugin_kernel* kernel, dtf_plugin_device* device,
                   dtf_plugin_status* status) {
  guarded(status, [&] {
    device->device.makeCurrent();
    kernel->kernel->prepare(device->device);
  });
}

dtf_plugin_program* makeProgram(dtf_plugin_device* device, const dtf_plugin_launch* given,
                                size_t size, dtf_plugin_status* status) {
  return guarded(status, [&] {
    std::vector<Launch> launches;
    for (size_t i = 0; i < size; ++i) {
      Launch launch;
      launch.kernel = given[i].kernel->kernel.get();
      for (size_t j = 0; j < given[i].kernel->inputs; ++j)
        launch.inputs.push_back(static_cast<const std::byte*>(given[i].inputs[j]));
      for (size_t j = 0; j < given[i].kernel->outputs; ++j)
        launch.outputs.push_back(static_cast<std::byte*>(given[i].outputs[j]));
      launch.workspace = static_cast<std::byte*>(given[i].workspace);
      launches.push_back(std::move(launch));
    }
    return new dtf_plugin_program{Program(device->device, std::move(launches))};
  });
}

void destroyProgram(dtf_plugin_program* program) {
  delete program;
}

void runProgram(dtf_plugin_program* program, dtf_plugin_status* status) {
  guarded(status, [program] { program->program.run(); });
}

void profileProgram(dtf_plugin_program* program, double* seconds, dtf_plugin_status* status) {
  guarded(status, [&] { program->program.profile(seconds); });
}

double programSeconds(dtf_plugin_program* program, dtf_plugin_status* status) {
  return guarded(status, [program] { return program->program.seconds(); });
}

}  // namespace
}  // namespace dtf::gpu

extern "C" __attribute__((visibility("default"))) const dtf_device_plugin*
dtf_device_plugin_calls() {
  using namespace dtf::gpu;
  static const std::string backend = backendText();
  static const dtf_device_plugin calls = {
      .version = DTF_DEVICE_PLUGIN_VERSION,
      .backend = backend.c_str(),
      .device_count = deviceCount,
      .ops = ops,
      .open = open,
      .close = close,
      .describe = describe,
      .kernels_launched = kernelsLaunched,
      .allocate = allocate,
      .deallocate = deallocate,
      .copy_to_device = copyToDevice,
      .copy_to_host = copyToHost,
      .copy_to_device_beside = copyToDeviceBeside,
      .copy_to_host_beside = copyToHostBeside,
      .await_host = awaitHost,
      .copy_from_peer = copyFromPeer,
      .synchronise = synchronise,
      .make_kernel = makeKernel,
      .destroy_kernel = destroyKernel,
      .kernel_workspace_bytes = kernelWorkspaceBytes,
      .kernel_can_overwrite = kernelCanOverwrite,
      .kernel_way = kernelWay,
      .prepare_kernel = prepareKernel,
      .make_program = makeProgram,
      .destroy_program = destroyProgram,
      .run_program = runProgram,
      .program_seconds = programSeconds,
      .profile_program = profileProgram,
  };
  return &calls;
}
