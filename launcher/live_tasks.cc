#include "launcher/live_tasks.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "common/base/process_identity.h"
#include "common/base/wall_time.h"
#include "common/cluster/address.h"
#include "common/wire/status_question.h"
#include "launcher/json_fields.h"
#include "launcher/launch_plan.h"
#include "launcher/live_status.h"
#include "launcher/progress.h"

namespace dtf::launcher {

namespace {

constexpr Duration kAnswerPatience = std::chrono::seconds(1);

// Of "worker/2".
std::optional<TaskId> taskNamed(const std::string& name) {
  for (const JobKind job : {JobKind::kPs, JobKind::kWorker}) {
    const std::string begin = std::string(jobName(job)) + "/";
    if (!name.starts_with(begin)) continue;
    TaskId id{job, 0};
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + begin.size(), end, id.index);
    if (read.ec == std::errc() && read.ptr == end) return id;
  }
  return std::nullopt;
}

void nameProcess(const RecordedTask& known, const LaunchRecord& record, LiveTask& task) {
  task.pid = known.pid;
  task.start_ticks = known.start_ticks;
  task.host = otherHost(record.identity);
}

}  // namespace

std::vector<LiveTask> askTasks(const cluster::ClusterSpec& cluster, const LaunchRecord& record,
                               const net::Credentials& credentials) {
  std::vector<LiveTask> tasks;
  std::vector<wire::ListeningTask> listening;
  std::vector<size_t> asked;  // by place in `listening`: which of `tasks`
  for (const TaskId id : allTasks(cluster)) {
    LiveTask task{id.name(), 0, nullptr};
    cluster::Address address = cluster.tasks(id.job)[id.index].address;
    for (const RecordedTask& known : record.tasks) {
      if (known.name != task.name) continue;
      nameProcess(known, record, task);
      if (!known.address.empty()) cluster::parseAddress(known.address, address);
    }
    if (address.port != 0) {
      asked.push_back(tasks.size());
      listening.push_back({id, address});
    }
    tasks.push_back(std::move(task));
  }
  for (const RecordedTask& known : record.tasks) {
    const bool is_listed = std::any_of(tasks.begin(), tasks.end(), [&known](const LiveTask& task) {
      return task.name == known.name;
    });
    if (is_listed) continue;
    const std::optional<TaskId> id = taskNamed(known.name);
    cluster::Address address;
    if (id && cluster::parseAddress(known.address, address).empty()) {
      asked.push_back(tasks.size());
      listening.push_back({*id, address});
    }
    tasks.push_back({known.name, 0, nullptr});
    nameProcess(known, record, tasks.back());
  }
  const auto answers = wire::askStatus(listening, kAnswerPatience, credentials);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) continue;
    Json answer = Json::parseOrNull(*answers[i]);
    if (answer.isObject()) tasks[asked[i]].answer = std::move(answer);
  }
  return tasks;
}

std::vector<LiveTask> askUnknownRun(const cluster::JobSpec& job,
                                    const net::Credentials& credentials) {
  std::vector<LiveTask> tasks = askTasks(job.cluster, {}, credentials);
  const auto answers = [&job](const LiveTask& task) {
    return textOf(task.answer, "job") == job.job && textOf(task.answer, "task") == task.name;
  };
  if (std::none_of(tasks.begin(), tasks.end(), answers)) return {};
  for (LiveTask& task : tasks)
    if (!answers(task)) task.answer = nullptr;
  return tasks;
}

std::optional<StragglerNotice> stragglerNow(const cluster::ClusterSpec& cluster, const Json& live,
                                            const std::vector<LiveTask>& tasks) {
  const std::string first = cluster.shardHosts().of(0).name();
  const auto host = std::ranges::find(tasks, first, &LiveTask::name);
  return stragglerOf(host != tasks.end() && !host->answer.isNull() ? host->answer : live);
}

Json progressOf(const std::vector<LiveTask>& tasks) {
  LiveStatus status;
  TasksUp ps, worker;
  for (const LiveTask& task : tasks) {
    const bool is_worker = task.name.starts_with(jobName(JobKind::kWorker));
    TasksUp& up = is_worker ? worker : ps;
    ++up.total;
    if (task.answer.isNull()) continue;
    ++up.up;
    const uint64_t step = countOf(task.answer, "global_step").value_or(0);
    if (!is_worker || step <= (status.progress ? status.progress->step : 0)) continue;
    status.progress = {step,
                       countOf(task.answer, "steps").value_or(0),
                       numberOf(task.answer, "loss"),
                       numberOf(task.answer, "examples_per_second"),
                       std::nullopt,
                       stragglerOf(task.answer)};
    status.steps_per_second = numberOf(task.answer, "steps_per_second");
  }
  if (!status.progress) return nullptr;
  const ProgressNotice& progress = *status.progress;
  if (status.steps_per_second.value_or(0) > 0 && progress.steps >= progress.step)
    status.seconds_left =
        static_cast<double>(progress.steps - progress.step) / *status.steps_per_second;
  status.line = progressLine({progress, ps, worker, status.seconds_left, ""});
  status.time = wallTimeText();
  return statusJson(status);
}

}  // namespace dtf::launcher
