#include "launcher/ssh/agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/core_files.h"
#include "common/checkpoint/snapshot_folder.h"
#include "common/net/credentials.h"
#include "common/net/tls_keys.h"
#include "common/yaml/error_at.h"
#include "launcher/output.h"
#include "launcher/ssh/program_check.h"
#include "launcher/ssh/temporary_folder.h"
#include "launcher/systemd/host_units.h"

namespace dtf::launcher {

namespace {

constexpr Duration kOpenWithin =
    std::chrono::seconds(30);  // to open; the lease of one that has no tasks
constexpr Duration kAgentTick = std::chrono::milliseconds(250);
// Of files, while tasks run: 4 MiB a second, which their logs have room beside.
constexpr size_t kPiecesEachTick = 4;
// None is sent while so much waits for the launcher: orders are read in between, and the lease goes
// on.
constexpr size_t kFilesWaitMax = size_t{1} << 20;
// Of a model: the connection is never idle, and orders have their turn.
constexpr size_t kModelAheadBytes = size_t{512} << 10;
constexpr size_t kModelPieceBytes = size_t{64} << 10;
constexpr int kModelPiecesAtOnce = 32;
// The end of a task is told after its files, for whoever reads them then, if that takes no longer.
constexpr Duration kExitHeldMax = std::chrono::seconds(5);
constexpr Duration kHeldTick = std::chrono::milliseconds(10);
constexpr Duration kRunDirWithin = std::chrono::seconds(5);            // for an agent to end
constexpr Duration kLastWordsWithin = std::chrono::milliseconds(100);  // the tasks run on for it

std::string digestOf(const Binaries& binaries) {
  constexpr uint64_t kProgramBytesMax = uint64_t{1} << 30;
  Checksum checksum;
  for (const std::filesystem::path& file : {binaries.psd, binaries.workerd}) {
    const std::string bytes = readFile(file, kProgramBytesMax);
    checksum.update(bytes.data(), bytes.size());
  }
  return hexOf(checksum.value());
}

// Snapshots in this host's memory: those of an earlier launch of the job, or of this one.
void removeSnapshots(const OpenOrder& order) {
  checkpoint::removeSnapshots(realFileSystem(),
                              checkpoint::sharedMemoryPlace(order.job, order.run_dir));
}

}  // namespace

Agent::Agent(Fd in, Fd out, std::function<Binaries()> find_binaries)
    : find_binaries_(std::move(find_binaries)), host_(io_, clock_, *this), heard_(clock_.now()) {
  link_ = std::make_unique<FrameLink>(
      io_, std::move(in), std::move(out), false, [this] { return heard_ + lease() - clock_.now(); },
      FrameLink::Handlers{[this](FrameKind kind, std::string_view payload) {
                            onFrame(kind, payload);
                            // What came while an order was obeyed was not read meanwhile.
                            heard_ = clock_.now();
                          },
                          [this](const std::string&) { end(exitCode(ErrorCode::kUnavailable)); },
                          [this] { sendModelFile(); }});
}

Agent::~Agent() = default;

int Agent::run() {
  link_->send(agentGreeting() + "\n");
  tick();
  while (!exit_code_) io_.run_one();
  // What asked for the tasks is gone: so are they, at once, as those of a launcher that was killed.
  host_.close();
  if (*exit_code_ == 0 && listens_ && opened_->drops_snapshots) removeSnapshots(*opened_);
  probe_.reset();
  files_.reset();
  copies_.reset();
  probes_keys_.reset();
  run_dir_lock_.reset();
  link_->close();
  return *exit_code_;
}

void Agent::end(int code) {
  if (!exit_code_) exit_code_ = code;
}

Duration Agent::lease() const {
  return opened_ ? fromSeconds(opened_->lease_seconds) : kOpenWithin;
}

void Agent::tick() {
  if (clock_.now() > heard_ + lease()) {
    printBounded(
        STDERR_FILENO,
        fmt::format(
            "dtf-agent: no message from dtf-launch for {:g} s, the lease: ending the tasks\n",
            toSeconds(lease())),
        kLastWordsWithin);
    return end(exitCode(ErrorCode::kUnavailable));
  }
  host_.look();
  tellExits(sendFiles(held_exits_.empty() ? kPiecesEachTick : SIZE_MAX));
  arm();
}

void Agent::arm() {
  timer_.expires_after(held_exits_.empty() ? kAgentTick : kHeldTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !exit_code_) tick();
  });
}

