#pragma once

// Counts messages that arrived damaged, on all connections of this process: people must learn about
// them whether or not the job recovers.

#include <cstdint>
#include <string_view>

namespace dtf::net {

// Counts one message from `peer` ("worker/1 (10.0.0.2:5555)"), and logs it: event=message_damaged.
// Threads: any.
void noteDamage(std::string_view peer, std::string_view reason);

// Returns the count so far. Threads: any.
uint64_t damagedMessages();

}  // namespace dtf::net
