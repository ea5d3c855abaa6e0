#include "common/wire/ps/job_reader.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/run_lock.h"
#include "common/cluster/cluster_yaml.h"
#include "common/net/tls_keys.h"

struct dtf_job_reader {
  dtf::cluster::JobSpec job;
  dtf::net::Credentials credentials;
  std::unique_ptr<dtf::wire::JobReader> reader;
  bool has_taken = false;
};

using dtf::api::guarded;

namespace {

constexpr double kTakeSeconds = 10;
constexpr double kTakeSecondsMax = 86400;
constexpr dtf::Duration kStatusPatience = std::chrono::seconds(2);

dtf::net::Credentials readerCredentials(const dtf::cluster::JobSpec& job, const char* keys) {
  std::filesystem::path folder = job.cluster.keys;
  if (keys != nullptr && *keys != 0) folder = keys;
  using dtf::net::Credentials;
  if (!folder.empty())
    return Credentials::ofKeys(std::make_shared<dtf::net::TlsKeys>(folder, "client", job.job));
  return job.cluster.insecure ? Credentials::insecure() : Credentials::ownUser();
}

// Returns the address of a task: of its last start, which the run's folder records, or of the
// file. A port `auto` is 0 until a start is recorded.
dtf::wire::ListeningTask listening(const dtf::cluster::JobSpec& job,
                                   const dtf::LaunchRecord& record, dtf::TaskId task) {
  dtf::cluster::Address address = job.cluster.task(task).address;
  for (const dtf::RecordedTask& known : record.tasks)
    if (known.name == task.name() && !known.address.empty())
      dtf::cluster::parseAddress(known.address, address);
  return {task, address};
}

// Returns the tasks that hold the parameters, by shard.
std::vector<dtf::wire::ListeningTask> hostsOf(const dtf::cluster::JobSpec& job) {
  const dtf::LaunchRecord record = dtf::lastLaunch(job.run_dir);
  std::vector<dtf::wire::ListeningTask> hosts;
  for (uint32_t shard = 0; shard < job.cluster.shardHosts().size(); ++shard) {
    hosts.push_back(listening(job, record, job.cluster.shardHosts().of(shard)));
    if (hosts.back().address.port == 0)
      throw dtf::Error(dtf::ErrorCode::kUnavailable,
                       hosts.back().task.name() +
                           " has the port `auto`, and there is no record of a start in " +
                           std::string(job.run_dir) + ": start the job first");
  }
  return hosts;
}

dtf::wire::JobReader& takenOf(dtf_job_reader& reader) {
  if (!reader.has_taken)
    throw dtf::Error(dtf::ErrorCode::kUsage,
                     "no version of the parameters is taken yet: call dtf_job_reader_take() first");
  return *reader.reader;
}

const std::vector<dtf::arena::VariableInfo>& variablesOf(const dtf_job_reader& reader) {
  static const std::vector<dtf::arena::VariableInfo> none;
  return reader.has_taken ? reader.reader->model().layout.variables : none;
}

}  // namespace

dtf_code dtf_job_reader_open(const char* cluster_file, const char* keys, dtf_job_reader** made) {
  return guarded([&] {
    dtf::api::quietLog();
    const dtf::cluster::JobSpec job = dtf::cluster::loadCluster(cluster_file, {});
    if (job.cluster.isOneProcess())
      throw dtf::Error(dtf::ErrorCode::kBadConfig,
                       std::string(cluster_file) +
                           ": the job runs in one process, which listens nowhere; read its "
                           "checkpoints (dtf_model_load), or give it a ps or a second worker");
    // Only the run's folder tells which placement was chosen, and so which tasks hold shards.
    if (job.train && job.train->placement.strategy == dtf::cluster::PlacementSpec::Strategy::kAuto)
      throw dtf::Error(dtf::ErrorCode::kBadConfig,
                       std::string(cluster_file) +
                           ": `placement: auto` leaves the tasks that hold the parameters open; "
                           "name the file with the strategy that dtf-launch printed");
    auto reader = std::make_unique<dtf_job_reader>();
    reader->credentials = readerCredentials(job, keys);
    reader->job = job;
    reader->reader = std::make_unique<dtf::wire::JobReader>(
        job.job, [job] { return hostsOf(job); }, reader->credentials);
    *made = reader.release();
  });
}

