#include "common/net/preamble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <string_view>

namespace dtf::net {
namespace {

using ::testing::StartsWith;

std::string describe(std::string_view text) {
  return describeBytes(std::as_bytes(std::span(text)));
}

TEST(Preamble, RoundTripsBothKinds) {
  for (const auto kind : {ConnectionKind::kControl, ConnectionKind::kBulk})
    EXPECT_EQ(parsePreamble(makePreamble(kind)), kind);
}

TEST(Preamble, RefusesAnyChangedByte) {
  for (size_t at = 0; at < kPreambleBytes; ++at) {
    auto bytes = makePreamble(ConnectionKind::kControl);
    bytes[at] ^= std::byte{0x40};
    EXPECT_EQ(parsePreamble(bytes), std::nullopt) << "byte " << at;
  }
  const auto whole = makePreamble(ConnectionKind::kBulk);
  EXPECT_EQ(parsePreamble(std::span(whole).first(15)), std::nullopt);
}

TEST(Preamble, SaysWhatAStrangerSent) {
  EXPECT_EQ(describe("GET / HTTP/1.1\r\n"), "an HTTP request");
  EXPECT_EQ(describe("HTTP/1.1 400 Bad"), "an HTTP response");
  EXPECT_EQ(describe("SSH-2.0-OpenSSH_"), "an SSH greeting");
  EXPECT_EQ(describe({"\x16\x03\x01\x02\x00\x01\x00", 7}), "a TLS handshake");
  EXPECT_EQ(describe(""), "nothing");
  EXPECT_THAT(describe("\x80\x81 lalala, what?"), StartsWith("random bytes (80 81 20"));
}

TEST(Preamble, SaysWhichVersionThePeerSpeaks) {
  auto bytes = makePreamble(ConnectionKind::kControl);
  bytes[6] = std::byte{7};
  EXPECT_EQ(describeBytes(bytes),
            "dtf protocol version 7, this is " + std::to_string(kProtocolVersion));
}

}  // namespace
}  // namespace dtf::net
