#pragma once

// The calls of readers beside training (common/wire/ps.capnp, PsReader) over a shard.

#include "common/host/shard_host.h"
#include "common/wire/connection_set.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// A reader that makes no call for this time loses the parameters that are kept for it, and its
// place among the shard's readers until its next capture.
inline constexpr Duration kCaptureMax = std::chrono::minutes(1);
// The elements of one reply, at most.
inline constexpr uint64_t kReadElementsMax = uint64_t{4} << 20;

// Returns the session of a new reader. `host` outlives the connection. Data loop only.
// Errors: kUnavailable if the shard has kReadersMax readers.
schema::PsReader::Client makeReader(ShardHost& host, wire::ConnectionRef connection);

}  // namespace dtf::host
