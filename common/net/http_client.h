#pragma once

// One HTTP/1.1 request at a time, to a program that collects something.

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

// Sends `body` on a connection of its own, to the first of the host's addresses that does not
// refuse it (one that swallows packets takes all of the time), and waits for the answer.
// Threads: any that has no loop of its own to hold up.
// Blocks: `within`, and longer while the resolver looks for the name of a host.
// Errors: kUnavailable that names the target: nobody is there, or what answers is no HTTP;
// kDeadline.
HttpReply httpPost(const HttpTarget& target, const std::string& content_type, std::string body,
                   Duration within);

}  // namespace dtf::net
