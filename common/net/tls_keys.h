#pragma once

// Who this process is to others, and whom it lets in: the keys of a task, from a folder that
// `dtf-launch keys` made.
//   DIR/ca.pem            the certificate of the job's CA
//   DIR/worker-1.pem      of worker/1: its private key and its certificate, mode 0600

#include <filesystem>
#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/net/tls_session.h"

namespace dtf::net {

// "worker-1.pem" of "worker/1".
std::string keyFileOf(const std::string& task);
inline constexpr const char* kAuthorityFile = "ca.pem";

// TLS 1.3 only; both sides show a certificate that the job's CA has signed. The files are read
// again when they change, for the connections that are made from then on: that is how keys are
// renewed without a stop. Files that are not good (half copied, say) leave the earlier ones in use,
// with a warning.
// Owns: OpenSSL's context.
// Threads: any.
// Blocks: on the files, a few KiB.
// Errors: constructor: kBadData naming the file that is missing or no key or certificate;
// kPermission when others may read the key; kBadConfig when the key is for another task or job, is
// signed by another CA or has expired.
class TlsKeys {
 public:
  // `job` empty: the one that the certificate names.
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
  std::string job_;  // constant once constructed
  Mutex mu_;
  std::shared_ptr<const Loaded> loaded_ DTF_GUARDED_BY(mu_);
  std::unique_ptr<Stamp> read_at_ DTF_GUARDED_BY(mu_);
};

}  // namespace dtf::net
