#include "common/cluster/spec.h"

#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/cluster/address.h"
#include "common/model/numbers.h"

namespace dtf::cluster {

std::vector<std::string> devicesOf(const TaskSpec& task) {
  return task.devices.empty() ? std::vector<std::string>{"cpu:0"} : task.devices;
}

ShardHosts ClusterSpec::shardHosts() const {
  const auto count = [](const std::vector<TaskSpec>& tasks) {
    return static_cast<uint32_t>(tasks.size());
  };
  return {count(ps), ps.empty() || hybrid ? count(worker) : 0, ps.empty() ? leader : 0};
}

std::vector<TaskSpec> ClusterSpec::hosts() const {
  std::vector<TaskSpec> hosts;
  for (uint32_t shard = 0; shard < shardHosts().size(); ++shard) hosts.push_back(host(shard));
  return hosts;
}

int workersBeside(const ClusterSpec& cluster, uint32_t index) {
  DTF_CHECK(index < cluster.worker.size());
  const std::string host = hostKey(cluster.worker[index].address.host);
  return static_cast<int>(
      std::count_if(cluster.worker.begin(), cluster.worker.end(),
                    [&](const TaskSpec& worker) { return hostKey(worker.address.host) == host; }));
}

std::vector<uint32_t> hostLeaders(const ClusterSpec& cluster) {
  std::map<std::string, uint32_t> first;
  std::vector<uint32_t> leaders;
  for (const TaskSpec& worker : cluster.worker) {
    const auto rank = static_cast<uint32_t>(leaders.size());
    const std::string& host = worker.address.host;  // empty: of a file with a mistake there
    leaders.push_back(host.empty() ? rank : first.try_emplace(hostKey(host), rank).first->second);
  }
  return leaders;
}

int tasksBeside(const ClusterSpec& cluster, TaskId task) {
  DTF_CHECK(task.index < cluster.tasks(task.job).size());
  const std::string host = hostKey(cluster.tasks(task.job)[task.index].address.host);
  int beside = 0;
  for (const JobKind job : {JobKind::kPs, JobKind::kWorker})
    for (const TaskSpec& other : cluster.tasks(job)) beside += hostKey(other.address.host) == host;
  return beside;
}

std::optional<uint16_t> metricsPort(const JobSpec& job, TaskId task) {
  if (!job.metrics) return std::nullopt;
  if (job.metrics->port == 0) return uint16_t{0};
  const std::string host = hostKey(job.cluster.tasks(task.job).at(task.index).address.host);
  uint32_t port = job.metrics->port;
  for (const JobKind kind : {JobKind::kPs, JobKind::kWorker}) {
    const std::vector<TaskSpec>& tasks = job.cluster.tasks(kind);
    for (uint32_t i = 0; i < tasks.size(); ++i) {
      if (task == TaskId{kind, i}) return static_cast<uint16_t>(port);
      if (hostKey(tasks[i].address.host) == host) ++port;
    }
  }
  DTF_CHECK_MSG(false, task.name());
}

std::string metricsUrl(const JobSpec& job, TaskId task) {
  const std::optional<uint16_t> port = metricsPort(job, task);
  if (!port || *port == 0) return {};
  Address address = job.cluster.tasks(task.job).at(task.index).address;
  address.port = *port;
  return (job.cluster.keys.empty() ? "http://" : "https://") + address.str();
}

int computeThreads(const ClusterSpec& cluster, uint32_t index, int cores) {
  DTF_CHECK(cores >= 1 && index < cluster.worker.size());
  const int said = cluster.worker[index].threads;
  if (said != 0) return said;
  const int workers = workersBeside(cluster, index);
  DTF_CHECK(workers >= 1);  // itself
  return std::clamp(cores / workers, 1, kThreadsMax);
}

const SshSpec& LaunchSpec::sshOf(const std::string& host) const {
  const auto found = hosts.find(hostKey(host));
  return found == hosts.end() ? ssh : found->second;
}

std::string DurabilitySpec::str() const {
  DTF_CHECK((kind == Durability::kSnapshot) == (snapshot_every_steps > 0));
  switch (kind) {
    case Durability::kCheckpoint:
      return "checkpoint";
    case Durability::kSnapshot:
      return "snapshot: {every_steps: " + std::to_string(snapshot_every_steps) + "}";
    case Durability::kReplica:
      return "replica";
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(kind)));
}

DType DatasetSpec::featuresType() const {
  switch (format) {
    case Format::kDigits:
    case Format::kIdx:
    case Format::kCifar10:
    case Format::kCifar100:
    case Format::kImages:
      return DType::kUInt8;
    case Format::kCsv:
      return csv.no_features || csv.whole_features ? DType::kInt32 : DType::kFloat32;
    case Format::kSynthetic:
    case Format::kLibsvm:
      return DType::kFloat32;
    case Format::kNpy:
    case Format::kNpz:
      return npy.featuresType();
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(format)));
}

