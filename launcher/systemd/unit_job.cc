#include "launcher/systemd/unit_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/yaml/error_at.h"
#include "launcher/log_fanin.h"
#include "launcher/ssh/ssh_hosts.h"
#include "launcher/systemd/unit_text.h"
#include "launcher/systemd/unit_verdict.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr Duration kAskTurn = std::chrono::milliseconds(10);
// Of a question that takes no longer than a look; ssh gives up a host after 10 s.
constexpr Duration kAnswerWithin = std::chrono::seconds(25);
// Of one for which systemctl may take its minute, more than once.
constexpr Duration kDoneWithin = std::chrono::seconds(200);
constexpr auto kLockAgain = std::chrono::milliseconds(50);

}  // namespace

UnitJob::UnitJob(const cluster::JobSpec& job, const fs::path& run_dir,
                 std::optional<UnitStart> start)
    : job_(job),
      launch_(newLaunch()),
      run_dir_(fs::absolute(run_dir).lexically_normal()),
      start_(std::move(start)),
      tasks_(allTasks(job.cluster)) {
  const std::vector<std::string> host_of = hostsOfTasks(job);
  std::vector<std::pair<std::string, std::vector<size_t>>> tasks_of;  // in order; "": here
  std::map<std::string, std::string> names;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    units_.push_back(unitName(job.job, tasks_[task]));
    const auto [name, is_new] = names.try_emplace(host_of[task]);
    if (is_new) name->second = isThisHost(host_of[task]) ? "" : host_of[task];
    const auto is_it = [&as = name->second](const auto& each) { return each.first == as; };
    auto found = std::find_if(tasks_of.begin(), tasks_of.end(), is_it);
    if (found == tasks_of.end()) found = tasks_of.insert(found, {name->second, {}});
    found->second.push_back(task);
  }
  for (auto& [name, tasks] : tasks_of) {
    if (!name.empty()) far_.push_back(hosts_.size());
    hosts_.push_back(makeHost(name, std::move(tasks)));
  }
}

UnitJob::Host UnitJob::makeHost(const std::string& name, std::vector<size_t> tasks) {
  DTF_CHECK(!tasks.empty());
  MeetQuestion meet{job_.job, launch_,           run_dir_, start_ ? start_->folder : run_dir_,
                    {},       start_.has_value()};
  std::vector<TaskId> ids;
  for (const size_t task : tasks) {
    meet.units.push_back(units_[task]);
    ids.push_back(tasks_[task]);
  }
  const TaskId first = ids.front();
  const yaml::Mark mark = job_.cluster.tasks(first.job)[first.index].mark;
  const fs::path keys = name.empty() ? fs::path() : job_.cluster.keys;
  Host host{nullptr, nullptr, std::move(tasks), mark,
            UnitKeys(SentKeys(keys, job_.job, std::move(ids)), !start_)};
  if (name.empty()) {
    host.host = std::make_unique<LocalUnitHost>(
        std::move(meet), start_ ? start_->find_binaries : std::function<Binaries()>());
    return host;
  }
  AgentLinkOptions link;
  link.host = name;
  for (SshHostCommand& each : sshCommands(job_))
    if (each.host == name) link.command = std::move(each.argv);
  link.explain = explainEnd(job_.launch, name);
  auto far = std::make_unique<FarUnitHost>(std::move(meet), std::move(link), io_, clock_,
                                           [this, name](const FilePiece& piece) {
                                             if (files_) files_->take(name, piece);
                                           });
  host.far = far.get();
  host.host = std::move(far);
  return host;
}

std::vector<UnitJob::Part> UnitJob::parts() const {
  std::vector<Part> parts;
  for (const Host& host : hosts_)
    if (!host.is_dropped) parts.push_back({host.host.get(), host.tasks});
  return parts;
}

void UnitJob::turn() {
  if (io_.stopped()) io_.restart();
  io_.run_one_for(kAskTurn);
  // One that nobody waits for any more needs its signs of life all the same.
  for (const size_t i : far_) hosts_[i].far->keepUp();
}

bool UnitJob::hasLock(const Host& host) const {
  return host.far == nullptr ||
         (host.far->connection() != 0 && host.far->connection() == host.locked_connection);
}

// Another dtf-launch may have it where the connection was lost, though there is another one by now.
void UnitJob::requireLock() const {
  for (const Host& host : hosts_)
    if (is_locked_ && !host.is_dropped && !hasLock(host))
      throw Error(ErrorCode::kUnavailable,
                  host.host->name() + ": the connection was lost meanwhile: try again");
}

