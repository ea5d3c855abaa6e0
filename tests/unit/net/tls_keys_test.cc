#include "common/net/tls_keys.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "common/base/error.h"
#include "tests/unit/net/key_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;

Error refusedKeys(const std::filesystem::path& folder, const std::string& task,
                  const std::string& job = {}) {
  try {
    TlsKeys keys(folder, task, job);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "the keys are good";
  return Error(ErrorCode::kInternal, "");
}

void writeText(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::trunc) << text;
}

TEST(TlsKeys, SaysWhoItIs) {
  JobKeys job("mnist");
  const std::shared_ptr<TlsKeys> keys = job.of("worker/12");
  EXPECT_EQ(keys->task(), "worker/12");
  EXPECT_EQ(keys->job(), "mnist");
}

TEST(TlsKeys, RefusesFilesThatWouldNotServeAndSaysWhich) {
  JobKeys job("mnist");
  EXPECT_THAT(refusedKeys(job.path(), "ps/0").message(), HasSubstr("ps-0.pem is missing"));
  job.folder().issue("ps/0", "", {});
  const std::filesystem::path file = job.path() / "ps-0.pem";
  const Error other_job = refusedKeys(job.path(), "ps/0", "cifar");
  EXPECT_EQ(other_job.code(), ErrorCode::kBadConfig);
  EXPECT_THAT(other_job.message(), HasSubstr("are of job 'mnist', but this is job 'cifar'"));
  ::chmod(file.c_str(), 0640);
  const Error open = refusedKeys(job.path(), "ps/0");
  EXPECT_EQ(open.code(), ErrorCode::kPermission);
  EXPECT_THAT(open.message(), HasSubstr("can be read by others (mode 0640): chmod 600"));
  ::chmod(file.c_str(), 0600);
  std::filesystem::copy_file(file, job.path() / "ps-1.pem");
  ::chmod((job.path() / "ps-1.pem").c_str(), 0600);
  EXPECT_THAT(refusedKeys(job.path(), "ps/1").message(),
              HasSubstr("is for ps/0, but this task is ps/1"));
  writeText(file, "-----BEGIN JUNK-----\n");
  EXPECT_EQ(refusedKeys(job.path(), "ps/0").code(), ErrorCode::kBadData);
}

TEST(TlsKeys, RefusesAKeyThatHasExpired) {
  JobKeys job;
  job.folder().issue("ps/0", "", {std::chrono::hours(-48), std::chrono::hours(-24)});
  EXPECT_THAT(refusedKeys(job.path(), "ps/0").message(), HasSubstr("dtf-launch keys renew"));
}

// The keys are valid longer than the CA: renewing them would not help.
TEST(TlsKeys, ACaThatHasExpiredIsSaidToBeWhatHasEnded) {
  JobKeys job("mnist", {.from = std::chrono::hours(-1), .until = std::chrono::seconds(2)});
  const std::shared_ptr<TlsKeys> ps = job.of("ps/0"), worker = job.of("worker/0");
  while (!job.folder().list().front().expired) std::this_thread::yield();
  const std::string ended =
      (job.path() / "ca.pem").string() + ", the certificate of the job's CA, expired on ";
  EXPECT_THAT(refusedKeys(job.path(), "ps/0").message(),
              AllOf(HasSubstr(ended), HasSubstr("dtf-launch keys init makes a CA and keys anew")));
  asio::io_context ioc;
  auto [one, two] = connectedPair(ioc);
  const auto client = worker->connect(one.native_handle(), ""),
             server = ps->accept(two.native_handle());
  TlsSession::Io io = client->handshake();
  for (int turn = 0; turn < 10 && io != TlsSession::Io::kFailed; ++turn) {
    (void)server->handshake();
    io = client->handshake();
  }
  EXPECT_THAT(client->failure(), HasSubstr(ended)) << "of connections, too";
  EXPECT_EQ(server->handshake(), TlsSession::Io::kFailed);
  EXPECT_THAT(server->failure(),
              HasSubstr("it says that this side's certificate or the CA's has expired: this side's "
                        "ends on "));
  try {
    job.folder().renew({});
    FAIL() << "a CA that has ended has signed";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr(ended));
  }
}

TEST(TlsKeys, RefusesAKeyThatAnotherCaHasSigned) {
  JobKeys ours, theirs;
  theirs.folder().issue("ps/0", "", {});
  std::filesystem::copy_file(theirs.path() / "ps-0.pem", ours.path() / "ps-0.pem");
  ::chmod((ours.path() / "ps-0.pem").c_str(), 0600);
  EXPECT_THAT(refusedKeys(ours.path(), "ps/0").message(),
              HasSubstr("is not signed by the CA in the same folder"));
}

// Connects both ends by one handshake; returns true if it succeeds.
bool meet(TlsKeys& client_keys, TlsKeys& server_keys) {
  asio::io_context ioc;
  auto [one, two] = connectedPair(ioc);
  const auto client = client_keys.connect(one.native_handle(), "");
  const auto server = server_keys.accept(two.native_handle());
  TlsSession::Io client_io = TlsSession::Io::kWantRead, server_io = TlsSession::Io::kWantRead;
  for (int turn = 0; turn < 100; ++turn) {
    if (client_io == TlsSession::Io::kWantRead) client_io = client->handshake();
    if (server_io == TlsSession::Io::kWantRead) server_io = server->handshake();
  }
  return client_io == TlsSession::Io::kDone && server_io == TlsSession::Io::kDone;
}

TEST(TlsKeys, FilesThatChangeAreReadForTheNextConnection) {
  JobKeys job;
  const std::shared_ptr<TlsKeys> ps = job.of("ps/0");
  const std::shared_ptr<TlsKeys> brief =
      job.of("worker/0", {.from = std::chrono::hours(-1), .until = std::chrono::seconds(2)});
  EXPECT_TRUE(meet(*brief, *ps));
  while (!job.folder().list().back().expired) std::this_thread::yield();
  EXPECT_FALSE(meet(*brief, *ps));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(job.folder().renew({}).size(), 2u);
  EXPECT_TRUE(meet(*brief, *ps));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("event=keys_renewed"));
}

TEST(TlsKeys, FilesThatAreNoGoodLeaveTheEarlierOnesInUse) {
  JobKeys job;
  const std::shared_ptr<TlsKeys> ps = job.of("ps/0"), worker = job.of("worker/0");
  writeText(job.path() / "worker-0.pem", "half a file");
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(meet(*worker, *ps));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("event=keys_not_renewed"));
}

TEST(TlsKeys, ARefusedRenewalIsReadAgainOnceItsModeIsRight) {
  JobKeys job;
  const std::shared_ptr<TlsKeys> ps = job.of("ps/0"), worker = job.of("worker/0");
  const std::filesystem::path file = job.path() / "worker-0.pem";
  EXPECT_EQ(job.folder().renew({}).size(), 2u);
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(meet(*worker, *ps));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("event=keys_not_renewed"));
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(meet(*worker, *ps));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("event=keys_renewed"));
}

// An unreadable folder gives this error to any user but root: the call itself fails.
TEST(TlsKeys, AFileThatCannotBeAskedForLeavesTheEarlierOnesInUse) {
  JobKeys job;
  const std::shared_ptr<TlsKeys> ps = job.of("ps/0"), worker = job.of("worker/0");
  std::filesystem::remove(job.path() / "worker-0.pem");
  std::filesystem::create_symlink("worker-0.pem", job.path() / "worker-0.pem");
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(meet(*worker, *ps));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("event=keys_not_renewed"));
}

}  // namespace
}  // namespace dtf::net::testing
