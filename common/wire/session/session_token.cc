#include "common/wire/session/session_token.h"

#include <sys/random.h>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::wire {

SessionToken SessionToken::draw() {
  uint64_t random[3] = {};
  DTF_CHECK(::getrandom(random, sizeof random, 0) == sizeof random);
  return {.number = random[0], .secret = {random[1], random[2]}};
}

bool haveSameSecret(const SessionToken& a, const SessionToken& b) {
  return ((a.secret[0] ^ b.secret[0]) | (a.secret[1] ^ b.secret[1])) == 0;
}

void encodeToken(const SessionToken& token, schema::SessionToken::Builder builder) {
  builder.setNumber(token.number);
  builder.setSecret0(token.secret[0]);
  builder.setSecret1(token.secret[1]);
}

SessionToken decodeToken(schema::SessionToken::Reader reader) {
  const SessionToken token{.number = reader.getNumber(),
                           .secret = {reader.getSecret0(), reader.getSecret1()}};
  if (haveSameSecret(token, {}))
    throw Error(ErrorCode::kBadData, "a session needs a secret, drawn by its client");
  return token;
}

}  // namespace dtf::wire
