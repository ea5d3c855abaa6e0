#pragma once

// The keys of a task, from a folder made by `dtf-launch keys`: they identify this process to its
// peers, and decide which peers it accepts.
//   DIR/ca.pem            the certificate of the job's CA
//   DIR/worker-1.pem      of worker/1: its private key and its certificate, mode 0600

#include <filesystem>
#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/net/tls_session.h"

namespace dtf::net {

// Returns "worker-1.pem" for "worker/1".
std::string keyFileOf(const std::string& task);
inline constexpr const char* kAuthorityFile = "ca.pem";

// TLS 1.3 only; both sides present a certificate signed by the job's CA. Changed files are read
// again, for later connections, so keys can be renewed without a stop. If the new files are
// unusable (half copied, for example), the old keys stay in use, with a warning.
// Owns: OpenSSL's context.
// Threads: any.
// Blocks: on the files, a few KiB.
// Errors: constructor: kBadData with the file that is missing or invalid; kPermission if others may
// read the key; kBadConfig if the key is for another task or job, is signed by another CA or has
// expired.
class TlsKeys {
 public:
  // `job` empty: the certificate's.
  TlsKeys(std::filesystem::path folder, std::string task, const std::string& job = {});
  ~TlsKeys();
  TlsKeys(const TlsKeys&) = delete;
  TlsKeys& operator=(const TlsKeys&) = delete;

  // The server's side on an accepted socket, the client's on a connected one; see TlsSession.
  std::unique_ptr<TlsSession> accept(int fd);
  std::unique_ptr<TlsSession> acceptAnybody(int fd);  // TlsSession::Side::kOpenServer
  std::unique_ptr<TlsSession> connect(int fd, std::string wanted);

  const std::string& job() const { return job_; }
  const std::string& task() const { return task_; }

 private:
  class Loaded;
  struct Stamp;
  std::shared_ptr<const Loaded> current();
  std::shared_ptr<const Loaded> load() const;
  Stamp stamp() const;

  const std::filesystem::path folder_;
  const std::string task_;
  std::string job_;  // constant after construction
  Mutex mu_;
  std::shared_ptr<const Loaded> loaded_ DTF_GUARDED_BY(mu_);
  std::unique_ptr<Stamp> read_at_ DTF_GUARDED_BY(mu_);
};

}  // namespace dtf::net
