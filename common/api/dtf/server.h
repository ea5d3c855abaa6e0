#pragma once

// A task of a cluster in this process: TensorFlow's ClusterSpec and Server.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "error.h"

namespace dtf {
inline namespace v1 {

// The addresses of all tasks of a cluster. Every program of the cluster gives the same ones, in the
// same order. A handle: copies share the cluster, which is constant.
// Errors: as dtf_cluster_add() and dtf_cluster_parse() in <dtf/dtf.h>.
class ClusterSpec {
 public:
  using Jobs = std::map<std::string, std::vector<std::string>>;

  // ClusterSpec({{"ps", {"a:2222"}}, {"worker", {"b:2222", "c:2222"}}}); see hosts() for flags.
  ClusterSpec(std::initializer_list<Jobs::value_type> jobs) : ClusterSpec(Jobs(jobs)) {}
  explicit ClusterSpec(const Jobs& jobs) {
    dtf_cluster* made = nullptr;
    check(dtf_cluster_new(&made));
    handle_.reset(made, Free());
    for (const auto& [job, addresses] : jobs)
      for (const std::string& address : addresses)
        check(dtf_cluster_add(made, job.c_str(), address.c_str()));
  }
  // Of the text of a cluster file, whose relative paths start at `folder`.
  static ClusterSpec parse(const std::string& text, const std::string& folder = {}) {
    dtf_cluster* made = nullptr;
    check(dtf_cluster_parse(text.c_str(), folder.empty() ? nullptr : folder.c_str(), &made));
    return ClusterSpec(made);
  }
  // Returns the addresses of TensorFlow's flags: "a:2222,b:2222".
  static std::vector<std::string> hosts(const std::string& flag) {
    std::vector<std::string> addresses;
    for (size_t begin = 0; begin <= flag.size() && !flag.empty();) {
      const size_t end = std::min(flag.find(',', begin), flag.size());
      addresses.push_back(flag.substr(begin, end - begin));
      begin = end + 1;
    }
    return addresses;
  }

  // Returns the number of tasks of a job; 0 also for an unknown job.
  size_t numTasks(const std::string& job) const { return dtf_cluster_count(get(), job.c_str()); }
  std::string taskAddress(const std::string& job, size_t index) const {
    const char* const address = dtf_cluster_address(get(), job.c_str(), index);
    if (address == nullptr)
      throw Error(DTF_BAD_CONFIG, "the cluster has no " + job + "/" + std::to_string(index));
    return address;
  }

  const dtf_cluster* get() const { return handle_.get(); }

 private:
  explicit ClusterSpec(dtf_cluster* taken) : handle_(taken, Free()) {}
  struct Free {
    void operator()(dtf_cluster* cluster) const { dtf_cluster_free(cluster); }
  };
  std::shared_ptr<dtf_cluster> handle_;
};

struct ServerOptions {
  std::string keys = {};        // a folder made by `dtf-launch keys`; empty: of the cluster's text
  bool insecure = false;        // without keys: others may connect
  std::string devices = {};     // "cpu:0,gpu:0"; empty: of the cluster's text, or one CPU
  int64_t threads = 0;          // that compute; 0: the host's cores, shared by its workers
  int64_t bytes_max = 0;        // of all clients' data; 0: a share of the host's memory
  bool handle_signals = false;  // SIGTERM and SIGINT end join()
  int64_t sessions_max = 0;     // of clients at once; 0: of the cluster's text, or 512
};

// Serves clients from construction to destruction, on threads of its own, as `psd --serve` and
// `workerd --serve` do.
// Threads: thread-safe.
// Blocks: join(); the destructor, until running computations have ended.
// Errors: as dtf_server_start() in <dtf/dtf.h>.
class Server {
 public:
  struct Stopped {
    std::string reason;
    int signal = 0;  // 0: stop() was called
  };

  Server(const ClusterSpec& cluster, const std::string& job_name, int64_t task_index,
         const ServerOptions& options = {}) {
    dtf_server_options how{};
    how.size = sizeof(how);
    how.keys = options.keys.c_str();
    how.insecure = options.insecure ? 1 : 0;
    how.devices = options.devices.c_str();
    how.threads = options.threads;
    how.bytes_max = options.bytes_max;
    how.handle_signals = options.handle_signals ? 1 : 0;
    how.sessions_max = options.sessions_max;
    dtf_server* made = nullptr;
    check(dtf_server_start(cluster.get(), job_name.c_str(), task_index, &how, &made));
    handle_.reset(made);
  }

  // "dtf://host:port/worker/0", a target of sessions.
  std::string target() const { return dtf_server_target(handle_.get()); }

  // Returns when the server is stopped, with the reason.
  Stopped join() {
    Stopped stopped;
    stopped.reason.resize(kReasonMax);
    size_t bytes = 0;
    check(dtf_server_join(handle_.get(), -1, &stopped.reason[0], kReasonMax, &bytes,
                          &stopped.signal));
    stopped.reason.resize(std::min(bytes, kReasonMax) - 1);
    return stopped;
  }
  // Returns whether the server is stopped within that time.
  bool joinFor(double seconds) {
    const dtf_code code =
        dtf_server_join(handle_.get(), seconds < 0 ? 0 : seconds, nullptr, 0, nullptr, nullptr);
    if (code != DTF_DEADLINE) check(code);
    return code == DTF_OK;
  }
  // Makes join() return; clients are served until the destructor.
  void stop(const std::string& why = "the program stopped it") {
    check(dtf_server_stop(handle_.get(), why.c_str()));
  }
  // Returns the number of clients' open sessions.
  size_t sessions() const { return dtf_server_sessions(handle_.get()); }

 private:
  static constexpr size_t kReasonMax = 4096;
  struct Free {
    void operator()(dtf_server* server) const { dtf_server_free(server); }
  };
  std::unique_ptr<dtf_server, Free> handle_;
};

}  // namespace v1
}  // namespace dtf
