#pragma once

// The folder of a job's keys, as `dtf-launch keys` makes it: a CA of the job's own, and a key for
// each task that the CA has signed.
//   DIR/ca.pem        the CA's certificate: what all tasks trust
//   DIR/ca-key.pem    the CA's key: whoever has it can make keys. No task needs it, none is given
//                     it
//   DIR/ps-0.pem      of ps/0: its key and its certificate; DIR/client.pem of who asks and watches

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/net/certificate.h"

namespace dtf::net {

// From now on; negative ones lie in the past.
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

// Keys are of P-256, made here, and leave the folder only by the hand of whoever copies them. Files
// have mode 0600, the folder 0700; a file is replaced whole.
// Owns: nothing between calls.
// Threads: thread-compatible; one process at a time.
// Blocks: on the disk.
// Errors: kBadData naming the file that is missing or damaged; kCannotWrite; kPermission, also for
// a CA's key that others may read; kUsage for a name that no task and no job can have.
class KeyFolder {
 public:
  // Makes the folder with the CA and what `fill` issues, all of it or nothing: it is made under
  // another name beside its own (".new-keys-..."), which is all that a process leaves that is
  // killed meanwhile. A folder that is there already must be empty, and is replaced, its mode with
  // it.
  // Errors: kUsage when it is not empty.
  static KeyFolder create(const std::filesystem::path& folder, const std::string& job,
                          const Validity& validity,
                          const std::function<void(KeyFolder& made)>& fill = nullptr);
  // Of a folder that create() made.
  explicit KeyFolder(std::filesystem::path folder);

  const std::string& job() const { return job_; }

  // A new key and certificate; one that is there is replaced. `host`: where the task listens, for
  // programs that look at that (curl); may be empty.
  KeyInFolder issue(const std::string& task, const std::string& host, const Validity& validity);
  // Of all tasks that have a key, a new key and a certificate for the same name and host.
  std::vector<KeyInFolder> renew(const Validity& validity);
  // The CA first, then by file name.
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
