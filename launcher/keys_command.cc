// dtf-launch keys: the keys of a job's tasks, made, renewed and listed. See
// common/net/key_folder.h.

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/core_files.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/cluster/cluster_yaml.h"
#include "common/net/key_folder.h"
#include "launcher/commands.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace {

// Longer than the keys that it signs; one that ends makes a job's keys anew.
constexpr std::chrono::hours kAuthorityDays(24 * 3650);
constexpr const char* kClient = "client";

struct WantedKey {
  std::string task;
  std::string host;
};

std::vector<WantedKey> keysOf(const cluster::ClusterSpec& cluster) {
  std::vector<WantedKey> wanted;
  for (const JobKind job : {JobKind::kPs, JobKind::kWorker})
    for (uint32_t i = 0; i < cluster.tasks(job).size(); ++i)
      wanted.push_back({TaskId{job, i}.name(), cluster.tasks(job)[i].address.host});
  wanted.push_back({kClient, ""});
  return wanted;
}

net::Validity validityOf(const Options& options) {
  net::Validity validity;
  if (options.days) validity.until = std::chrono::hours(24) * *options.days;
  return validity;
}

std::vector<net::KeyInFolder> issueAll(net::KeyFolder& folder, const std::vector<WantedKey>& wanted,
                                       const Options& options) {
  std::vector<net::KeyInFolder> issued;
  for (const WantedKey& key : wanted)
    issued.push_back(folder.issue(key.task, key.host, validityOf(options)));
  return issued;
}

std::vector<net::KeyInFolder> init(const Options& options) {
  std::string job = options.job.value_or("");
  std::vector<WantedKey> wanted = {{kClient, ""}};
  if (options.cluster) {
    const cluster::JobSpec spec = cluster::loadCluster(*options.cluster, {});
    if (!job.empty() && job != spec.job)
      throw Error(ErrorCode::kUsage, fmt::format("--job {} differs from the job of {}, {}", job,
                                                 options.cluster->string(), spec.job));
    job = spec.job;
    wanted = keysOf(spec.cluster);
  }
  if (job.empty())
    throw Error(ErrorCode::kUsage,
                "the name of the job is missing: give --job NAME or --cluster CLUSTER.yaml");
  net::Validity authority;
  authority.until = kAuthorityDays;
  std::vector<net::KeyInFolder> made;
  net::KeyFolder::create(options.key_folder, job, authority,
                         [&](net::KeyFolder& folder) { made = issueAll(folder, wanted, options); });
  return made;
}

std::vector<net::KeyInFolder> issue(const Options& options) {
  net::KeyFolder folder(options.key_folder);
  std::vector<WantedKey> wanted;
  for (const std::string& task : options.tasks) wanted.push_back({task, ""});
  if (options.cluster) {
    const cluster::JobSpec spec = cluster::loadCluster(*options.cluster, {});
    if (spec.job != folder.job())
      throw Error(ErrorCode::kUsage, fmt::format("the CA in {} is of job '{}', but {} is job '{}'",
                                                 options.key_folder.string(), folder.job(),
                                                 options.cluster->string(), spec.job));
    for (WantedKey& key : keysOf(spec.cluster)) wanted.push_back(std::move(key));
  }
  if (wanted.empty())
    throw Error(
        ErrorCode::kUsage,
        "no task is named: name tasks (ps/0 worker/1 client), or give --cluster CLUSTER.yaml");
  return issueAll(folder, wanted, options);
}

// For programs: "2026-11-24 10:00 UTC" in ISO 8601, as the times of all events.
std::string isoTime(std::string text) {
  DTF_CHECK_MSG(text.size() == 20 && text.ends_with(" UTC"), text);
  text[10] = 'T';
  return text.replace(16, std::string::npos, ":00+00:00");
}

void printKeys(const std::vector<net::KeyInFolder>& keys, const Options& options) {
  const std::string job = net::KeyFolder(options.key_folder).job();
  if (options.json) {
    Json listed = Json::array();
    for (const net::KeyInFolder& key : keys)
      listed.push_back({{"task", key.name.task},
                        {"file", key.file},
                        {"from", isoTime(key.start)},
                        {"until", isoTime(key.end)},
                        {"expired", key.expired}});
    return printEvent("keys", {{"action", options.key_action},
                               {"job", job},
                               {"folder", options.key_folder.string()},
                               {"keys", listed}});
  }
  std::string text =
      fmt::format("{}: {} keys of job '{}'\n", options.key_folder.string(), keys.size(), job);
  for (const net::KeyInFolder& key : keys)
    text += fmt::format("  {:<12} {:<16} {} {}\n", key.name.task, key.file,
                        key.expired ? "expired" : "until", key.end);
  dtf::print(text);
}

}  // namespace

int keys(const Options& options) {
  leaveNoCoreFiles();
  std::vector<net::KeyInFolder> made;
  if (options.key_action == "init")
    made = init(options);
  else if (options.key_action == "issue")
    made = issue(options);
  else if (options.key_action == "renew")
    made = net::KeyFolder(options.key_folder).renew(validityOf(options));
  else
    made = net::KeyFolder(options.key_folder).list();
  printKeys(made, options);
  return 0;
}

}  // namespace dtf::launcher
