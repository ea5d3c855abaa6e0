#pragma once

// The units of one job, on each of its hosts: written, started, asked, stopped and removed.

#include <boost/asio/io_context.hpp>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/spec.h"
#include "common/net/asio.h"
#include "launcher/launch_plan.h"
#include "launcher/systemd/unit_files.h"
#include "launcher/systemd/unit_host.h"
#include "launcher/systemd/unit_keys.h"

namespace dtf::launcher {

// What is known only where a job is started. Value type.
struct UnitStart {
  std::function<Binaries()> find_binaries;  // of this host
  std::filesystem::path folder;             // where dtf-launch was started
  SentFiles files;                          // that the job was read from
};

// Owns: connections to other hosts, and nothing else that ends with it: units go on until they have
// ended or are stopped.
// Borrows: `job` (must outlive this).
// Threads: thread-compatible.
// Blocks: on systemctl and on other hosts, for as long as each call says; hosts are asked at the
// same time.
// Errors: those of HostUnits and of FarUnitHost, beginning with the host's name where it is another
// one.
class UnitJob {
 public:
  // `run_dir`: of the run. `start`: units are to be written; without it there must be some, or
  // none.
  UnitJob(const cluster::JobSpec& job, const std::filesystem::path& run_dir,
          std::optional<UnitStart> start = {});

  const std::vector<std::string>& units() const { return units_; }  // names, ps first
  bool hasOtherHosts() const { return !far_.empty(); }
  // Each that has been met; its facts are known.
  struct Part {
    const UnitHost* host;
    std::vector<size_t> tasks;  // in order
  };
  std::vector<Part> parts() const;

  // Connects to every host. Errors: at the place of the cluster file that names the host.
  void meet();
  // The same, and goes on without those that can't be reached, from now on: why is returned.
  // Errors: those of a host that answers; kUnavailable when none does.
  std::vector<Error> meetReachable();
  // The number of the logs of a new launch.
  int nextAttempt() const;
  // Taken by whoever changes the units: from asking whether the names are free to their start, and
  // while those of a job that has ended are removed.
  // Errors: kUnavailable once another dtf-launch has held it for kLockedMax.
  static constexpr Duration kLockedMax = std::chrono::seconds(120);
  // What changes units on a host is refused from then on, with kUnavailable, where the connection
  // that holds it was lost.
  void lock();
  void unlock();

  // kUnavailable, saying where the units of this name log, when that isn't `run_dir`: they are
  // another run's.
  void checkOwn();
  // Whether no host that answers says so.
  bool isOwn();
  // Errors: kUnavailable when units of that name run; kBadConfig when somebody else's unit has it.
  void checkFree();
  // Writes the files, `attempt` being the number of the logs, which are made where the hosts have
  // no folder in common with this one.
  // Errors: kCannotWrite, kUnavailable for a port in use. What of a start that has failed is there
  // is taken back.
  void start(const std::vector<UnitFile>& files, int attempt);
  // Their states now, in order.
  std::vector<UnitState> states();
  bool isAlive();  // some unit is
  // The same, for somebody who looks again soon: waits kLookWithin at most, and not for a host that
  // was silent before. Brings what is new of the files where bringFiles() was called.
  static constexpr Duration kLookWithin = std::chrono::seconds(2);
  std::vector<UnitState> look();
  // From now on, of the launch with that number, unless another dtf-launch does.
  void bringFiles(int attempt);
  // All that the hosts have by now. False: there may be more; brought() has grown by what came.
  bool bringRest();
  uint64_t brought() const { return files_ ? files_->bytes() : 0; }
  // Asks all to end, and systemd not to start them again.
  void stop() { control({"stop", "--no-block"}); }
  // stop(), and the same with SIGKILL, where a host's failure is told, not thrown: the others are
  // to end all the same.
  std::vector<Error> stopReachable();
  std::vector<Error> killReachable();
  // The files, what systemd remembers and, if asked, snapshots in memory; of units that have ended,
  // and that nobody has started again since. What can't be done is told by news().
  void removeEnded(bool drops_snapshots);
  // Keys that were renewed here since they were sent; a host that can't be asked gets them later.
  void sendRenewedKeys();
  // What a person should know since this was called last.
  std::vector<std::string> news();

 private:
  struct Host {
    std::unique_ptr<UnitHost> host;
    FarUnitHost* far = nullptr;  // the same, where it is another one
    std::vector<size_t> tasks;
    yaml::Mark mark;
    UnitKeys keys;
    uint64_t told_connection = 0;    // that was asked with all sizes
    uint64_t locked_connection = 0;  // that holds the lock
    bool is_silent = false;
    bool has_more = false;
    bool is_dropped = false;  // it can't be reached
  };
  struct Answers {
    std::vector<std::optional<UnitAnswer>> each;  // by host
    struct Failure {
      size_t host;
      Error error;
      bool is_lost;  // there is no connection
    };
    std::vector<Failure> errors;
    std::exception_ptr of_this_host;  // one of them, as it was thrown
  };
  // Nullopt: that host is not asked.
  using QuestionOf = std::function<std::optional<UnitQuestion>(Host&)>;
  Host makeHost(const std::string& name, std::vector<size_t> tasks);
  void turn();
  bool hasLock(const Host& host) const;
  void requireLock() const;
  std::vector<bool> asked() const;
  void collect(Answers& answers, std::vector<bool>& waits);
  Answers ask(const QuestionOf& question_of, Duration within);
  void throwFirst(const Answers& answers) const;
  Answers mustAnswer(const QuestionOf& question_of, Duration within);
  void control(const std::vector<std::string>& words);
  WriteQuestion writeQuestion(Host& host, const std::vector<UnitFile>& files, int attempt);
  StatesQuestion statesQuestion(Host& host);
  std::vector<UnitState> inOrder(const Answers& answers) const;
  std::vector<Error> errorsOf(const UnitQuestion& question);

  const cluster::JobSpec& job_;
  const std::string launch_;
  const std::filesystem::path run_dir_;
  const std::optional<UnitStart> start_;
  const std::vector<TaskId> tasks_;
  std::vector<std::string> units_;
  const SystemClock clock_;
  boost::asio::io_context io_{1};
  bool is_locked_ = false;
  std::optional<UnitFiles> files_;
  std::vector<std::string> news_;
  std::vector<Host> hosts_;
  std::vector<size_t> far_;  // of them: others
};

}  // namespace dtf::launcher
