#include "common/net/channels/ucx_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "common/base/error.h"

namespace dtf::net {

namespace {

// The name has the version of the interface, which is UCX's from 1.0 on.
constexpr const char* kUcpName = "libucp.so.0";
constexpr const char* kUcsName = "libucs.so.0";

[[noreturn]] void failToOpen(const std::string& what) {
  const char* reason = ::dlerror();
  throw Error(ErrorCode::kBadConfig,
              fmt::format("'transport: rdma' needs UCX on this host, and {} can't be opened: {}; "
                          "install libucx0, or remove 'transport' from the cluster file",
                          what, reason != nullptr ? reason : "no reason is known"));
}

void* openLibrary(const char* name) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) failToOpen(name);
  return library;
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) failToOpen(fmt::format("{} in {}", name, kUcpName));
}

void setDefaults() {
  // UCX would print backtraces in the place of this program's own handlers, patch mmap() and
  // munmap() to follow memory that it registered by itself, and log to stdout.
  ::setenv("UCX_HANDLE_ERRORS", "none", 0);
  ::setenv("UCX_MEM_EVENTS", "n", 0);
  ::setenv("UCX_LOG_FILE", "stderr", 0);
  ::setenv("UCX_LOG_LEVEL", "fatal", 0);  // errors are returned, and are in this program's log
  ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
}

UcxLibrary load() {
  setDefaults();
  void* const ucs = openLibrary(kUcsName);
  void* const ucp = openLibrary(kUcpName);
  UcxLibrary ucx;
  find(ucs, "ucs_status_string", ucx.status_string);
  find(ucp, "ucp_config_read", ucx.config_read);
  find(ucp, "ucp_config_modify", ucx.config_modify);
  find(ucp, "ucp_config_release", ucx.config_release);
  find(ucp, "ucp_init_version", ucx.init_version);
  find(ucp, "ucp_cleanup", ucx.cleanup);
  find(ucp, "ucp_get_version_string", ucx.get_version_string);
  find(ucp, "ucp_worker_create", ucx.worker_create);
  find(ucp, "ucp_worker_destroy", ucx.worker_destroy);
  find(ucp, "ucp_worker_get_address", ucx.worker_get_address);
  find(ucp, "ucp_worker_release_address", ucx.worker_release_address);
  find(ucp, "ucp_worker_get_efd", ucx.worker_get_efd);
  find(ucp, "ucp_worker_arm", ucx.worker_arm);
  find(ucp, "ucp_worker_progress", ucx.worker_progress);
  find(ucp, "ucp_ep_create", ucx.ep_create);
  find(ucp, "ucp_ep_close_nbx", ucx.ep_close_nbx);
  find(ucp, "ucp_ep_flush_nbx", ucx.ep_flush_nbx);
  find(ucp, "ucp_ep_print_info", ucx.ep_print_info);
  find(ucp, "ucp_ep_rkey_unpack", ucx.ep_rkey_unpack);
  find(ucp, "ucp_rkey_destroy", ucx.rkey_destroy);
  find(ucp, "ucp_rkey_pack", ucx.rkey_pack);
  find(ucp, "ucp_rkey_buffer_release", ucx.rkey_buffer_release);
  find(ucp, "ucp_mem_map", ucx.mem_map);
  find(ucp, "ucp_mem_unmap", ucx.mem_unmap);
  find(ucp, "ucp_put_nbx", ucx.put_nbx);
  find(ucp, "ucp_get_nbx", ucx.get_nbx);
  find(ucp, "ucp_request_check_status", ucx.request_check_status);
  find(ucp, "ucp_request_free", ucx.request_free);
  return ucx;
}

}  // namespace

const UcxLibrary& UcxLibrary::open() {
  static const UcxLibrary ucx = load();  // after an exception, the next call tries again
  return ucx;
}

}  // namespace dtf::net
