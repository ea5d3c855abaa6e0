#pragma once

// A worker's calls to a ps on its bulk connection (PsData), and the memory that it shares with it.

#include <kj/async.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/net/memory_channel.h"
#include "common/wire/ps.capnp.h"
#include "tests/fuzz/arguments.h"

namespace dtf::fuzz {

// Owns: its end of a channel, and the memory it has shared.
// Threads: one. Outlives its calls.
class DataCaller {
 public:
  // Makes the call that `method` chooses. `epoch`: of the ps; `epoch_at`: the epoch to send with a
  // step.
  kj::Promise<void> call(uint8_t method, Arguments& arguments, uint64_t epoch,
                         const std::function<uint64_t(uint64_t step)>& epoch_at,
                         schema::PsData::Client& data);

 private:
  kj::Promise<void> shareMemory(Arguments& arguments, schema::PsData::Client& data);
  uint64_t keyIn(Arguments& arguments) const;

  std::optional<net::MemoryChannel> channel_;
  std::vector<std::unique_ptr<SharedMemory>> given_;  // the newest few
};

}  // namespace dtf::fuzz
