#pragma once

// The identity of a session: a number for people and logs, and a secret that no other program can
// guess. Only the client and the session's tasks have the secret.

#include <cstdint>

#include "common/wire/parts.capnp.h"

namespace dtf::wire {

// Value type. No log and no status contains `secret`.
struct SessionToken {
  uint64_t number = 0;
  uint64_t secret[2] = {};

  // Returns a new token from the kernel's random source.
  static SessionToken draw();
};

// Compares the secrets in constant time.
bool haveSameSecret(const SessionToken& a, const SessionToken& b);

void encodeToken(const SessionToken& token, schema::SessionToken::Builder builder);
// Errors: kBadData for a secret of zeros, which draw() never returns.
SessionToken decodeToken(schema::SessionToken::Reader reader);

}  // namespace dtf::wire
