#pragma once

// The far end: runs the tasks of one host as the launcher at the other end of the connection
// orders, and none of them outlives it. That connection is all it has: it opens no port, and ends
// with it.

#include <deque>
#include <memory>
#include <optional>
#include <set>

#include "common/base/clock.h"
#include "common/net/asio.h"
#include "launcher/binaries.h"
#include "launcher/local_host.h"
#include "launcher/network/network_probe.h"
#include "launcher/ssh/copy_store.h"
#include "launcher/ssh/frame_link.h"
#include "launcher/ssh/messages.h"
#include "launcher/ssh/model_files.h"
#include "launcher/ssh/run_dir_lock.h"
#include "launcher/ssh/run_files.h"
#include "launcher/ssh/sent_files_folder.h"

namespace dtf::launcher {

class HostUnits;
class TemporaryFolder;

// Owns: the connection, the tasks' processes and sockets, the files that were sent, its hold on
// copies.
// Threads: one, that lives as long as the process.
// Blocks: run(), until the connection has ended or was ordered to, or nothing was heard for the
// lease. What a slow connection does not take holds up the tasks' output, as a slow disk would, for
// what is left of the lease at most.
class Agent : private TaskEvents {
 public:
  // `find_binaries` says where psd and workerd are.
  Agent(Fd in, Fd out, std::function<Binaries()> find_binaries);
  ~Agent() override;

  // 0: it was ordered to end; 69: the connection is gone. No process of a task is left.
  int run();

 private:
  void onStarted(size_t task, pid_t pid) override;
  void onStartFailed(size_t task, const Error& error) override;
  void onOutput(size_t task, std::string_view bytes) override;
  void onNotices(size_t task, std::string_view bytes) override;
  void onExited(size_t task, ExitStatus status) override;
  void onHostTold(const std::string& text) override;
  void onHostNews(const std::string& text) override;

  void onFrame(FrameKind kind, std::string_view payload);
  void obey(const OfferOrder& order);
  void obey(const OpenOrder& order);
  void obey(const ProbeOrder& order);
  void obey(const UnitsOrder& order);
  void obey(const MeasureOrder& order);
  void obey(const StartOrder& order);
  void obey(const SendSignalOrder& order);
  void obey(const ReleaseOrder& order);
  void obey(const ReplaceOrder& order);
  void obey(const FetchOrder& order);
  void obey(const PingOrder& order);
  void obey(const EndOrder& order);
  void offered(const OfferOrder& order);
  void receiveCopies(std::string_view bytes);
  void open(const OpenOrder& order);
  Binaries chooseBinaries() const;
  void probe(const ProbeOrder& order);
  void report(const AgentReport& report);
  void reporting(const std::function<void()>& act);
  bool sendFiles(size_t pieces_max);
  void sendModelFile();
  void tellExits(bool all_sent);
  void arm();
  Duration lease() const;
  void tick();
  void end(int code);

  const SystemClock clock_;
  const std::function<Binaries()> find_binaries_;
  boost::asio::io_context io_{1};
  LocalHost host_;  // before what has descriptors
  boost::asio::steady_timer timer_{io_};
  std::unique_ptr<FrameLink> link_;
  std::unique_ptr<CopyStore> copies_;             // null: nothing is copied here
  bool has_programs_ = false, has_data_ = false;  // among the copies
  bool is_of_use_ = true;                         // else the launcher has been told why not
  std::optional<OpenOrder> opened_;
  Binaries binaries_;
  std::optional<RunDirLock> run_dir_lock_;
  std::unique_ptr<SentFilesFolder> files_;
  std::optional<RunFilesReader> run_files_;  // none: the launcher has the same run directory
  bool has_launchers_run_dir_ = false;
  std::unique_ptr<ModelFileReader> model_file_;  // that is on its way; null: none
  bool listens_ = false;                         // for its tasks
  struct HeldExit {
    ExitedReport report;
    TimePoint until;
  };
  std::deque<HeldExit> held_exits_;  // told when the files of their tasks are
  std::set<size_t> tasks_;           // that have a process
  TimePoint heard_;
  std::optional<int> exit_code_;
  bool is_probing_ = false;                       // it was ordered to, in place of having tasks
  std::unique_ptr<TemporaryFolder> probes_keys_;  // where there are keys
  std::unique_ptr<NetworkProbe> probe_;           // its thread posts to the loop
  std::unique_ptr<HostUnits> units_;  // it was asked about units, in place of having tasks
};

}  // namespace dtf::launcher