// Whoever says what makes no sense is no launcher, or one of another version: there is nothing to
// go on with.
void Agent::onFrame(FrameKind kind, std::string_view payload) {
  if (exit_code_) return;
  try {
    if (kind == FrameKind::kCopy) return receiveCopies(payload);
    if (kind != FrameKind::kMessage) throw Error(ErrorCode::kBadData, "output is not an order");
    const AgentOrder order = parseOrder(payload);
    const bool is_first = std::holds_alternative<OpenOrder>(order) ||
                          std::holds_alternative<ProbeOrder>(order) ||
                          (!units_ && std::holds_alternative<UnitsOrder>(order));
    const bool is_before = std::holds_alternative<OfferOrder>(order);  // of an 'open'
    if ((is_before || is_first) == (opened_ || is_probing_ || units_))
      throw Error(ErrorCode::kBadData,
                  "'open', 'probe' or 'units' must be the first order, and come once");
    const bool is_of_a_task = std::holds_alternative<SendSignalOrder>(order) ||
                              std::holds_alternative<ReleaseOrder>(order);
    if ((is_probing_ || units_) && is_of_a_task)
      throw Error(ErrorCode::kBadData, "this connection has no tasks");
    std::visit([this](const auto& each) { obey(each); }, order);
  } catch (const Error& error) {
    report(FailedReport{{}, error.code(), error.message()});
    end(exitCode(error.code()));
  }
}

// A failure is reported, and the agent waits for the launcher to read that and to end.
void Agent::reporting(const std::function<void()>& act) {
  if (!is_of_use_) return;
  try {
    return act();
  } catch (const yaml::ErrorAt& error) {
    report(FailedReport{{}, error.code(), error.reason()});
  } catch (const Error& error) {
    report(FailedReport{{}, error.code(), error.message()});
  }
  is_of_use_ = false;
}

void Agent::obey(const OfferOrder& order) {
  reporting([&] { offered(order); });
}

void Agent::offered(const OfferOrder& order) {
  if (!copies_) copies_ = std::make_unique<CopyStore>(copiesFolder(order.dir));
  for (const OfferedFile& file : order.files)
    (file.program.empty() ? has_data_ : has_programs_) = true;
  has_data_ = has_data_ || !order.folders.empty();
  const LackingReport lacking{copies_->offer(order)};
  if (order.is_last) copies_->makeRoom(order.bytes_max);
  report(lacking);
}

void Agent::receiveCopies(std::string_view bytes) {
  reporting([&] {
    if (!copies_ || opened_)
      throw Error(ErrorCode::kBadData, "bytes of a file that was not requested");
    if (copies_->receive(bytes)) report(StoredReport{copies_->stored()});
  });
}

void Agent::obey(const OpenOrder& order) {
  opened_ = order;
  reporting([&] { open(order); });
}

Binaries Agent::chooseBinaries() const {
  if (!has_programs_) return find_binaries_();
  const Binaries copied{copies_->program("psd"), copies_->program("workerd")};
  checkProgramRuns(copied.psd);
  checkProgramRuns(copied.workerd);
  return copied;
}

