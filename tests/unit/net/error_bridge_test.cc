#include "common/net/error_bridge.h"

#include <gtest/gtest.h>
#include <kj/debug.h>

#include <boost/system/system_error.hpp>
#include <cerrno>
#include <string>

namespace dtf::net {
namespace {

kj::Exception remote(const kj::Exception& exception) {  // as capnp hands it to the caller
  return kj::Exception(exception.getType(), "remote", 0,
                       kj::str("remote exception: ", exception.getDescription()));
}

TEST(ErrorBridge, CodeAndMessageSurviveTheTripThroughRpc) {
  for (const ErrorCode code :
       {ErrorCode::kTrainingFailed, ErrorCode::kUsage, ErrorCode::kBadData, ErrorCode::kUnavailable,
        ErrorCode::kInternal, ErrorCode::kCannotWrite, ErrorCode::kPermission,
        ErrorCode::kBadConfig, ErrorCode::kDeadline}) {
    const Error back = toError(remote(toKj(Error(code, "ps/1 refuses: dtf(x): it (really) does"))));
    EXPECT_EQ(back.code(), code);
    EXPECT_EQ(back.message(), "ps/1 refuses: dtf(x): it (really) does");
  }
}

TEST(ErrorBridge, TraitsSurviveTheTripThroughRpc) {
  const auto back = [](const Error& error) { return toError(remote(toKj(error))); };
  const Error plain(ErrorCode::kBadConfig, "job.yaml:9:7: error: [job_ended] no such loss");
  EXPECT_FALSE(back(plain).has(ErrorTrait::kHasPlace));
  EXPECT_FALSE(back(plain).has(ErrorTrait::kJobEnded));
  const Error placed = back(with(ErrorTrait::kHasPlace, plain));
  EXPECT_TRUE(placed.has(ErrorTrait::kHasPlace));
  EXPECT_FALSE(placed.has(ErrorTrait::kJobEnded));
  EXPECT_EQ(placed.message(), plain.message());
  const Error both = back(with(ErrorTrait::kJobEnded, with(ErrorTrait::kHasPlace, plain)));
  EXPECT_TRUE(both.has(ErrorTrait::kHasPlace));
  EXPECT_TRUE(both.has(ErrorTrait::kJobEnded));
  EXPECT_EQ(both.code(), ErrorCode::kBadConfig);
  EXPECT_EQ(both.message(), plain.message());
}

// Programs of 0.1.0 look for the code's word, and skip all text before it.
TEST(ErrorBridge, TraitsStandBeforeTheCode) {
  const Error error = with(ErrorTrait::kJobEnded, Error(ErrorCode::kUnavailable, "boo"));
  EXPECT_STREQ(toKj(error).getDescription().cStr(), "[job_ended] dtf(unavailable): boo");
}

TEST(ErrorBridge, TextThatOnlyLooksEncodedIsAnInternalError) {
  const kj::Exception odd(kj::Exception::Type::FAILED, "", 0, kj::str("dtf(no_such_code): boo"));
  EXPECT_EQ(toError(odd).code(), ErrorCode::kInternal);
  EXPECT_EQ(toError(odd).message(), "dtf(no_such_code): boo");
}

TEST(ErrorBridge, ForeignExceptionsAreClassedByTheirType) {
  using Type = kj::Exception::Type;
  const auto codeOf = [](Type type) {
    return toError(kj::Exception(type, "", 0, kj::str("x"))).code();
  };
  EXPECT_EQ(codeOf(Type::DISCONNECTED), ErrorCode::kUnavailable);
  EXPECT_EQ(codeOf(Type::OVERLOADED), ErrorCode::kDeadline);
  EXPECT_EQ(codeOf(Type::FAILED), ErrorCode::kInternal);
  EXPECT_EQ(codeOf(Type::UNIMPLEMENTED), ErrorCode::kInternal);
}

TEST(ErrorBridge, AnUnacknowledgedConnectionThatTimedOutIsDisconnected) {
  const kj::Exception exception = toKj(error_code(asio::error::timed_out), "read");
  EXPECT_EQ(exception.getType(), kj::Exception::Type::DISCONNECTED);
}

TEST(ErrorBridge, BridgeErrorsTurnsAThrownErrorIntoKj) {
  const auto exception = kj::runCatchingExceptions(
      [] { bridgeErrors([] { throw Error(ErrorCode::kBadConfig, "no such optimizer"); }); });
  KJ_IF_MAYBE (caught, exception) {
    EXPECT_EQ(toError(*caught).code(), ErrorCode::kBadConfig);
    EXPECT_EQ(toError(*caught).message(), "no such optimizer");
  } else {
    FAIL() << "nothing was thrown";
  }
}

TEST(ErrorBridge, WhatAPeerWroteIsHarmlessInALog) {
  const kj::Exception theirs(kj::Exception::Type::FAILED, __FILE__, __LINE__,
                             kj::str("remote exception: dtf(bad_data): \x1b[2Jno\nevent=forged"));
  EXPECT_EQ(toError(theirs).message(), "?[2Jno event=forged");
  for (const auto type : {kj::Exception::Type::FAILED, kj::Exception::Type::OVERLOADED,
                          kj::Exception::Type::DISCONNECTED}) {
    const kj::Exception plain(type, __FILE__, __LINE__, kj::str("\x1b[2J\n"));
    EXPECT_EQ(toError(plain).message().find_first_of("\x1b\n"), std::string::npos);
  }
}

TEST(ErrorBridge, NamesTheOperationAndTheSystemsReason) {
  const Error error = toErrorFromErrno(ErrorCode::kUnavailable, "connect", ECONNREFUSED);
  EXPECT_EQ(error.message(), "connect: Connection refused (111)");
}

// The result of currentError() for an Asio object that could not be constructed.
Error failedWith(int errno_value) {
  try {
    throw boost::system::system_error(error_code(errno_value, boost::system::system_category()),
                                      "epoll");
  } catch (const std::exception&) {
    return currentError();
  }
}

TEST(ErrorBridge, AHostWithoutDescriptorsIsNoBug) {
  const Error error = failedWith(EMFILE);
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  const std::string limit = "epoll: Too many open files: this process may have ";
  EXPECT_EQ(error.message().substr(0, limit.size()), limit);
  EXPECT_NE(error.message().find("(ulimit -n)"), std::string::npos) << error.message();
  EXPECT_EQ(failedWith(EBADF).code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace dtf::net
