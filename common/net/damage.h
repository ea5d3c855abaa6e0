#pragma once

// Messages that came with other bytes than were sent, on all connections of this process: what a
// person must know of, whichever link had it and however it went on.

#include <cstdint>
#include <string_view>

namespace dtf::net {

// Counts one from `peer` ("worker/1 (10.0.0.2:5555)"), and logs it: event=message_damaged.
// Threads: any.
void noteDamage(std::string_view peer, std::string_view reason);

// So far. Threads: any.
uint64_t damagedMessages();

}  // namespace dtf::net
