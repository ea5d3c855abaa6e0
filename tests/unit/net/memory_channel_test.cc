#include "common/net/memory_channel.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "common/base/error.h"

namespace dtf::net {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytesMax = 5000;

// Both ends of a channel.
struct Ends {
  MemoryDoor door;
  MemoryChannel from = MemoryChannel::connect(door.address(), door.secret());
  MemoryChannel to = door.take().value();
};

void expectError(ErrorCode code, const char* text, const std::function<void()>& act) {
  try {
    act();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(text));
  }
}

TEST(MemoryChannel, GivesMemoryInBothDirections) {
  Ends ends;
  const SharedMemory forth(100), back(5000);
  ends.from.give(forth);
  ends.to.give(back);
  const GivenMemory there = ends.to.receive(kBytesMax).value();
  EXPECT_EQ(there.key, forth.key());
  EXPECT_EQ(there.memory->bytes(), 100u);
  forth.data()[99] = std::byte{9};
  EXPECT_EQ(there.memory->data()[99], std::byte{9});
  EXPECT_EQ(ends.from.receive(kBytesMax).value().key, back.key());
}

TEST(MemoryChannel, WhatWasGivenComesInItsOrderAndOnce) {
  Ends ends;
  EXPECT_FALSE(ends.to.receive(kBytesMax).has_value());
  const SharedMemory first(8), second(8);
  ends.from.give(first);
  ends.from.give(second);
  EXPECT_EQ(ends.to.receive(kBytesMax).value().key, first.key());
  EXPECT_EQ(ends.to.receive(kBytesMax).value().key, second.key());
  EXPECT_FALSE(ends.to.receive(kBytesMax).has_value());
}

TEST(MemoryChannel, MemoryStaysWhenItsGiverHasGone) {
  std::optional<GivenMemory> given;
  {
    Ends ends;
    const SharedMemory memory(8);
    memory.data()[7] = std::byte{7};
    ends.from.give(memory);
    given = ends.to.receive(kBytesMax);
  }
  EXPECT_EQ(given->memory->data()[7], std::byte{7});
}

TEST(MemoryChannel, SaysThatTheOtherEndIsGone) {
  Ends ends;
  { const MemoryChannel gone = std::move(ends.from); }
  const SharedMemory memory(8);
  expectError(ErrorCode::kUnavailable, "gone", [&] { ends.to.receive(kBytesMax); });
  expectError(ErrorCode::kUnavailable, "give memory", [&] { ends.to.give(memory); });
}

// The reader of memory of 1 TiB that nobody has written pays for its pages.
TEST(MemoryChannel, TakesNoMoreThanItExpects) {
  Ends ends;
  const SharedMemory memory(kBytesMax + 1);
  ends.from.give(memory);
  expectError(ErrorCode::kBadData, "gave 5001 bytes of memory; the most is 5000",
              [&] { ends.to.receive(kBytesMax); });
}

// The kernel limits the descriptors that a peer doesn't receive.
TEST(MemoryChannel, DoesNotWaitForWhoeverReceivesNothing) {
  Ends ends;
  const SharedMemory memory(8);
  expectError(ErrorCode::kUnavailable, "give memory", [&] {
    for (int i = 0; i < 100'000; ++i) ends.from.give(memory);
  });
}

size_t openDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd"), end;
  return static_cast<size_t>(std::distance(begin(all), end));
}

TEST(MemoryChannel, KeepsNoDescriptorOfWhatItReceived) {
  Ends ends;
  const SharedMemory memory(8);
  const size_t before = openDescriptors();
  for (int i = 0; i < 10; ++i) {
    ends.from.give(memory);
    ASSERT_TRUE(ends.to.receive(kBytesMax).has_value());
  }
  EXPECT_EQ(openDescriptors(), before);
}

