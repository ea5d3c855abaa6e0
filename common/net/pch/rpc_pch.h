// Precompiled for the targets that speak RPC: what most of their files include, and what takes
// longest to read. No file relies on it: each includes what it uses.

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
