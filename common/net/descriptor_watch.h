#pragma once

// Waits on an Asio loop for a descriptor that another library owns.

#include <functional>
#include <memory>

#include "common/net/event_port.h"
#include "common/net/loop.h"

namespace dtf::net {

// Calls `ready`, on the loop of `port`, each time after which `fd` is readable.
std::unique_ptr<DescriptorWatch> watchDescriptor(AsioEventPort& port, int fd,
                                                 std::function<void()> ready);

}  // namespace dtf::net
