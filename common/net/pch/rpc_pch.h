// Precompiled header for targets that speak RPC: the common headers that take longest to read. No
// file relies on it: each includes the headers it uses.

#include "common/net/asio.h"

#include <capnp/rpc-twoparty.h>
#include <fmt/format.h>
#include <kj/async-io.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
