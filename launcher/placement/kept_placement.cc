#include "launcher/placement/kept_placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/model/model_table.h"
#include "common/replication/replication_rules.h"
#include "launcher/launch_plan.h"
#include "launcher/ssh/ssh_hosts.h"

namespace dtf::launcher {

namespace {

constexpr int kPlacementSchema = 1;
constexpr uint64_t kPlacementBytesMax = uint64_t{1} << 20;

Json jsonOf(const KeptPlacement& kept) {
  return {{"of", kept.of},
          {"text", kept.text},
          {"exchange_seconds", kept.exchange_seconds},
          {"set", kept.overrides}};
}

KeptPlacement keptOf(const Json& json) {
  return {json.stringAt("of"), json.stringAt("text"), json.doubleAt("exchange_seconds"),
          json.at("set").asStrings()};
}

}  // namespace

std::string placementKey(const cluster::JobSpec& job) {
  DTF_CHECK(job.train.has_value());
  const cluster::TrainSpec& train = *job.train;
  std::string text;
  const std::vector<TaskId> tasks = allTasks(job.cluster);
  const std::vector<std::string> hosts = hostsOfTasks(job);
  for (size_t i = 0; i < tasks.size(); ++i) text += tasks[i].name() + " " + hosts[i] + "\n";
  text +=
      fmt::format("{}\n{} {} {} {} {} {}\n{}\n", model::tableOf(train.model).str(),
                  static_cast<int>(train.optimizer.kind), static_cast<int>(train.replication.mode),
                  train.replication.leader, replication::transferText(train.replication),
                  train.data.batch_size, train.placement.partition_min_bytes, job.durability.str());
  for (const auto& [variable, device] : train.placement.pins) text += variable + device + "\n";
  text += fmt::format("{}", fmt::join(train.placement.among, ","));
  return hexOf(checksumOf(text));
}

std::optional<KeptPlacement> readPlacement(const std::filesystem::path& run_dir) {
  const std::filesystem::path file = run_dir / kPlacementFile;
  std::error_code gone;
  if (!std::filesystem::exists(file, gone)) return std::nullopt;
  const std::string text = readFile(file, kPlacementBytesMax);
  try {
    const Json json = Json::parse(text);
    const Json& body = json.at("placement");
    if (json.at("schema") == kPlacementSchema &&
        json.stringAt("checksum") == hexOf(checksumOf(body.dump())))
      return keptOf(body);
  } catch (const Error&) {  // thrown below
  }
  throw Error(ErrorCode::kBadData,
              fmt::format("{} is damaged or of another version: remove it, and the links are "
                          "measured again, which changes no result",
                          file.string()));
}

void keepPlacement(const std::filesystem::path& run_dir, const KeptPlacement& kept) {
  DTF_CHECK(!kept.of.empty() && !kept.overrides.empty());
  makeWritableFolder(run_dir);
  const Json body = jsonOf(kept);
  const Json json = {{"schema", kPlacementSchema},
                     {"checksum", hexOf(checksumOf(body.dump()))},
                     {"placement", body}};
  atomicReplace(run_dir / kPlacementFile, json.dump(1) + "\n");
}

}  // namespace dtf::launcher
