#include "launcher/local_host.h"

#include <poll.h>

#include <csignal>
#include <utility>

#include "common/base/check.h"
#include "launcher/process_state.h"

namespace dtf::launcher {

namespace {

// From SIGKILL to the end of a process that has much memory to give back.
constexpr Duration kEndWithin = std::chrono::seconds(2);

void awaitEnd(int exited_fd) {
  pollfd watched{exited_fd, POLLIN, 0};
  ::poll(
      &watched, 1,
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kEndWithin).count()));
}

}  // namespace

LocalHost::LocalHost(boost::asio::io_context& io, const Clock& clock, TaskEvents& events)
    : io_(io), events_(events), memory_kills_(clock) {}

LocalHost::~LocalHost() {
  close();
}

ChosenAddresses LocalHost::listen(const TaskSpecs& tasks, bool reachable,
                                  const std::function<bool()>& /*give_up*/) {
  sockets_ = ListenSockets::open(tasks, reachable);
  return sockets_.chosen();
}

void LocalHost::start(size_t task, const TaskCommand& command) {
  DTF_CHECK_MSG(!running_.contains(task), command.id.name());
  Running running;
  try {
    running.process = spawner_.spawn(command, sockets_.copyFor(command.id));
  } catch (const Error& error) {
    return events_.onStartFailed(task, error);
  }
  guard_.add(running.process.pid);
  events_.onStarted(task, running.process.pid);
  running.notices = std::make_unique<PipeReader>(
      io_, std::move(running.process.notify),
      [this, task](std::string_view bytes) { events_.onNotices(task, bytes); });
  running.output = std::make_unique<PipeReader>(
      io_, std::move(running.process.output),
      [this, task](std::string_view bytes) { events_.onOutput(task, bytes); });
  running.exited = std::make_unique<FdWatch>(io_, std::move(running.process.exited),
                                             [this, task] { onExit(task); });
  running_.emplace(task, std::move(running));
}

void LocalHost::onExit(size_t task) {
  const auto found = running_.find(task);
  DTF_CHECK(found != running_.end() && found->second.process.pid > 1);
  // The callback that runs belongs to it.
  const Running ended = std::move(found->second);
  running_.erase(found);
  ended.exited->close();
  guard_.remove(ended.process.pid);
  ExitStatus status = spawner_.reap(ended.process.pid);
  if (!ended.killed) status = memory_kills_.explained(status);
  ended.notices->drain();  // its last words come before its end
  ended.output->drain();
  events_.onExited(task, status);
}

void LocalHost::signal(size_t task, int signal) {
  const auto found = running_.find(task);
  if (found == running_.end()) return;
  if (signal == SIGKILL) found->second.killed = true;
  spawner_.signal(found->second.process.pid, signal);
}

void LocalHost::release(size_t /*task*/, TaskId id) {
  sockets_.drop(id);
}

bool LocalHost::suspended(size_t task) const {
  const auto found = running_.find(task);
  return found != running_.end() && isSuspended(found->second.process.pid);
}

void LocalHost::look() {
  memory_kills_.look();
}

// What does not end by SIGKILL is the kernel's: the guard and the parent-death signal are left.
void LocalHost::close() {
  for (const auto& [task, running] : running_) spawner_.signal(running.process.pid, SIGKILL);
  for (const auto& [task, running] : running_) {
    awaitEnd(running.exited->fd());
    running.exited->close();
  }
  running_.clear();
  sockets_ = {};
}

}  // namespace dtf::launcher
