#pragma once

// What makes a session its client's: a number for people and logs, and a secret that no other
// program can guess, known to the client and the session's tasks.

#include <cstdint>

#include "common/wire/parts.capnp.h"

namespace dtf::wire {

// Value type. `secret` is in no log and no status.
struct SessionToken {
  uint64_t number = 0;
  uint64_t secret[2] = {};

  // Never used before, from the kernel's random source.
  static SessionToken draw();
};

// Whether both have the same secret, in a time that doesn't tell where they differ.
bool haveSameSecret(const SessionToken& a, const SessionToken& b);

void encodeToken(const SessionToken& token, schema::SessionToken::Builder builder);
// Errors: kBadData for a secret that nobody has drawn: all zero.
SessionToken decodeToken(schema::SessionToken::Reader reader);

}  // namespace dtf::wire