// Of those that are waited for.
void UnitJob::collect(Answers& answers, std::vector<bool>& waits) {
  DTF_CHECK(waits.size() == hosts_.size() && answers.each.size() == hosts_.size());
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (!waits[i]) continue;
    try {
      answers.each[i] = hosts_[i].host->answered();
    } catch (const Error& error) {
      const bool is_far = hosts_[i].far != nullptr;
      // What an error of this host says may have a place in a file.
      if (!is_far) answers.of_this_host = std::current_exception();
      answers.errors.push_back({i, error, is_far && hosts_[i].far->connection() == 0});
      waits[i] = false;
    }
    if (answers.each[i]) waits[i] = false;
  }
}

std::vector<bool> UnitJob::asked() const {
  std::vector<bool> asked;
  for (const Host& host : hosts_) asked.push_back(host.host->isAsked());
  return asked;
}

UnitJob::Answers UnitJob::ask(const QuestionOf& question_of, Duration within) {
  Answers answers{std::vector<std::optional<UnitAnswer>>(hosts_.size()), {}, {}};
  std::vector<std::optional<UnitQuestion>> questions;
  for (Host& host : hosts_) {
    questions.push_back(host.is_dropped ? std::nullopt : question_of(host));
    // What can't be sent to one is asked of none.
    if (host.far != nullptr && questions.back()) questionJson(*questions.back());
  }
  std::vector<bool> waits;
  const auto waiting = [&waits] {
    return std::find(waits.begin(), waits.end(), true) != waits.end();
  };
  // A look may have left a question without its answer.
  Answers before = answers;
  for (const Host& host : hosts_)
    if (host.is_silent && host.far != nullptr) host.far->abandon();
  waits = asked();
  for (collect(before, waits); waiting(); collect(before, waits)) turn();
  for (size_t i = 0; i < hosts_.size(); ++i)
    if (questions[i]) hosts_[i].host->ask(*questions[i], within);
  waits = asked();
  for (collect(answers, waits); waiting(); collect(answers, waits)) turn();
  return answers;
}

void UnitJob::throwFirst(const Answers& answers) const {
  if (answers.of_this_host) std::rethrow_exception(answers.of_this_host);
  std::vector<HostFailure> failures;
  for (const Answers::Failure& failure : answers.errors)
    failures.push_back({failure.error, hosts_[failure.host].mark});
  throwIfAny(failures);
}

UnitJob::Answers UnitJob::mustAnswer(const QuestionOf& question_of, Duration within) {
  requireLock();
  Answers answers = ask(question_of, within);
  throwFirst(answers);
  return answers;
}

void UnitJob::meet() {
  mustAnswer([](Host&) { return LockQuestion{false}; }, kAnswerWithin);
}

std::vector<Error> UnitJob::meetReachable() {
  Answers answers = ask([](Host&) { return LockQuestion{false}; }, kAnswerWithin);
  std::vector<Error> lost;
  for (const Answers::Failure& failure : answers.errors)
    if (failure.is_lost) {
      hosts_[failure.host].is_dropped = true;
      lost.push_back(failure.error);
    }
  if (lost.size() == hosts_.size()) throwFirst(answers);
  std::erase_if(answers.errors, [](const Answers::Failure& each) { return each.is_lost; });
  throwFirst(answers);
  return lost;
}

int UnitJob::nextAttempt() const {
  int attempt = launcher::nextAttempt(run_dir_ / "logs");
  for (const Host& host : hosts_)
    if (!host.is_dropped) attempt = std::max(attempt, host.host->facts().attempt);
  return attempt;
}

// All or none: two that each have some of the hosts would wait for one another.
void UnitJob::lock() {
  const TimePoint deadline = clock_.now() + kLockedMax;
  for (;;) {
    const Answers answers = mustAnswer([](Host&) { return LockQuestion{true}; }, kAnswerWithin);
    // One without an answer was dropped.
    if (std::all_of(answers.each.begin(), answers.each.end(),
                    [](const auto& answer) { return !answer || answer->locked; })) {
      for (const size_t i : far_) hosts_[i].locked_connection = hosts_[i].far->connection();
      is_locked_ = true;
      return requireLock();
    }
    unlock();
    if (clock_.now() > deadline)
      throw Error(
          ErrorCode::kUnavailable,
          fmt::format("another dtf-launch has been starting or removing units of this user for "
                      "{:.0f} s\n  wait for it, or find its systemctl that hangs: ps -ef",
                      toSeconds(kLockedMax)));
    // Whoever else was refused because of this one asks again at another moment.
    const TimePoint again = clock_.now() + kLockAgain * (1 + ::getpid() % 4);
    while (clock_.now() < again) turn();
  }
}

