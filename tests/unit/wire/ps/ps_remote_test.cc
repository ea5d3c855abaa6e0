#include "common/wire/ps/ps_remote.h"

#include <capnp/message.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "common/base/error.h"
#include "common/net/reactor.h"
#include "common/wire/remote_codec.h"

namespace dtf::wire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRemoteElements = 4096;
constexpr uint64_t kRemoteBytes = kRemoteElements * sizeof(float);

// A ps is a channel, and an arena that is both its parameters and the place for gradients.
class PsRemoteTest : public ::testing::Test {
 protected:
  ~PsRemoteTest() noexcept override = default;

  void SetUp() override {
    ::setenv("UCX_TLS", "tcp", 1);
    try {
      domain_ = net::RemoteDomain::open();
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
    ps_ = net::RemoteChannel::open(loop_, domain_);
    arena_ = domain_->registered({values_->as<std::byte>(), kRemoteBytes}, values_,
                                 net::RemoteAccess::kWrite);
    worker_.emplace(loop_, domain_, "ps/0", std::chrono::seconds(20));
    auto reply = message_.initRoot<schema::PsData::OpenRemoteResults>();
    reply.setUcx(domain_->version());
    reply.setAddress(dataOf(ps_->address()));
    reply.setGradientKey(5);
    encodeRemoteArena(arena_->arena(), reply.initGradient());
  }

  schema::PsData::OpenRemoteResults::Builder reply() {
    return message_.getRoot<schema::PsData::OpenRemoteResults>();
  }
  template <class Fn>
  static std::string badDataOf(Fn fn) {
    try {
      fn();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      return error.message();
    }
    return "no error";
  }

  net::Reactor reactor_;
  net::ReactorLoop loop_{reactor_};
  std::shared_ptr<net::RemoteDomain> domain_;
  const std::shared_ptr<Buffer> values_ = std::make_shared<Buffer>(kRemoteBytes);
  std::shared_ptr<const net::RegisteredMemory> arena_;
  std::unique_ptr<net::RemoteChannel> ps_;
  capnp::MallocMessageBuilder message_;
  std::optional<PsRemote> worker_;
};

TEST_F(PsRemoteTest, AGradientIsPutAndParametersAreGot) {
  worker_->connect(reply());
  EXPECT_EQ(worker_->gradientKey(), 5u);
  const auto gradient = std::make_shared<Buffer>(kRemoteBytes);
  std::fill_n(gradient->as<float>(), kRemoteElements, 2.5F);
  worker_->put({{gradient->as<float>(), kRemoteElements}, gradient}).wait(reactor_.wait_scope);
  EXPECT_EQ(values_->as<float>()[kRemoteElements - 1], 2.5F);
  worker_->learn(6, reply().getGradient());
  std::shared_ptr<Buffer> got;
  worker_->get(6, kRemoteBytes, got).wait(reactor_.wait_scope);
  EXPECT_EQ(got->as<float>()[kRemoteElements - 1], 2.5F);
  worker_->forget(std::vector<uint64_t>{6});
  EXPECT_THAT(badDataOf([&] { worker_->get(6, kRemoteBytes, got); }), HasSubstr("is not known"));
}

// UCX would end this process when it reads the address.
TEST_F(PsRemoteTest, APsWithAnotherVersionOfUcxIsRefusedBeforeItsAddressIsRead) {
  reply().setAddress(dataOf(std::vector<std::byte>(64)));
  const auto refusal = [&](const char* version) {
    reply().setUcx(version);
    try {
      worker_->connect(reply());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
      return error.message();
    }
    return std::string("no error");
  };
  EXPECT_THAT(refusal("1.9.0"), HasSubstr("ps/0 has UCX 1.9.0, and this task has UCX "));
  EXPECT_THAT(refusal("1.9.0"), HasSubstr("install one version of libucx0"));
  EXPECT_THAT(refusal(""), HasSubstr("ps/0 has UCX of an unknown version"));
}

TEST_F(PsRemoteTest, ACardKeyThatIsNoneIsRefused) {
  reply().getGradient().setCardKey(kj::arrayPtr(reinterpret_cast<const kj::byte*>("no key"), 6));
  EXPECT_THAT(badDataOf([&] { worker_->connect(reply()); }), HasSubstr("a card key that is none"));
}

TEST_F(PsRemoteTest, AnAddressThatIsTooLongIsRefused) {
  reply().setAddress(dataOf(std::vector<std::byte>(net::kRemoteAddressBytesMax + 1)));
  EXPECT_THAT(badDataOf([&] { worker_->connect(reply()); }), HasSubstr("an address for RDMA"));
}

TEST_F(PsRemoteTest, AGradientLargerThanThePsSaysIsNotPut) {
  reply().getGradient().setBytes(64);
  worker_->connect(reply());
  EXPECT_THAT(badDataOf([&] {
                worker_->put({{values_->as<float>(), kRemoteElements}, values_});
              }),
              HasSubstr("of which a peer has 64"));
}

}  // namespace
}  // namespace dtf::wire
