// The two ends of remote memory in one process, over UCX's TCP: the ps's and the worker's.

#include "common/host/remote_loan.h"

#include <capnp/message.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "common/base/error.h"
#include "common/base/shared_memory.h"
#include "common/net/reactor.h"
#include "common/wire/ps/ps_remote.h"
#include "common/wire/remote_codec.h"

namespace dtf::host {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kLoanElements = 4096;

class RemoteLoanTest : public ::testing::Test {
 protected:
  ~RemoteLoanTest() noexcept override = default;

  void SetUp() override {
    ::setenv("UCX_TLS", "tcp", 1);
    try {
      domain_ = net::RemoteDomain::open();
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
    loan_.emplace(loop_, domain_, kLoanElements);
    worker_.emplace(loop_, domain_, "ps/0", std::chrono::seconds(20));
    loan_->describe(message_.initRoot<schema::PsData::OpenRemoteResults>());
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
  capnp::MallocMessageBuilder message_;
  std::optional<RemoteLoan> loan_;
  std::optional<wire::PsRemote> worker_;
};

TEST_F(RemoteLoanTest, AGradientIsReadWhereTheWorkersCardHasPutIt) {
  worker_->connect(reply());
  const auto values = std::make_shared<Buffer>(kLoanElements * sizeof(float));
  std::fill_n(values->as<float>(), kLoanElements, 2.5F);
  worker_->put({{values->as<float>(), kLoanElements}, values}).wait(reactor_.wait_scope);
  const arena::Gradient gradient = loan_->gradient(worker_->gradientKey());
  EXPECT_TRUE(std::ranges::all_of(gradient.values, [](float each) { return each == 2.5F; }));
  EXPECT_TRUE(gradient.is_lent);
  loan_.reset();
  EXPECT_EQ(gradient.values[0], 2.5F) << "a gradient outlives the connection that it came on";
}

TEST_F(RemoteLoanTest, ParametersAreOfferedOnceAndReadByTheirKey) {
  worker_->connect(reply());
  auto parameters = std::make_shared<const SharedMemory>(kLoanElements * sizeof(float));
  std::fill_n(reinterpret_cast<float*>(parameters->data()), kLoanElements, 1.5F);
  loan_->offer(parameters);
  const std::optional<net::RemoteArena> arena = loan_->takeNew();
  ASSERT_TRUE(arena.has_value());
  EXPECT_EQ(loan_->takeNew(), std::nullopt);
  capnp::MallocMessageBuilder message;
  auto named = message.initRoot<schema::RemoteArena>();
  wire::encodeRemoteArena(*arena, named);
  worker_->learn(arena->key, named);
  std::shared_ptr<Buffer> got;
  worker_->get(arena->key, kLoanElements * sizeof(float), got).wait(reactor_.wait_scope);
  EXPECT_EQ(got->as<float>()[kLoanElements - 1], 1.5F);
  worker_->forget(std::vector<uint64_t>{arena->key});
  EXPECT_THAT(badDataOf([&] { worker_->get(arena->key, 4, got); }), HasSubstr("is not known"));
}

TEST_F(RemoteLoanTest, AGradientOfAnotherKeyIsRefused) {
  EXPECT_THAT(badDataOf([&] { loan_->gradient(reply().getGradientKey() + 1); }),
              HasSubstr("which was not lent for it"));
}

}  // namespace
}  // namespace dtf::host
