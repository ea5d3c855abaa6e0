#pragma once

// The yardstick of the rpc table: blocking TCP sockets, buffers allocated and touched before,
// nothing else.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/file.h"

namespace dtf::bench {

// Serves RawClient's requests on one connection until it ends; `bytes_max` bounds a transfer.
void serveRaw(const Fd& listening, size_t bytes_max);

// Blocks in each call.
// Errors: kUnavailable when the server is gone.
class RawClient {
 public:
  RawClient(uint16_t port, size_t bytes_max);
  void ping();
  void pull(size_t bytes);
  void push(size_t bytes);      // returns when the server has all of it
  void exchange(size_t bytes);  // sends so many, then receives so many
  // The next transfer arrives in untouched memory, as in a new process.
  void renewBuffer(size_t bytes_max);

 private:
  Fd fd_;
  std::shared_ptr<std::byte> buffer_;
};

}  // namespace dtf::bench
