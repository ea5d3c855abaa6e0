#include "common/cluster/tf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/cluster/address.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::cluster {

using yaml::inQuotes;
using yaml::Place;
using yaml::Report;
using yaml::YamlNode;

namespace {

constexpr char kTfName[] = "TF_CONFIG";
constexpr std::string_view kTfKeys[] = {"cluster", "task", "environment", "job", "rpc_layer"};
constexpr std::string_view kTfJobs[] = {"ps", "worker", "chief", "master", "evaluator"};
constexpr std::string_view kTfTaskTfKeys[] = {"type", "index", "trial", "cloud"};
constexpr char kNoEvaluator[] =
    "dtf has no evaluator: worker/0 evaluates on 'data.eval'; leave this task out";

// "it is not JSON: parse error at line 2, column 6: ..."
Place jsonPlace(const std::string& message, int source) {
  Place place{source};
  const size_t at = message.find("line ");
  if (at != std::string::npos)
    std::sscanf(message.c_str() + at, "line %d, column %d", &place.line, &place.column);
  return place;
}

// Reads one text.
// Owns: the report of its mistakes.
// Threads: one.
class TfReader {
 public:
  explicit TfReader(const std::string& text)
      : text_(text), source_(report_.addFile(kTfName, text)) {}

  TfConfig read() {
    checkJson();
    const std::optional<YamlNode> root = yaml::parseYaml(text_, source_, report_);
    report_.throwIfAny();
    DTF_CHECK(root.has_value());
    checkTfKeys(*root, kTfKeys, "");
    if (const YamlNode* cluster = root->find("cluster")) readCluster(*cluster);
    if (const YamlNode* task = root->find("task")) readTask(*task);
    report_.throwIfAny();
    return std::move(config_);
  }

 private:
  // YAML reads JSON, and gives each value its place; it reads more than JSON, too.
  void checkJson() {
    if (text_.size() > yaml::kYamlBytesMax)
      report_.error({source_}, fmt::format("it has {}, and may have {}", bytesText(text_.size()),
                                           bytesText(yaml::kYamlBytesMax)));
    report_.throwIfAny();
    try {
      if (Json::parse(text_).isObject()) return;
      report_.error({source_, 1, 1}, "expected an object, {\"cluster\": ..., \"task\": ...}");
    } catch (const Error& error) {
      report_.error(jsonPlace(error.message(), source_), error.message());
    }
    report_.throwIfAny();
  }

  void checkTfKeys(const YamlNode& node, std::span<const std::string_view> known,
                   const std::string& label) {
    if (!node.isMap()) {
      report_.error(node.where(), fmt::format("expected an object for '{}'", label));
      return;
    }
    for (const YamlNode& child : node.children) {
      if (std::find(known.begin(), known.end(), child.key) != known.end()) continue;
      const std::string near = nearestWord(child.key, known);
      report_.error(child.key_place, fmt::format("unknown key {}{}{}", inQuotes(child.key),
                                                 label.empty() ? "" : " in '" + label + "'",
                                                 near.empty() ? ": it may have " + joined(known)
                                                              : " - did you mean '" + near + "'?"));
    }
  }

  static std::string joined(std::span<const std::string_view> words) {
    return join(std::vector<std::string>(words.begin(), words.end()), ", ");
  }

  void readCluster(const YamlNode& cluster) {
    checkTfKeys(cluster, kTfJobs, "cluster");
    const YamlNode* const chief = cluster.find("chief");
    const YamlNode* const master = cluster.find("master");
    if (chief != nullptr && master != nullptr)
      report_.error(master->key_place, "'chief' and 'master' are the same task: give one");
    if (const YamlNode* evaluator = cluster.find("evaluator");
        evaluator != nullptr && !evaluator->children.empty())
      report_.error(evaluator->key_place, kNoEvaluator);
    readAddresses(cluster.find("ps"), JobKind::kPs, config_.ps);
    for (const YamlNode* first : {chief, master}) {
      readAddresses(first, JobKind::kWorker, config_.worker);
      if (first != nullptr && first->children.size() != 1 && first->isSequence())
        report_.error(first->key_place, fmt::format("'{}' must have one address, got {}",
                                                    first->key, first->children.size()));
      has_chief_ = has_chief_ || first != nullptr;
    }
    readAddresses(cluster.find("worker"), JobKind::kWorker, config_.worker);
    if (config_.worker.empty() && report_.empty())
      report_.error(cluster.key_place, "the cluster has no 'worker' and no 'chief'");
  }