DType DatasetSpec::labelsType() const {
  switch (format) {
    case Format::kDigits:
    case Format::kIdx:
    case Format::kCifar10:
    case Format::kCifar100:
      return DType::kUInt8;
    case Format::kSynthetic:
      return problem == Problem::kFriedman || problem == Problem::kTags ? DType::kFloat32
                                                                        : DType::kInt32;
    case Format::kImages:
      return DType::kInt32;
    case Format::kLibsvm:
      return libsvm.are_targets ? DType::kFloat32 : DType::kInt32;
    case Format::kCsv:
      return csv.targets.empty() ? DType::kInt32 : DType::kFloat32;
    case Format::kNpy:
    case Format::kNpz:
      return npy.targets.path.empty() ? DType::kInt32 : DType::kFloat32;
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(format)));
}

model::CategoryInput CategoricalColumns::input() const {
  model::CategoryInput input{name, count()};
  if (hash_bucket_size > 0) {
    input.below = hash_bucket_size;
    input.meaning = "hash_bucket_size=" + std::to_string(hash_bucket_size);
  }
  if (!vocabulary_list.empty()) {
    Checksum words;
    for (const std::string& word : vocabulary_list) words.update(word.c_str(), word.size() + 1);
    input.below = static_cast<int64_t>(vocabulary_list.size()) + num_oov_buckets;
    input.meaning = "vocabulary_list of " + std::to_string(vocabulary_list.size()) + ": " +
                    hexOf(words.value());
    if (num_oov_buckets > 0) input.meaning += " num_oov_buckets=" + std::to_string(num_oov_buckets);
  }
  if (!buckets.empty()) {
    input.below = static_cast<int64_t>(buckets.size()) + 1 + num_oov_buckets;
    input.meaning = "buckets=" + model::numbersText(buckets);
    if (num_oov_buckets > 0) input.meaning += " num_oov_buckets=" + std::to_string(num_oov_buckets);
  }
  if (learned_max_size > 0) {
    input.below = learned_max_size + num_oov_buckets;
    input.meaning = "vocabulary from data max_size=" + std::to_string(learned_max_size) +
                    " min_count=" + std::to_string(learned_min_count) +
                    " num_oov_buckets=" + std::to_string(num_oov_buckets);
  }
  if (split != 0) {
    input.is_padded = true;
    input.below += firstNumber();
    input.meaning += " split=";
    input.meaning += split;
    input.meaning += " max_words=" + std::to_string(max_words);
  }
  return input;
}

bool CsvSpec::learns() const {
  return learns_classes ||
         std::ranges::any_of(numeric, [](const NumericColumn& each) { return each.learns(); }) ||
         std::ranges::any_of(
             categorical, [](const CategoricalColumns& each) { return each.learned_max_size > 0; });
}

const std::vector<std::string>& CsvSpec::classNames() const {
  return learns_classes && learned ? learned->class_names : class_names;
}

std::vector<model::CategoryInput> DatasetSpec::categories() const {
  if (format == Format::kSynthetic && problem == Problem::kClicks)
    return {{"item", 1, kClickItems}, {"user", 1, kClickUsers}};
  std::vector<model::CategoryInput> inputs;
  for (const CategoricalColumns& columns : csv.categorical) inputs.push_back(columns.input());
  for (const CategoricalArray& array : npy.categorical) inputs.push_back({array.name, array.count});
  return inputs;
}

uint64_t DatasetSpec::categoryBytes() const {
  uint64_t bytes = 0;
  const std::vector<model::CategoryInput> inputs = categories();
  for (size_t i = csv.no_features ? 1 : 0; i < inputs.size(); ++i)
    bytes += static_cast<uint64_t>(inputs[i].count) * sizeof(int32_t);
  return bytes;
}

std::string AugmentSpec::text() const {
  DTF_CHECK(crop_padding >= 0);
  if (!any()) return {};
  return std::string("flip_horizontal=") + (flip_horizontal ? "true" : "false") +
         " crop_padding=" + std::to_string(crop_padding);
}

bool ImagesSpec::setSize(const std::vector<int64_t>& input_shape) {
  const size_t rank = input_shape.size();
  if (rank != 2 && rank != 3) return false;
  const int64_t last = rank == 3 ? input_shape[2] : 1;
  if (last != 1 && last != 3) return false;
  height = input_shape[0];
  width = input_shape[1];
  channels = last;
  DTF_CHECK(height > 0 && width > 0);
  return true;
}

DType NpySpec::featuresType() const {
  switch (features_as.value_or(FeaturesAs::kFloat32)) {
    case FeaturesAs::kFloat32:
      return DType::kFloat32;
    case FeaturesAs::kPixels:
      return DType::kUInt8;
    case FeaturesAs::kIndices:
      return DType::kInt32;
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(*features_as)));
}

}  // namespace dtf::cluster
