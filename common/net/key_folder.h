#pragma once

// The folder of a job's keys, made by `dtf-launch keys`: a CA for the job, and a signed key for
// each task.
//   DIR/ca.pem        the CA's certificate, which all tasks trust
//   DIR/ca-key.pem    the CA's key, which signs new keys; it is never copied to tasks
//   DIR/ps-0.pem      key and certificate of ps/0; DIR/client.pem is for programs that query and
//   watch

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/net/certificate.h"

namespace dtf::net {

// Relative to now; negative values lie in the past.
struct Validity {
  std::chrono::seconds from{-300};  // hosts' clocks differ
  std::chrono::seconds until = std::chrono::hours(24 * 365);
};

struct KeyInFolder {
  CertifiedName name;
  std::string file;   // "worker-1.pem"
  std::string start;  // "2026-11-24 10:00 UTC"
  std::string end;
  bool expired = false;
};

// Keys are P-256, generated here, and never copied anywhere else by dtf. Files have mode 0600, the
// folder 0700; files are replaced atomically.
// Owns: nothing between calls.
// Threads: thread-compatible; one process at a time.
// Blocks: on the disk.
// Errors: kBadData with the missing or damaged file; kCannotWrite; kPermission, also for a CA's key
// that others may read; kUsage for an invalid name of a task or job.
class KeyFolder {
 public:
  // Makes the folder with the CA and the keys issued by `fill`, completely or not at all. It is
  // made under a temporary name beside its own (".new-keys-..."), which a killed process leaves
  // behind. An existing folder must be empty, and is replaced together with its mode.
  // Errors: kUsage if it is not empty.
  static KeyFolder create(const std::filesystem::path& folder, const std::string& job,
                          const Validity& validity,
                          const std::function<void(KeyFolder& made)>& fill = nullptr);
  // Opens a folder made by create().
  explicit KeyFolder(std::filesystem::path folder);

  const std::string& job() const { return job_; }

  // Issues a new key and certificate; replaces an existing one. `host`: the task's host, for
  // programs that check it (curl); may be empty.
  KeyInFolder issue(const std::string& task, const std::string& host, const Validity& validity);
  // Issues a new key and certificate, with the same name and host, for all tasks that have a key.
  std::vector<KeyInFolder> renew(const Validity& validity);
  // Returns the CA first, then the others by file name.
  std::vector<KeyInFolder> list() const;

 private:
  std::vector<std::string> keyFiles() const;
  static void makeAuthority(const std::filesystem::path& folder, const std::string& job,
                            const Validity& validity);
  KeyInFolder sign(const CertifiedName& name, const std::string& names, const Validity& validity);

  const std::filesystem::path folder_;
  std::string job_;
};

inline constexpr const char* kAuthorityKeyFile = "ca-key.pem";

}  // namespace dtf::net