void Agent::open(const OpenOrder& order) {
  if (copies_ && !copies_->complete())
    throw Error(ErrorCode::kBadData, "offered files are missing");
  binaries_ = chooseBinaries();
  makeWritableFolder(order.run_dir);
  run_dir_lock_.emplace(order.run_dir, order.launch, kRunDirWithin);
  files_ = std::make_unique<SentFilesFolder>(order.run_dir, order.files);
  has_launchers_run_dir_ = hasMark(order.run_dir, order.mark);
  if (!order.mark.empty() && !has_launchers_run_dir_) run_files_.emplace(order.run_dir, order.kept);
  ListeningReport listening{{}, digestOf(binaries_)};
  for (const auto& [id, address] : host_.listen(order.tasks, order.reachable, {})) {
    const size_t colon = address.rfind(':');
    listening.ports[id] = static_cast<uint16_t>(std::stoul(address.substr(colon + 1)));
  }
  // Not before this launch has all that it needs of another's.
  if (order.drops_snapshots) removeSnapshots(order);
  listens_ = true;
  report(listening);
}

void Agent::obey(const ProbeOrder& order) {
  is_probing_ = true;
  try {
    probe(order);
  } catch (const Error& error) {
    report(FailedReport{{}, error.code(), error.message()});
  }
}

void Agent::probe(const ProbeOrder& order) {
  NetworkProbe::Options options{order.host, order.identity, order.reachable};
  if (!order.keys.empty()) {
    leaveNoCoreFiles();
    probes_keys_ = std::make_unique<TemporaryFolder>();
    files_ = std::make_unique<SentFilesFolder>(probes_keys_->path(), order.files);
    options.credentials = net::Credentials::ofKeys(std::make_shared<net::TlsKeys>(
        files_->path() / order.keys.relative_path(), order.task, order.job));
  } else {
    options.credentials =
        order.reachable ? net::Credentials::insecure() : net::Credentials::ownUser();
  }
  probe_ = std::make_unique<NetworkProbe>(std::move(options));
  report(ProbingReport{probe_->addresses()});
}

void Agent::obey(const UnitsOrder& order) {
  if (!units_)
    units_ = std::make_unique<HostUnits>(
        find_binaries_, [this](const FilePiece& piece) { link_->send(fileFrame(piece)); });
  report(UnitsReport{order.number, answerJson(units_->tell(parseQuestion(order.question)))});
}

void Agent::obey(const MeasureOrder& order) {
  if (!probe_) throw Error(ErrorCode::kBadData, "a measurement was ordered without 'probe'");
  probe_->measure(order.measure, [this](const Measured& measured) {
    boost::asio::post(io_, [this, measured] { report(MeasuredReport{measured}); });
  });
}

void Agent::obey(const StartOrder& order) {
  if (!files_ || tasks_.contains(order.task) || !opened_->tasks.contains(order.command.id))
    throw Error(ErrorCode::kBadData, order.command.id.name() + " can't be started here");
  TaskCommand command = order.command;
  const bool is_ps = command.argv[0] == "psd";
  if (!is_ps && command.argv[0] != "workerd")
    throw Error(ErrorCode::kBadData, "'" + command.argv[0] + "' is not a program of dtf");
  command.argv[0] = (is_ps ? binaries_.psd : binaries_.workerd).string();
  command.env["DTF_SENT_FILES"] = files_->path().string();
  if (has_data_) {
    command.env["DTF_SENT_DATA"] = copies_->dataFolder().string();
    command.env["DTF_STARTED_IN"] = command.folder.string();
  }
  // Where the job was started, if this host has that folder: what --set names is relative to it.
  std::error_code ignored;
  if (!std::filesystem::is_directory(command.folder, ignored)) command.folder = opened_->run_dir;
  tasks_.insert(order.task);
  host_.start(order.task, command);
}

void Agent::obey(const SendSignalOrder& order) {
  host_.signal(order.task, order.signal);
}

void Agent::obey(const ReleaseOrder& order) {
  host_.release(order.task, order.id);
}

