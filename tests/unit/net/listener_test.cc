#include "common/net/listener.h"

#include <gtest/gtest.h>

#include "tests/unit/net/listener_fixture.h"

namespace dtf::net::testing {
namespace {

TEST_F(ListenerTest, HandsOverConnectionsWithAPreambleAndLeavesWhatFollows) {
  Listener listener(reactor_.port, "localhost", 0, collect());
  const Fd control = connectRaw(listener.port()), bulk = connectRaw(listener.port());
  sendPreamble(control);
  sendRaw(control, "after", 5);
  sendPreamble(bulk, ConnectionKind::kBulk);
  runUntil(reactor_, [&] { return accepted_.size() == 2; });
  if (accepted_[0].kind != ConnectionKind::kControl) std::swap(accepted_[0], accepted_[1]);
  EXPECT_EQ(accepted_[0].kind, ConnectionKind::kControl);
  EXPECT_EQ(accepted_[1].kind, ConnectionKind::kBulk);
  EXPECT_EQ(accepted_[0].peer, localName(control.get()));
  char rest[8];
  EXPECT_EQ(::recv(accepted_[0].fd.get(), rest, sizeof(rest), 0), 5);
  EXPECT_EQ(listener.pendingCount(), 0u);
}

TEST_F(ListenerTest, AdoptsASocketThatListensAlready) {
  Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(::listen(fd.get(), 5), 0);
  Listener listener(reactor_.port, std::move(fd), collect());
  ASSERT_NE(listener.port(), 0);
  const Fd client = connectRaw(listener.port());
  sendPreamble(client);
  runUntil(reactor_, [&] { return accepted_.size() == 1; });
}

TEST_F(ListenerTest, RefusesToAdoptWhatDoesNotListen) {
  EXPECT_THROW(Listener(reactor_.port, Fd(::socket(AF_INET, SOCK_STREAM, 0)), collect()), Error);
}

TEST_F(ListenerTest, CloseRefusesNewConnectionsAndEndsPendingOnes) {
  Listener listener(reactor_.port, "127.0.0.1", 0, collect());
  const Fd pending = connectRaw(listener.port());
  runUntil(reactor_, [&] { return listener.pendingCount() == 1; });
  listener.close();
  char byte;
  EXPECT_EQ(::recv(pending.get(), &byte, 1, 0), 0);
  EXPECT_EQ(listener.pendingCount(), 0u);
}

}  // namespace
}  // namespace dtf::net::testing
