#pragma once

// UCX (openucx.org), which moves memory between hosts by their network cards. The programs don't
// link it: its libraries are opened at run time, so that a package needs no card's driver.

#include <ucp/api/ucp.h>

#include <memory>
#include <string>

namespace dtf::net {

// The functions of libucp that RemoteMemory calls, with UCX's names.
// Owns: the opened libraries, which stay open until the process ends: they have threads and exit
// handlers of their own.
// Threads: immutable.
struct UcxLibrary {
  decltype(&::ucp_config_read) config_read = nullptr;
  decltype(&::ucp_config_modify) config_modify = nullptr;
  decltype(&::ucp_config_release) config_release = nullptr;
  decltype(&::ucp_init_version) init_version = nullptr;
  decltype(&::ucp_cleanup) cleanup = nullptr;
  decltype(&::ucp_get_version_string) get_version_string = nullptr;
  decltype(&::ucp_worker_create) worker_create = nullptr;
  decltype(&::ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&::ucp_worker_get_address) worker_get_address = nullptr;
  decltype(&::ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&::ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&::ucp_worker_arm) worker_arm = nullptr;
  decltype(&::ucp_worker_progress) worker_progress = nullptr;
  decltype(&::ucp_ep_create) ep_create = nullptr;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&::ucp_ep_flush_nbx) ep_flush_nbx = nullptr;
  decltype(&::ucp_ep_print_info) ep_print_info = nullptr;
  decltype(&::ucp_ep_rkey_unpack) ep_rkey_unpack = nullptr;
  decltype(&::ucp_rkey_destroy) rkey_destroy = nullptr;
  decltype(&::ucp_rkey_pack) rkey_pack = nullptr;
  decltype(&::ucp_rkey_buffer_release) rkey_buffer_release = nullptr;
  decltype(&::ucp_mem_map) mem_map = nullptr;
  decltype(&::ucp_mem_unmap) mem_unmap = nullptr;
  decltype(&::ucp_put_nbx) put_nbx = nullptr;
  decltype(&::ucp_get_nbx) get_nbx = nullptr;
  decltype(&::ucp_request_check_status) request_check_status = nullptr;
  decltype(&::ucp_request_free) request_free = nullptr;
  decltype(&::ucs_status_string) status_string = nullptr;

  // Opens the libraries at the first call. Before that, it sets variables of the environment that
  // UCX reads while it is loaded, unless they are set: no signal handlers, no patched system calls,
  // and a log on stderr.
  // Errors: kBadConfig with the loader's reason.
  static const UcxLibrary& open();
};

}  // namespace dtf::net