// A disk that is full leaves what is there, which is good for a while: no reason to end the tasks.
void Agent::obey(const ReplaceOrder& order) {
  if (!files_) throw Error(ErrorCode::kBadData, "there are no files to replace");
  for (const auto& [file, text] : order.files) {
    try {
      files_->replace(file, text);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kBadData) throw;
      printBounded(STDERR_FILENO, "dtf-agent: " + error.message() + "\n", kLastWordsWithin);
    }
  }
}

void Agent::obey(const FetchOrder& order) {
  if (!listens_ || model_file_) throw Error(ErrorCode::kBadData, "no file can be fetched now");
  using Found = FetchedReport::Found;
  if (has_launchers_run_dir_ && isManifest(order.name)) return report(FetchedReport{Found::kSame});
  model_file_ = ModelFileReader::open(realFileSystem(), opened_->run_dir, order.name);
  if (!model_file_) return report(FetchedReport{Found::kAbsent});
  report(FetchedReport{Found::kThere, model_file_->bytes()});
  sendModelFile();
}

void Agent::obey(const PingOrder& /*order*/) {
  AliveReport alive;
  for (const size_t task : tasks_)
    if (host_.suspended(task)) alive.suspended.push_back(task);
  report(alive);
}

void Agent::obey(const EndOrder& order) {
  if (opened_) opened_->drops_snapshots |= order.drops_snapshots;
  end(0);
}

void Agent::report(const AgentReport& report) {
  link_->send(messageFrame(reportJson(report)));
}

// Whether all is sent that the files hold now. Never waits: what the launcher does not take yet
// stays where it is.
bool Agent::sendFiles(size_t pieces_max) {
  if (!run_files_) return true;
  run_files_->look();
  for (size_t i = 0; i < pieces_max && !exit_code_; ++i) {
    if (link_->queuedBytes() > kFilesWaitMax) return false;
    const std::optional<FilePiece> piece = run_files_->next();
    if (!piece) return true;
    link_->send(fileFrame(*piece));
  }
  return false;
}

// As much as the connection has room for; the rest when it has taken that.
void Agent::sendModelFile() {
  try {
    for (int i = 0; model_file_ && !exit_code_ && link_->queuedBytes() < kModelAheadBytes; ++i) {
      if (i == kModelPiecesAtOnce) return link_->askForRoom();
      const std::string piece = model_file_->next(kModelPieceBytes);
      if (piece.empty())
        model_file_.reset();
      else
        link_->send(copyFrame(piece));
    }
  } catch (const Error& error) {
    report(FailedReport{{}, error.code(), error.message()});
    end(exitCode(error.code()));
  }
}

void Agent::tellExits(bool all_sent) {
  while (!held_exits_.empty() && (all_sent || clock_.now() > held_exits_.front().until)) {
    report(held_exits_.front().report);
    held_exits_.pop_front();
  }
}

void Agent::onStarted(size_t task, pid_t /*pid*/) {
  report(StartedReport{task});
}

void Agent::onStartFailed(size_t task, const Error& error) {
  tasks_.erase(task);
  report(FailedReport{task, error.code(), error.message()});
}

void Agent::onOutput(size_t task, std::string_view bytes) {
  link_->send(bytesFrame(FrameKind::kOutput, task, bytes));
}

void Agent::onNotices(size_t task, std::string_view bytes) {
  link_->send(bytesFrame(FrameKind::kNotices, task, bytes));
}

void Agent::onExited(size_t task, ExitStatus status) {
  DTF_CHECK(tasks_.contains(task));
  tasks_.erase(task);
  held_exits_.push_back({ExitedReport{task, status}, clock_.now() + kExitHeldMax});
  tellExits(sendFiles(SIZE_MAX));
  if (!held_exits_.empty()) arm();
}

void Agent::onHostTold(const std::string& /*text*/) {}

void Agent::onHostNews(const std::string& /*text*/) {}

}  // namespace dtf::launcher