void UnitJob::unlock() {
  is_locked_ = false;
  ask([](Host&) { return LockQuestion{false}; }, kAnswerWithin);
}

void UnitJob::checkOwn() {
  mustAnswer([this](Host&) { return OwnQuestion{run_dir_ / "logs"}; }, kAnswerWithin);
}

bool UnitJob::isOwn() {
  const Answers answers =
      ask([this](Host&) { return OwnQuestion{run_dir_ / "logs"}; }, kAnswerWithin);
  return std::all_of(answers.errors.begin(), answers.errors.end(),
                     [](const Answers::Failure& each) { return each.is_lost; });
}

void UnitJob::checkFree() {
  mustAnswer([](Host&) { return FreeQuestion{}; }, kAnswerWithin);
}

WriteQuestion UnitJob::writeQuestion(Host& host, const std::vector<UnitFile>& files, int attempt) {
  const bool keeps = job_.durability.kind == cluster::Durability::kSnapshot;
  WriteQuestion question{.reachable = job_.cluster.mayBeReached(), .keeps_snapshots = keeps};
  for (const size_t task : host.tasks) {
    const TaskId id = tasks_[task];
    question.files.push_back(files[task]);
    question.logs.push_back(logFileName(id, attempt));
    question.tasks[id] = job_.cluster.tasks(id.job)[id.index];
  }
  if (host.far == nullptr) return question;
  question.mark = files_ ? files_->mark() : "";
  question.sent = start_->files;
  question.sent.merge(host.keys.read());
  return question;
}

void UnitJob::start(const std::vector<UnitFile>& files, int attempt) {
  DTF_CHECK(files.size() == units_.size() && start_);
  requireLock();
  const Answers written =
      ask([&](Host& host) { return writeQuestion(host, files, attempt); }, kDoneWithin);
  try {
    throwFirst(written);
    control({"start", "--no-block"});
  } catch (const Error&) {
    // Where it was refused something else may run. The first error says more than those of this.
    const auto there = [&](const UnitQuestion& question) {
      return [&](Host& host) -> std::optional<UnitQuestion> {
        const bool is_written =
            written.each[static_cast<size_t>(&host - hosts_.data())].has_value();
        return is_written && hasLock(host) ? std::optional(question) : std::nullopt;
      };
    };
    ask(there(ControlQuestion{{"stop", "--no-block"}}), kDoneWithin);
    ask(there(RemoveQuestion{false, false}), kDoneWithin);
    throw;
  }
}

void UnitJob::control(const std::vector<std::string>& words) {
  mustAnswer([&words](Host&) { return ControlQuestion{words}; }, kDoneWithin);
}

std::vector<Error> UnitJob::errorsOf(const UnitQuestion& question) {
  requireLock();
  const Answers answers = ask([&question](Host&) { return question; }, kDoneWithin);
  std::vector<Error> errors;
  for (const Answers::Failure& failure : answers.errors) errors.push_back(failure.error);
  return errors;
}

std::vector<Error> UnitJob::stopReachable() {
  return errorsOf(ControlQuestion{{"stop", "--no-block"}});
}

std::vector<Error> UnitJob::killReachable() {
  return errorsOf(ControlQuestion{{"kill", "--signal=KILL"}});
}

void UnitJob::removeEnded(bool drops_snapshots) {
  std::vector<Error> errors;
  try {
    lock();
    if (!isAlive()) errors = errorsOf(RemoveQuestion{true, drops_snapshots});
  } catch (const Error& error) {
    errors.push_back(error);
  }
  for (const Error& error : errors)
    news_.push_back("warning: ended units were not removed on every host: " + error.message());
  unlock();
}

// When a unit ended is told as how long ago: clocks differ.
std::vector<UnitState> UnitJob::inOrder(const Answers& answers) const {
  std::vector<UnitState> states(units_.size());
  const uint64_t now = monotonicUsec();
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = hosts_[i];
    if (host.is_dropped) continue;  // nothing is known of them: inactive
    const std::vector<UnitState>& its = answers.each[i]->states;
    if (its.size() != host.tasks.size())
      throw Error(ErrorCode::kUnavailable,
                  host.host->name() + ": its answer lacks the state of some units");
    for (size_t task = 0; task < its.size(); ++task) {
      UnitState& state = states[host.tasks[task]] = its[task];
      if (state.ended_usec > 0) state.ended_usec = now - std::min(now, state.ended_usec);
    }
  }
  return states;
}

