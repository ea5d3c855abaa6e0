#include "launcher/ssh/ssh_hosts.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/cluster/address.h"
#include "common/yaml/error_at.h"
#include "launcher/slurm/srun_command.h"
#include "launcher/ssh/agent_bootstrap.h"
#include "launcher/ssh/copy_report.h"
#include "launcher/ssh/ssh_command.h"

namespace dtf::launcher {

namespace {

using Via = cluster::LaunchSpec::Via;

constexpr Duration kHostsTurn = std::chrono::milliseconds(20);
// For hosts that are wrong in the same way to say so together.
constexpr Duration kMoreFailuresWithin = std::chrono::seconds(2);
constexpr Duration kHostsEndWithin = std::chrono::seconds(5);
constexpr size_t kHostsShown = 8;
// Of connections: a launcher that writes its log files says nothing for a moment.
constexpr double kHeartbeatSecondsMin = 0.5;
constexpr double kLeaseSecondsMin = 3;

std::vector<std::string> inOrder(const std::vector<std::string>& hosts) {
  std::vector<std::string> each;
  for (const std::string& host : hosts)
    if (std::find(each.begin(), each.end(), host) == each.end()) each.push_back(host);
  return each;
}

double heartbeatSeconds(const cluster::JobSpec& job) {
  return std::max(job.timeouts.heartbeat_seconds, kHeartbeatSecondsMin);
}

double leaseSeconds(const cluster::JobSpec& job) {
  return std::max(job.timeouts.lease_seconds, kLeaseSecondsMin);
}

// Of a node of Slurm: the folder was filled in where the job was placed there.
std::string agentIn(const cluster::SshSpec& ssh) {
  return ssh.binary_dir + "/dtf-agent";
}

std::vector<std::string> commandOf(const cluster::JobSpec& job, const std::string& host) {
  const cluster::SshSpec& ssh = job.launch.sshOf(host);
  if (job.launch.via == Via::kSlurm) return srunCommand(host, agentIn(ssh));
  return sshCommand(host, ssh, heartbeatSeconds(job), leaseSeconds(job), job.launch.copy.programs);
}

// Of tasks that need the same files.
std::string kindsOf(const std::vector<TaskId>& tasks) {
  std::string kinds;
  for (const TaskId& task : tasks)
    kinds = std::max(kinds, std::string(task == kChief                 ? "chief"
                                        : task.job == JobKind::kWorker ? "b"
                                                                       : "a"));
  return kinds;
}

// Before they are read. It is the data that are too much; told where they are named.
void checkFits(const CopiedFiles& files, const cluster::JobSpec& job) {
  const uint64_t max_gib = job.launch.copy.max_gib;
  if (files.bytes() > max_gib << 30)
    throw yaml::ErrorAt(ErrorCode::kBadConfig, job.train ? job.train->data.train.mark : job.mark,
                        fmt::format("{} must be copied to a host, and launch.copy.max_gib is {}",
                                    bytesText(files.bytes()), max_gib));
}

}  // namespace

std::vector<std::string> hostsOfTasks(const cluster::JobSpec& job) {
  std::map<std::string, std::string> known;
  std::vector<std::string> hosts;
  for (const TaskId id : allTasks(job.cluster)) {
    const std::string& host = job.cluster.tasks(id.job)[id.index].address.host;
    hosts.push_back(known.try_emplace(cluster::hostKey(host), host).first->second);
  }
  return hosts;
}

std::string newLaunch() {
  std::array<uint64_t, 2> random{};
  DTF_CHECK(::getrandom(random.data(), sizeof random, 0) == sizeof random);
  return hexOf(random[0]) + hexOf(random[1]);
}

std::vector<SshHostCommand> sshCommands(const cluster::JobSpec& job) {
  std::vector<SshHostCommand> commands;
  for (const std::string& host : inOrder(hostsOfTasks(job)))
    commands.push_back({host, commandOf(job, host)});
  return commands;
}

std::shared_ptr<const AgentProgram> readAgent(const std::filesystem::path& file) {
  constexpr uint64_t kAgentBytesMax = uint64_t{1} << 30;
  AgentProgram agent{readFile(file, kAgentBytesMax), {}};
  Sha256 sha256;
  sha256.update(agent.bytes);
  agent.digest = sha256.finish();
  return std::make_shared<const AgentProgram>(std::move(agent));
}

std::function<Error(const ExitStatus&, std::string_view)> explainEnd(
    const cluster::LaunchSpec& launch, const std::string& host) {
  return [host, launch](const ExitStatus& status, std::string_view said) {
    const cluster::SshSpec& ssh = launch.sshOf(host);
    if (launch.via == Via::kSlurm) return srunError(host, agentIn(ssh), status, said);
    const auto before_agent =
        launch.copy.programs ? bootstrapError(host, launch.copy.dir, status, said) : std::nullopt;
    return before_agent ? *before_agent : sshError(host, ssh, status, said);
  };
}

void throwIfAny(const std::vector<HostFailure>& failures) {
  if (failures.empty()) return;
  std::string text;
  for (size_t i = 0; i < failures.size() && i < kHostsShown; ++i)
    text += (i == 0 ? "" : "\n  ") + failures[i].error.message();
  if (failures.size() > kHostsShown)
    text += "\n  and " + std::to_string(failures.size() - kHostsShown) + " others";
  throw yaml::ErrorAt(failures.front().error.code(), failures.front().mark, text);
}

SshHosts::SshHosts(const cluster::JobSpec& job, const JobFiles& files, boost::asio::io_context& io,
                   const Clock& clock, TaskEvents& events)
    : job_(job),
      programs_(files.programs),
      io_(io),
      clock_(clock),
      events_(events),
      run_dir_(std::filesystem::absolute(job.run_dir).lexically_normal()),
      host_of_(hostsOfTasks(job)) {
  hosts_ = inOrder(host_of_);
  const std::vector<TaskId> tasks = allTasks(job.cluster);
  const std::string launch = newLaunch();
  for (const std::string& host : hosts_) {
    AgentLinkOptions options;
    options.host = host;
    options.command = commandOf(job, host);
    options.explain = explainEnd(job.launch, host);
    options.heartbeat_seconds = heartbeatSeconds(job);
    OpenOrder& open = options.open;
    open.job = job.job;
    open.launch = launch;
    open.run_dir = run_dir_;
    // Else a job that was cut short goes on from them.
    open.drops_snapshots = job.durability.kind != cluster::Durability::kSnapshot;
    options.on_file = [this, host](const FilePiece& piece) { host_files_->take(host, piece); };
    options.kept_files = [this] { return run_files_->eventSizes(); };
    options.on_fetched = [this, host](const FetchedReport& report) {
      onFetched(host, [&report](ModelFetch& model) { model.take(report); });
    };
    options.on_fetched_bytes = [this, host](std::string_view bytes) {
      onFetched(host, [bytes](ModelFetch& model) { model.take(bytes); });
    };
    open.reachable = job.cluster.mayBeReached();
    open.lease_seconds = leaseSeconds(job);
    open.files = files.texts;
    std::vector<TaskId> of_host;
    for (size_t task = 0; task < tasks.size(); ++task) {
      if (host_of_[task] != host) continue;
      open.tasks[tasks[task]] = job.cluster.tasks(tasks[task].job)[tasks[task].index];
      of_host.push_back(tasks[task]);
    }
    SentKeys& keys =
        keys_.try_emplace(host, job.cluster.keys, job.job, std::move(of_host)).first->second;
    open.files.merge(keys.read());
    orderJson(open);  // what can't be sent is refused before any host is asked
    links_[host] = std::make_unique<AgentLink>(io, clock, events, std::move(options));
  }
}

SshHosts::~SshHosts() {
  close();
}

AgentLink& SshHosts::linkOf(size_t task) const {
  return *links_.at(host_of_.at(task));
}

// Runs the loop, which others may stop.
void SshHosts::turn(Duration longest) {
  if (io_.stopped()) io_.restart();
  io_.run_one_for(longest);
  look();
}

void SshHosts::awaitAll(const Done& done) {
  while (!done()) turn(kHostsTurn);
}

// Each file gets its digest once, whoever needs it; the loop turns meanwhile.
std::map<std::string, HostCopies> SshHosts::findCopies(const Done& give_up) {
  const cluster::CopySpec& copy = job_.launch.copy;
  if (!copy.any()) return {};
  HostCopies all{nullptr, nullptr, copy.dir, copy.max_gib << 30};
  if (copy.programs) all.agent = readAgent(programs_.at("dtf-agent"));
  std::map<std::string, HostCopies> copies;
  std::map<std::string, std::shared_ptr<CopiedFiles>> known;  // most hosts need the same
  FileDigests digests;
  const std::vector<TaskId> tasks = allTasks(job_.cluster);
  for (const std::string& host : hosts_) {
    std::vector<TaskId> of_host;
    for (size_t task = 0; task < tasks.size(); ++task)
      if (host_of_[task] == host) of_host.push_back(tasks[task]);
    std::shared_ptr<CopiedFiles>& files = known[kindsOf(of_host)];
    if (!files) {
      files = std::make_shared<CopiedFiles>(filesFor(job_, programs_, of_host));
      checkFits(*files, job_);
      digests.add(*files);
    }
    copies[host] = all;
    if (!files->files.empty() || !files->folders.empty()) copies[host].files = files;
  }
  CopyReport report(clock_, [this](const std::string& text) { events_.onHostNews(text); });
  while (!give_up() && digests.step()) {
    report.digests(digests.done(), digests.bytes());
    turn(Duration{0});
  }
  return copies;
}

void SshHosts::connect(const Done& give_up) {
  const std::map<std::string, HostCopies> copies = findCopies(give_up);
  if (give_up()) return;
  for (const auto& [host, link] : links_) {
    const auto found = copies.find(host);
    link->connect(run_files_->mark(), found == copies.end() ? HostCopies() : found->second);
  }
}

void SshHosts::awaitHosts(const Done& give_up) {
  std::optional<TimePoint> failed;
  CopyReport report(clock_, [this](const std::string& text) { events_.onHostNews(text); });
  awaitAll([&] {
    if (give_up()) return true;
    bool all = true;
    CopyTotals totals;
    for (const auto& [host, link] : links_) {
      if (link->failure() && !failed) failed = clock_.now();
      all = all && (link->listens() || link->failure());
      totals.add(link->copied());
    }
    if (job_.launch.copy.any()) report.copies(totals, all && !failed);
    return all || (failed && clock_.now() > *failed + kMoreFailuresWithin);
  });
}

ChosenAddresses SshHosts::listen(const TaskSpecs& tasks, bool /*reachable*/,
                                 const std::function<bool()>& give_up) {
  DTF_CHECK(tasks.size() == host_of_.size());
  run_files_.emplace(run_dir_);
  host_files_.emplace(*run_files_, [this](const std::string& text) { events_.onHostTold(text); });
  connect(give_up);
  awaitHosts(give_up);
  throwFailures(tasks);
  if (!give_up()) warnOfOtherBuilds();
  ChosenAddresses chosen;
  for (const auto& [host, link] : links_)
    for (const auto& [id, port] : link->ports())
      chosen[id] = cluster::Address{tasks.at(id).address.host, port}.str();
  return chosen;
}

void SshHosts::throwFailures(const TaskSpecs& tasks) const {
  std::vector<HostFailure> failures;
  for (const std::string& host : hosts_) {
    const std::optional<Error>& failure = links_.at(host)->failure();
    if (!failure) continue;
    const auto there = std::find_if(tasks.begin(), tasks.end(), [&host](const auto& task) {
      return task.second.address.host == host;
    });
    DTF_CHECK_MSG(there != tasks.end(), host);
    failures.push_back({*failure, there->second.mark});
  }
  throwIfAny(failures);
}

// They say the same version, and may not understand each other all the same.
void SshHosts::warnOfOtherBuilds() const {
  const std::string& first = hosts_.front();
  for (const std::string& host : hosts_)
    if (links_.at(host)->programs() != links_.at(first)->programs())
      return events_.onHostTold("warning: " + host +
                                " has another build of dtf " DTF_VERSION " than " + first +
                                ": install the same programs on all hosts");
}

void SshHosts::start(size_t task, const TaskCommand& command) {
  linkOf(task).start(task, command);
}

void SshHosts::signal(size_t task, int signal) {
  linkOf(task).signal(task, signal);
}

void SshHosts::release(size_t task, TaskId id) {
  linkOf(task).release(task, id);
}

bool SshHosts::suspended(size_t task) const {
  return linkOf(task).suspended(task);
}

void SshHosts::look() {
  for (const auto& [host, link] : links_) link->look();
  sendRenewedKeys();
}

// The tasks read them for their next connections, as on one host.
void SshHosts::sendRenewedKeys() {
  for (auto& [host, keys] : keys_) {
    const auto link = links_.find(host);
    if (link == links_.end()) return;  // all are closed
    try {
      const SentFiles renewed = keys.renewed(clock_.now());
      if (renewed.empty()) continue;
      link->second->replaceFiles(renewed);
      events_.onHostTold("the renewed keys of its tasks were sent to " + host);
    } catch (const Error& error) {
      events_.onHostTold("warning: renewed keys are not sent to " + host + ": " + error.message());
    }
  }
}

ModelFetchOptions SshHosts::modelOptions(uint64_t step) const {
  ModelFetchOptions options;
  options.run_dir = run_dir_;
  options.step = step;
  const std::vector<TaskId> tasks = allTasks(job_.cluster);
  for (size_t task = 0; task < tasks.size(); ++task) {
    if (tasks[task] == kChief) options.chief = host_of_[task];
    if (job_.cluster.shardHosts().shardOf(tasks[task])) options.ps.push_back(host_of_[task]);
  }
  if (job_.train) options.kernels = job_.train->kernels == cluster::KernelRule::kTimed;
  if (job_.train && job_.train->checkpoint)
    options.keep = {job_.train->checkpoint->keep, job_.train->checkpoint->keep_every_hours};
  return options;
}

// A disk that is full here is no fault of the host, whose connection goes on; an answer in another
// host's name is. What still comes of a file that is given up is not looked at.
void SshHosts::onFetched(const std::string& host, const std::function<void(ModelFetch&)>& take) {
  if (!model_ || model_failure_) return;
  if (!model_->awaits(host)) throw Error(ErrorCode::kBadData, "a file that was not requested");
  try {
    take(*model_);
  } catch (const Error& error) {
    model_failure_ = error;
  }
}

bool SshHosts::fetchModel(uint64_t step, const Done& give_up) {
  DTF_CHECK(!model_ && !closed_);
  model_ =
      std::make_unique<ModelFetch>(realFileSystem(), clock_, modelOptions(step),
                                   [this](const std::string& text) { events_.onHostNews(text); });
  try {
    awaitModel(give_up);
  } catch (const Error&) {
    model_.reset();  // nothing more may come of it: it is told that the model is not here
    throw;
  }
  return true;
}

void SshHosts::awaitModel(const Done& give_up) {
  std::string host;  // that is asked
  awaitAll([&] {
    if (model_failure_) throw *model_failure_;
    if (give_up()) throw Error(ErrorCode::kUnavailable, "it was interrupted");
    const std::optional<ModelAsk> ask = model_->next();
    if (ask) host = ask->host;
    if (model_->done()) return true;
    if (!links_.at(host)->listens())
      throw Error(ErrorCode::kUnavailable, "the connection to " + host + " is lost");
    if (ask) links_.at(host)->fetch(ask->name);
    model_->look();
    return false;
  });
}

// Whose agent does not answer will end by itself: its connection is closed.
void SshHosts::close() {
  if (std::exchange(closed_, true)) return;
  for (const auto& [host, link] : links_) link->askToEnd(drops_snapshots_);
  const TimePoint deadline = clock_.now() + kHostsEndWithin;
  awaitAll([&] {
    return clock_.now() >= deadline ||
           std::all_of(links_.begin(), links_.end(),
                       [](const auto& link) { return link.second->ended(); });
  });
  links_.clear();
}

}  // namespace dtf::launcher
