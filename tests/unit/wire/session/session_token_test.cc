#include "common/wire/session/session_token.h"

#include <capnp/message.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/graph/error_text.h"

namespace dtf::wire {
namespace {

TEST(SessionToken, EachIsDrawnAnew) {
  const SessionToken one = SessionToken::draw(), other = SessionToken::draw();
  EXPECT_NE(one.number, other.number);
  EXPECT_NE(one.secret[0], other.secret[0]);
  EXPECT_NE(one.secret[1], other.secret[1]);
  EXPECT_FALSE(haveSameSecret(one, other));
  EXPECT_TRUE(haveSameSecret(one, one));
  SessionToken changed = one;
  changed.secret[1] ^= 1;
  EXPECT_FALSE(haveSameSecret(one, changed));
}

TEST(SessionToken, ComesBackAsItWas) {
  const SessionToken drawn = SessionToken::draw();
  capnp::MallocMessageBuilder message;
  const auto builder = message.initRoot<schema::SessionToken>();
  encodeToken(drawn, builder);
  const SessionToken decoded = decodeToken(builder.asReader());
  EXPECT_EQ(decoded.number, drawn.number);
  EXPECT_TRUE(haveSameSecret(decoded, drawn));
}

TEST(SessionToken, NoSecretIsNone) {
  capnp::MallocMessageBuilder message;
  message.initRoot<schema::SessionToken>().setNumber(7);
  EXPECT_THAT(graph::testing::errorText(
                  [&] { decodeToken(message.getRoot<schema::SessionToken>().asReader()); }),
              ::testing::HasSubstr("needs a secret"));
}

}  // namespace
}  // namespace dtf::wire
