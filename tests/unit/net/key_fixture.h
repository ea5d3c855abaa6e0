#pragma once

// Keys of a job in a temporary folder, and sockets that use them for TLS.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "common/net/key_folder.h"
#include "common/net/tls_keys.h"
#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {

inline std::filesystem::path newFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "dtf-keys-XXXXXX").string();
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
  return pattern;
}

// A CA that issues keys of tasks on demand.
class JobKeys {
 public:
  explicit JobKeys(const std::string& job = "mnist", const Validity& authority = {})
      : path_(newFolder()), folder_(KeyFolder::create(path_, job, authority)) {}
  ~JobKeys() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  KeyFolder& folder() { return folder_; }
  // Issues a new key each time.
  std::shared_ptr<TlsKeys> of(const std::string& task, const Validity& validity = {}) {
    folder_.issue(task, "", validity);
    return std::make_shared<TlsKeys>(path_, task);
  }

 private:
  const std::filesystem::path path_;
  KeyFolder folder_;
};

// Both ends of a socket pair, after a handshake of worker/1 with ps/0.
inline std::pair<Transport, Transport> securePair(asio::io_context& ioc) {
  static JobKeys job;
  static const std::shared_ptr<TlsKeys> worker = job.of("worker/1"), ps = job.of("ps/0");
  auto [one, two] = connectedPair(ioc);
  auto client = worker->connect(one.native_handle(), "ps/0");
  auto server = ps->accept(two.native_handle());
  bool client_done = false, server_done = false;
  for (int turn = 0; turn < 100 && !(client_done && server_done); ++turn) {
    if (!client_done) client_done = client->handshake() == TlsSession::Io::kDone;
    if (!server_done) server_done = server->handshake() == TlsSession::Io::kDone;
  }
  EXPECT_TRUE(client_done && server_done) << client->failure() << server->failure();
  return {Transport(std::move(one), std::move(client)),
          Transport(std::move(two), std::move(server))};
}

enum class Wire { kPlain, kTls };

inline std::pair<Transport, Transport> pairOf(Wire wire, asio::io_context& ioc) {
  if (wire == Wire::kTls) return securePair(ioc);
  auto [one, two] = connectedPair(ioc);
  return {Transport(std::move(one)), Transport(std::move(two))};
}

inline std::string wireName(const ::testing::TestParamInfo<Wire>& info) {
  return info.param == Wire::kTls ? "Tls" : "Plain";
}

}  // namespace dtf::net::testing
