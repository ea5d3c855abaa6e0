#include "common/cluster/cluster_yaml.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/cluster/override.h"
#include "common/cluster/read_cluster.h"
#include "common/cluster/read_train.h"
#include "common/cluster/schema.h"
#include "common/cluster/understood.h"
#include "common/yaml/expand_path.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

using yaml::expandPath;
using yaml::inQuotes;
using yaml::parseYamlFile;
using yaml::Place;
using yaml::Report;
using yaml::YamlNode;

namespace {

std::vector<Override> parseOverrides(std::span<const std::string> texts, Report& report) {
  std::vector<Override> changes;
  for (const std::string& text : texts)
    if (std::optional<Override> change = parseOverride(text, report))
      changes.push_back(std::move(*change));
  return changes;
}

bool isBelowTrain(const Override& change) {
  return change.path.size() > 1 && change.path[0] == "train";
}

bool looksLikeTrainFile(const YamlNode& root) {
  return root.find("model") != nullptr && root.find("cluster") == nullptr;
}

bool looksLikeClusterFile(const YamlNode& root) {
  return root.find("cluster") != nullptr && root.find("model") == nullptr;
}

// Replaces `train: FILE` by the content of the file. Returns false if it can't be read, which is
// reported.
bool includeTrain(YamlNode& root, Report& report) {
  YamlNode* train = root.find("train");
  if (train == nullptr || !train->isScalar() || train->text.empty()) return true;
  const std::string wrong = expandPath(train->text);
  if (!wrong.empty()) report.error(train->place, wrong);
  if (!wrong.empty()) return false;
  const std::filesystem::path path =
      (report.folderOf(train->place) / train->text).lexically_normal();
  std::optional<YamlNode> content = parseYamlFile(path, &train->place, report);
  if (!content) return false;
  if (looksLikeClusterFile(*content)) {
    report.error(train->place, inQuotes(path.string()) +
                                   " is a CLUSTER.yaml (it has 'cluster' and no 'model'): 'train' "
                                   "names a TRAIN.yaml");
    return false;
  }
  content->key = train->key;
  *train = std::move(*content);
  return true;
}

// Applies the overrides below `train` after the file that `train` names has been included.
JobSpec readJobWith(YamlNode root, std::span<const std::string> overrides, Report& report,
                    JobMarks* marks = nullptr) {
  const std::vector<Override> changes = parseOverrides(overrides, report);
  for (const Override& change : changes)
    if (!isBelowTrain(change)) applyOverride(root, change, report);
  const bool has_train = includeTrain(root, report);
  for (const Override& change : changes)
    if (isBelowTrain(change) && has_train) applyOverride(root, change, report);
  JobSpec job = readJob(root, has_train, report);
  report.throwIfAny();
  if (const YamlNode* keys = root.find("keys"); keys != nullptr && marks != nullptr)
    marks->keys = report.markOf(keys->place);
  DTF_CHECK(!job.cluster.worker.empty());
  DTF_CHECK(job.train.has_value() == (root.find("train") != nullptr));
  job.text = understoodText(std::move(root), job);
  return job;
}

YamlNode makeNode(YamlNode::Kind kind, std::string key, const Place& place) {
  YamlNode node;
  node.kind = kind;
  node.key = std::move(key);
  node.place = node.key_place = place;
  return node;
}

YamlNode makeText(std::string key, std::string text, const Place& place) {
  YamlNode node = makeNode(YamlNode::Kind::kScalar, std::move(key), place);
  node.text = std::move(text);
  node.quoted = true;
  return node;
}

// A TRAIN.yaml by itself is a job in one process.
YamlNode jobOfTrainFile(YamlNode train) {
  YamlNode job = makeNode(YamlNode::Kind::kMap, "", train.place);
  train.key = "train";
  job.children.push_back(std::move(train));
  return job;
}

YamlNode makeHosts(JobKind job, const std::string& hosts, Report& report) {
  const std::string name(jobName(job));
  const Place place{report.addFlag("--" + name + "-hosts " + hosts)};
  YamlNode list = makeNode(YamlNode::Kind::kSequence, name, place);
  for (const std::string& host : split(hosts, ','))
    list.children.push_back(makeText("", host, place));
  return list;
}

}  // namespace

bool namesCluster(const std::filesystem::path& file) {
  Report report;
  report.setTables(allTables());
  if (file.empty()) return true;
  const std::optional<YamlNode> root = parseYamlFile(file, nullptr, report);
  return !root || !report.empty() || !root->isMap() || root->find("cluster") != nullptr;
}

JobSpec loadCluster(const std::filesystem::path& file, std::span<const std::string> overrides) {
  Report report;
  return loadCluster(file, overrides, report);
}

JobSpec loadCluster(const std::filesystem::path& file, std::span<const std::string> overrides,
                    Report& report, JobMarks* marks) {
  DTF_CHECK(report.empty());
  report.setTables(allTables());
  if (file.empty()) throw Error(ErrorCode::kUsage, "the name of the cluster file is empty");
  std::optional<YamlNode> root = parseYamlFile(file, nullptr, report);
  if (!root || !report.empty()) report.throwIfAny();
  if (looksLikeTrainFile(*root)) root = jobOfTrainFile(std::move(*root));
  return readJobWith(std::move(*root), overrides, report, marks);
}

JobSpec loadClusterText(const std::filesystem::path& file, const std::string& text,
                        Report& report) {
  DTF_CHECK(report.empty());
  report.setTables(allTables());
  std::optional<YamlNode> root = yaml::parseYaml(text, report.addFile(file, text), report);
  report.throwIfAny();
  DTF_CHECK(root.has_value());
  return readJobWith(std::move(*root), {}, report);
}

JobSpec jobFromHosts(const std::optional<std::string>& ps_hosts, const std::string& worker_hosts,
                     const std::optional<std::filesystem::path>& train_file,
                     std::span<const std::string> overrides) {
  Report report;
  report.setTables(allTables());
  std::vector<YamlNode> tasks;
  if (ps_hosts) tasks.push_back(makeHosts(JobKind::kPs, *ps_hosts, report));
  tasks.push_back(makeHosts(JobKind::kWorker, worker_hosts, report));
  YamlNode cluster = makeNode(YamlNode::Kind::kMap, "cluster", tasks.front().place);
  YamlNode root = makeNode(YamlNode::Kind::kMap, "", tasks.front().place);
  cluster.children = std::move(tasks);
  root.children.push_back(std::move(cluster));
  if (train_file) {
    const Place place{report.addFlag("--train " + train_file->string())};
    root.children.push_back(makeText("train", train_file->string(), place));
  }
  return readJobWith(std::move(root), overrides, report);
}

}  // namespace dtf::cluster