  void readAddresses(const YamlNode* list, JobKind job, std::vector<std::string>& to) {
    if (list == nullptr) return;
    if (!list->isSequence())
      return report_.error(list->where(),
                           fmt::format("expected a list of addresses for '{}'", list->key));
    for (const YamlNode& node : list->children) {
      Address address;
      const std::string wrong =
          node.isScalar() ? parseAddress(node.text, address) : "an address is a text, host:port";
      const TaskId id{job, static_cast<uint32_t>(to.size())};
      to.push_back(node.text);
      if (!wrong.empty()) {
        report_.error(node.where(), fmt::format("bad address {}: {}", inQuotes(node.text), wrong));
      } else if (const std::string key = bindKey(address); !key.empty()) {
        const auto [other, is_new] = taken_.emplace(key, id);
        if (!is_new)
          report_.error(node.where(), fmt::format("{} and {} are both at {}", other->second.name(),
                                                  id.name(), node.text));
      }
    }
  }

  void readTask(const YamlNode& task) {
    checkTfKeys(task, kTfTaskTfKeys, "task");
    const YamlNode* const type = task.find("type");
    const YamlNode* const index = task.find("index");
    if (type == nullptr || index == nullptr)
      return report_.error(task.key_place, "a task has \"type\" and \"index\"");
    const std::string& name = type->text;
    if (name == "evaluator") return report_.error(type->where(), kNoEvaluator);
    if (std::find(std::begin(kTfJobs), std::end(kTfJobs), name) == std::end(kTfJobs))
      return report_.error(type->where(),
                           fmt::format("unknown type {}: ps, worker or chief", inQuotes(name)));
    const std::optional<uint32_t> number = indexOf(*index);
    if (!number) return;
    const bool is_chief = name == "chief" || name == "master";
    if (is_chief && *number != 0)
      return report_.error(index->where(), "there is one chief, with index 0");
    const TaskId id{name == "ps" ? JobKind::kPs : JobKind::kWorker,
                    *number + (has_chief_ && name == "worker" ? 1 : 0)};
    checkPlace(id, *type, *index);
    config_.task = id;
  }

  // TensorFlow takes an index in quotes, too.
  std::optional<uint32_t> indexOf(const YamlNode& node) {
    const std::string& text = node.text;
    const bool is_number =
        node.isScalar() && !text.empty() && text.size() <= 9 &&
        std::all_of(text.begin(), text.end(), [](char each) { return each >= '0' && each <= '9'; });
    if (is_number) return static_cast<uint32_t>(std::atoi(text.c_str()));
    report_.error(node.where(), "an index is a whole number from 0 on");
    return std::nullopt;
  }

  // A text without a cluster gives a task of the cluster that the command line names.
  void checkPlace(TaskId id, const YamlNode& type, const YamlNode& index) {
    if (config_.worker.empty()) return;
    const size_t count = (id.job == JobKind::kPs ? config_.ps : config_.worker).size();
    const bool is_missing_chief = type.text != "ps" && type.text != "worker" && !has_chief_;
    if (id.index < count && !is_missing_chief) return;
    report_.error(index.where(), fmt::format("the cluster has no {} {}", type.text, index.text));
  }

  const std::string& text_;
  Report report_;
  const int source_;
  bool has_chief_ = false;
  std::map<std::string, TaskId> taken_;  // by bindKey()
  TfConfig config_;
};

}  // namespace

std::string TfConfig::setting() const {
  DTF_CHECK(!worker.empty());
  Json cluster = Json::object();
  if (!ps.empty()) cluster["ps"] = ps;
  cluster["worker"] = worker;
  return "cluster=" + cluster.dump();
}

TfConfig readTfConfig(const std::string& text) {
  return TfReader(text).read();
}

std::optional<TfConfig> tfConfigOfEnvironment() {
  const char* const text = std::getenv(kTfName);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return readTfConfig(text);
}

}  // namespace dtf::cluster
