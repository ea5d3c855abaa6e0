// Builds without the headers of UCX: see meson's option ucx.

#include "common/base/error.h"
#include "common/net/channels/remote_memory.h"

namespace dtf::net {

std::shared_ptr<RemoteDomain> RemoteDomain::open() {
  throw Error(
      ErrorCode::kUnavailable,
      "'transport: rdma' needs UCX, and this program was built without it: build it where "
      "libucx-dev is installed (-Ducx=enabled), or remove 'transport' from the cluster file");
}

std::unique_ptr<RemoteChannel> RemoteChannel::open(Loop& /*loop*/,
                                                   std::shared_ptr<RemoteDomain> /*domain*/) {
  throw Error(ErrorCode::kUnavailable, "this program was built without UCX");
}

}  // namespace dtf::net
