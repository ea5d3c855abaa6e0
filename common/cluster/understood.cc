#include "common/cluster/understood.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/yaml/yaml_text.h"

namespace dtf::cluster {

using yaml::YamlNode;

namespace {

YamlNode nodeOf(YamlNode::Kind kind, std::string_view key, std::string text = {}) {
  YamlNode node;
  node.kind = kind;
  node.key = key;
  node.text = std::move(text);
  return node;
}

// Sets a value at a path, as "train.data.seed", that has none; does nothing below a scalar or list.
void fill(YamlNode& root, std::string_view path, std::string value) {
  YamlNode* map = &root;
  const std::vector<std::string> keys = split(std::string(path), '.');
  for (const std::string& key : keys) {
    if (map->isNull()) map->kind = YamlNode::Kind::kMap;
    if (!map->isMap()) return;
    YamlNode* child = map->find(key);
    if (child == nullptr) {
      map->children.push_back(nodeOf(YamlNode::Kind::kNull, key));
      child = &map->children.back();
    }
    map = child;
  }
  if (map->isNull()) *map = nodeOf(YamlNode::Kind::kScalar, keys.back(), std::move(value));
}

std::string textOf(double value) {
  return fmt::format("{:g}", value);
}
std::string textOf(bool value) {
  return value ? "true" : "false";
}

void fillTrain(YamlNode& root, const TrainSpec& train) {
  if (train.epochs == 0) fill(root, "train.steps", std::to_string(train.steps));
  fill(root, "train.data.batch_size", std::to_string(train.data.batch_size));
  fill(root, "train.data.seed", std::to_string(train.data.seed));
  fill(root, "train.optimizer", std::string(optimizerName(train.optimizer.kind)));
  if (!train.checkpoint) return;
  const CheckpointSpec& checkpoint = *train.checkpoint;
  if (checkpoint.every_seconds > 0)
    fill(root, "train.checkpoint.every_seconds", textOf(checkpoint.every_seconds));
  fill(root, "train.checkpoint.keep", std::to_string(checkpoint.keep));
  fill(root, "train.checkpoint.keep_every_hours", textOf(checkpoint.keep_every_hours));
  fill(root, "train.checkpoint.gather", textOf(checkpoint.gather));
  fill(root, "train.checkpoint.stay", textOf(checkpoint.stay));
}

void fillTimeouts(YamlNode& root, const Timeouts& timeouts) {
  for (const auto& [key, value] : std::initializer_list<std::pair<std::string_view, double>>{
           {"timeouts.start_seconds", timeouts.start_seconds},
           {"timeouts.heartbeat_seconds", timeouts.heartbeat_seconds},
           {"timeouts.lease_seconds", timeouts.lease_seconds},
           {"timeouts.step_seconds", timeouts.step_seconds},
           {"timeouts.rejoin_seconds", timeouts.rejoin_seconds},
           {"timeouts.stop_seconds", timeouts.stop_seconds},
           {"timeouts.finish_seconds", timeouts.finish_seconds}})
    fill(root, key, textOf(value));
}

void dropSecrets(YamlNode& node) {
  for (YamlNode& child : node.children) {
    if (child.key != "env" || !child.isMap()) {
      dropSecrets(child);
      continue;
    }
    for (YamlNode& variable : child.children)
      variable = nodeOf(YamlNode::Kind::kScalar, variable.key, "not-kept");
  }
}

}  // namespace

std::string understoodText(YamlNode root, const JobSpec& job) {
  dropSecrets(root);
  fill(root, "job", job.job);
  fill(root, "run_dir", job.run_dir.string());
  if (job.train) fillTrain(root, *job.train);
  fillTimeouts(root, job.timeouts);
  return yaml::yamlText(root);
}

}  // namespace dtf::cluster
