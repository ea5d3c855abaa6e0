#pragma once

// One HTTP/1.1 request at a time, to a collector.

#include <cstdint>
#include <string>

#include "common/base/clock.h"

namespace dtf::net {

struct HttpTarget {
  std::string host;  // a name or an address
  uint16_t port = 80;
  std::string path = "/";
};

struct HttpReply {
  int status = 0;
  std::string body;  // kHttpReplyBytesMax at most
};
inline constexpr size_t kHttpReplyBytesMax = 64 << 10;

// Sends `body` on a new connection to the first of the host's addresses that does not reject it (an
// address that drops packets uses up all of the time), and waits for the reply.
// Threads: any without a loop of its own to block.
// Blocks: for `within`, and longer while the resolver looks up a host's name.
// Errors: kUnavailable with the target if nothing listens there, or the reply is no HTTP;
// kDeadline.
HttpReply httpPost(const HttpTarget& target, const std::string& content_type, std::string body,
                   Duration within);

}  // namespace dtf::net
