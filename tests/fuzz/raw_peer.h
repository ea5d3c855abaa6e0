#pragma once

// A peer that speaks Cap'n Proto's RPC protocol without its library: messages of any kind in any
// order, with ids, targets and capabilities that no real peer would send.

#include <kj/async.h>

#include <span>

#include "common/net/message_stream.h"
#include "tests/fuzz/arguments.h"

namespace dtf::fuzz {

// Owns: its end of the connection.
// Threads: one. Blocks: never.
// Errors: none; messages to a closed connection are lost.
class RawPeer {
 public:
  // `ps_task`: the index of the ps in the conversation. `interfaces`: the interfaces of its calls,
  // with a static life; empty: a psd's.
  RawPeer(kj::Own<net::MessageStream> stream, uint32_t ps_task,
          std::span<const uint64_t> interfaces = {});

  void send(Arguments& arguments);

 private:
  kj::Promise<void> readAll();

  kj::Own<net::MessageStream> stream_;
  const uint32_t ps_task_;
  const std::span<const uint64_t> interfaces_;
  kj::Promise<void> reading_;
  kj::Promise<void> writing_;
};

}  // namespace dtf::fuzz