std::vector<UnitState> UnitJob::states() {
  return inOrder(mustAnswer([](Host&) { return StatesQuestion{}; }, kAnswerWithin));
}

bool UnitJob::isAlive() {
  return !allEnded(states());
}

StatesQuestion UnitJob::statesQuestion(Host& host) {
  StatesQuestion question;
  if (host.far == nullptr || !files_ || !files_->isMine()) return question;
  question.wants_files = true;
  question.mark = files_->mark();
  const uint64_t connection = host.far->connection();
  question.kept =
      files_->kept(host.host->name(), connection == 0 || connection != host.told_connection);
  return question;
}

std::vector<UnitState> UnitJob::look() {
  Answers answers{std::vector<std::optional<UnitAnswer>>(hosts_.size()), {}, {}};
  for (Host& host : hosts_) {
    if (host.is_dropped || host.host->isAsked()) continue;
    const StatesQuestion question = statesQuestion(host);
    host.host->ask(question, kAnswerWithin);
    if (question.wants_files) host.told_connection = host.far->connection();
  }
  std::vector<bool> waits = asked();
  const TimePoint deadline = clock_.now() + kLookWithin;
  const auto is_awaited = [&](size_t i) { return waits[i] && !hosts_[i].is_silent; };
  // What came since the last look, of those that nobody waits for, too.
  if (io_.stopped()) io_.restart();
  io_.poll();
  for (;;) {
    collect(answers, waits);
    bool any = false;
    for (size_t i = 0; i < hosts_.size(); ++i) any = any || is_awaited(i);
    if (!any || clock_.now() > deadline) break;
    turn();
  }
  std::string silent;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].is_dropped) continue;
    hosts_[i].is_silent = !answers.each[i];
    if (answers.each[i]) hosts_[i].has_more = answers.each[i]->has_more;
    if (waits[i]) silent = hosts_[i].host->name() + " has not answered yet";
  }
  if (!answers.errors.empty()) throw Error(answers.errors.front().error);
  if (!silent.empty()) throw Error(ErrorCode::kUnavailable, silent);
  return inOrder(answers);
}

void UnitJob::bringFiles(int attempt) {
  if (far_.empty()) return;
  files_.emplace(run_dir_, [this](const std::string& text) { news_.push_back(text); });
  for (const size_t i : far_) {
    std::vector<std::string> logs;
    bool has_chief = false;
    for (const size_t task : hosts_[i].tasks) {
      logs.push_back(logFileName(tasks_[task], attempt));
      has_chief = has_chief || tasks_[task] == kChief;
    }
    files_->expect(hosts_[i].host->name(), logs, has_chief);
  }
}

bool UnitJob::bringRest() {
  if (!files_) return true;
  look();
  return std::none_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.has_more; });
}

void UnitJob::sendRenewedKeys() {
  const TimePoint now = clock_.now();
  std::map<const Host*, SentFiles> due;
  for (const size_t i : far_) {
    Host& host = hosts_[i];
    try {
      if (SentFiles files = host.keys.due(now); !files.empty()) due[&host] = std::move(files);
    } catch (const Error& error) {
      news_.push_back("warning: renewed keys are not sent to " + host.host->name() + ": " +
                      error.message());
    }
  }
  if (due.empty()) return;
  const Answers answers = ask(
      [&due](Host& host) -> std::optional<UnitQuestion> {
        if (!due.contains(&host)) return std::nullopt;
        return ReplaceQuestion{due.at(&host)};
      },
      kAnswerWithin);
  for (const Answers::Failure& failure : answers.errors)
    if (hosts_[failure.host].keys.refused(now))
      news_.push_back("warning: renewed keys were refused, sending them again: " +
                      failure.error.message());
  for (const size_t i : far_) {
    if (!answers.each[i]) continue;
    hosts_[i].keys.taken();
    news_.push_back("the renewed keys of its tasks were sent to " + hosts_[i].host->name());
  }
}

std::vector<std::string> UnitJob::news() {
  return std::exchange(news_, {});
}

}  // namespace dtf::launcher