void dtf_job_reader_free(dtf_job_reader* reader) {
  delete reader;
}

dtf_code dtf_job_reader_take(dtf_job_reader* reader, double seconds, uint64_t* step) {
  return guarded([&] {
    if (!(seconds >= 0 && seconds <= kTakeSecondsMax))
      throw dtf::Error(dtf::ErrorCode::kUsage,
                       "the seconds to wait for a version are 0, for 10, to 86400");
    reader->has_taken = false;
    const dtf::wire::TakenVersion taken =
        reader->reader->take(dtf::fromSeconds(seconds == 0 ? kTakeSeconds : seconds));
    reader->has_taken = true;
    if (step != nullptr) *step = taken.step;
  });
}

size_t dtf_job_reader_count(const dtf_job_reader* reader) {
  return variablesOf(*reader).size();
}

const char* dtf_job_reader_variable(const dtf_job_reader* reader, size_t index) {
  const auto& variables = variablesOf(*reader);
  return index < variables.size() ? variables[index].name.c_str() : nullptr;
}

dtf_code dtf_job_reader_read(dtf_job_reader* reader, const char* name, dtf_tensor** value) {
  return guarded([&] {
    dtf::wire::JobReader& taken = takenOf(*reader);
    const auto& variables = taken.model().layout.variables;
    const auto found = std::find_if(variables.begin(), variables.end(),
                                    [&](const auto& variable) { return variable.name == name; });
    if (found == variables.end()) {
      std::string known;
      for (const auto& variable : variables) known += (known.empty() ? "" : ", ") + variable.name;
      throw dtf::Error(dtf::ErrorCode::kBadConfig,
                       "the job has no variable '" + std::string(name) + "'; it has " + known);
    }
    DTF_CHECK(value != nullptr);
    std::vector<float> values;
    taken.read(static_cast<uint32_t>(found - variables.begin()), values);
    auto tensor =
        std::make_unique<dtf_tensor>(dtf_tensor{dtf::Tensor(dtf::DType::kFloat32, found->shape)});
    std::copy(values.begin(), values.end(), tensor->tensor.as<float>().begin());
    *value = tensor.release();
  });
}

dtf_code dtf_job_reader_status(dtf_job_reader* reader, char* json, size_t room, size_t* bytes) {
  return guarded([&] {
    DTF_CHECK(reader->reader != nullptr);
    const dtf::LaunchRecord record = dtf::lastLaunch(reader->job.run_dir);
    std::vector<dtf::wire::ListeningTask> tasks;
    for (uint32_t i = 0; i < reader->job.cluster.ps.size(); ++i)
      tasks.push_back(listening(reader->job, record, {dtf::JobKind::kPs, i}));
    for (uint32_t i = 0; i < reader->job.cluster.worker.size(); ++i)
      tasks.push_back(listening(reader->job, record, {dtf::JobKind::kWorker, i}));
    const auto answers = dtf::wire::askStatus(tasks, kStatusPatience, reader->credentials);
    DTF_CHECK(answers.size() == tasks.size());
    std::string text;
    for (size_t i = 0; i < answers.size(); ++i)
      text += (i == 0 ? "{\"" : ",\"") + tasks[i].task.name() + "\":" + answers[i].value_or("null");
    text += "}";
    if (bytes != nullptr) *bytes = text.size() + 1;
    if (json != nullptr) std::memcpy(json, text.c_str(), std::min(room, text.size() + 1));
  });
}