// Data that arrives without its descriptor is lost, and isn't taken for other data.
TEST(MemoryChannel, SaysThatNoDescriptorIsLeft) {
  Ends ends;
  const SharedMemory memory(8);
  ends.from.give(memory);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  expectError(ErrorCode::kUnavailable, "no descriptor is left",
              [&] { ends.to.receive(kBytesMax); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(MemoryDoor, LetsNobodyInWithoutTheSecret) {
  MemoryDoor door;
  EXPECT_FALSE(door.take().has_value());
  const MemoryChannel stranger = MemoryChannel::connect(door.address(), {1, 2});
  EXPECT_FALSE(door.take().has_value());
  const MemoryChannel second = MemoryChannel::connect(door.address(), {1, 2});
  const MemoryChannel friend_of_it = MemoryChannel::connect(door.address(), door.secret());
  EXPECT_TRUE(door.take().has_value()) << "behind a stranger";
}

TEST(MemoryDoor, IsClosedWhenItIsGone) {
  std::string address;
  {
    const MemoryDoor door;
    address = door.address();
    EXPECT_NE(address, MemoryDoor().address());
  }
  expectError(ErrorCode::kUnavailable, "connect to a peer for shared memory", [&] {
    MemoryChannel::connect(address, {1, 2});
  });
  for (const std::string& none :
       {std::string(), std::string(200, 'x'), "dtf-" + std::string(32, 'g'), std::string("systemd"),
        "dtf-" + std::string(31, '0')})
    expectError(ErrorCode::kBadData, "address", [&] { MemoryChannel::connect(none, {1, 2}); });
}

// A peer may be any program.
class StrangeGiver : public ::testing::Test {
 protected:
  StrangeGiver() {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path + 1, door_.address().data(), door_.address().size());
    const auto bytes =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + door_.address().size());
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), bytes), 0);
    say(door_.secret().data(), sizeof(DoorSecret));
    to_.emplace(door_.take().value());
  }
  void giveDescriptors(const SharedMemory& memory, int count) {
    uint64_t note[2] = {memory.key(), memory.bytes()};
    iovec part{.iov_base = note, .iov_len = sizeof note};
    alignas(cmsghdr) char beside[CMSG_SPACE(3 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = beside;
    message.msg_controllen = CMSG_LEN(static_cast<size_t>(count) * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = message.msg_controllen;
    for (int i = 0; i < count; ++i) {
      const int fd = memory.descriptor();
      std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof fd);
    }
    EXPECT_EQ(::sendmsg(fd_.get(), &message, 0), ssize_t{sizeof note});
  }
  void say(const void* data, size_t bytes) {
    EXPECT_EQ(::send(fd_.get(), data, bytes, 0), static_cast<ssize_t>(bytes));
  }

  MemoryDoor door_;
  const Fd fd_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  std::optional<MemoryChannel> to_;
};

TEST_F(StrangeGiver, OfANoteWithoutMemoryIsRefused) {
  const uint64_t note[2] = {5, 8};
  say(note, sizeof note);
  expectError(ErrorCode::kBadData, "of a fixed size", [&] { to_->receive(kBytesMax); });
}

// Each surplus descriptor would leak in this process.
TEST_F(StrangeGiver, OfSeveralDescriptorsKeepsNone) {
  const SharedMemory memory(8);
  for (const int count : {2, 3}) {
    const size_t before = openDescriptors();
    giveDescriptors(memory, count);
    expectError(ErrorCode::kBadData, "with an invalid note", [&] { to_->receive(kBytesMax); });
    EXPECT_EQ(openDescriptors(), before) << count;
  }
}

TEST_F(StrangeGiver, OfNoNoteIsRefused) {
  say("short", 5);
  expectError(ErrorCode::kBadData, "with an invalid note", [&] { to_->receive(kBytesMax); });
  const uint64_t nothing[2] = {5, 0};
  say(nothing, sizeof nothing);
  expectError(ErrorCode::kBadData, "with an invalid note", [&] { to_->receive(kBytesMax); });
}

}  // namespace
}  // namespace dtf::net
