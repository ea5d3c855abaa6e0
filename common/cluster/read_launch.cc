#include "common/cluster/read_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "common/cluster/address.h"
#include "common/cluster/schema.h"

namespace dtf::cluster {

using yaml::inQuotes;
using yaml::MapReader;
using yaml::readText;
using yaml::Report;
using yaml::YamlNode;

void readFileName(const MapReader& reader, std::string_view key, std::filesystem::path& file) {
  std::string text;
  if (reader.path(key, text))
    file = (reader.report().folderOf(reader.find(key)->place) / text).lexically_normal();
}

namespace {

// Whether a value is safe as a word of a command that a shell on the other host parses, and as an
// option's value.
bool isHarmless(std::string_view word) {
  return !word.empty() && word[0] != '-' &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '/' || c == '@';
         });
}

void readHarmless(const MapReader& reader, std::string_view key, std::string& value) {
  if (!reader.text(key, value) || isHarmless(value)) return;
  reader.report().error(
      reader.find(key)->where(),
      fmt::format("'{}' has letters, digits, '.', '_', '-', '/' and '@', and does "
                  "not start with '-', got {}",
                  key, inQuotes(value)));
}

// Reads the keys common to `launch` and the elements of launch.hosts.
void readSsh(const MapReader& reader, SshSpec& ssh) {
  readHarmless(reader, "user", ssh.user);
  reader.whole("port", ssh.port);
  readFileName(reader, "identity", ssh.identity);
  readHarmless(reader, "binary_dir", ssh.binary_dir);
}

bool hasTask(const ClusterSpec& cluster, const std::string& host) {
  for (const JobKind job : {JobKind::kPs, JobKind::kWorker})
    for (const TaskSpec& task : cluster.tasks(job))
      if (!task.address.host.empty() && hostKey(task.address.host) == hostKey(host)) return true;
  return false;
}

void readHosts(const MapReader& reader, const ClusterSpec& cluster, LaunchSpec& launch) {
  Report& report = reader.report();
  for (const YamlNode& node : reader.list("hosts")) {
    const MapReader host_reader(node, schema::kLaunchHost, "launch.hosts", report);
    std::string host;
    if (!host_reader.text("host", host) || host.empty()) continue;
    SshSpec ssh = launch.ssh;
    readSsh(host_reader, ssh);
    if (!launch.hosts.emplace(hostKey(host), ssh).second)
      report.error(node.where(), "the host " + inQuotes(host) + " is listed twice");
    if (!hasTask(cluster, host))
      report.error(node.where(), "no task of 'cluster' is on the host " + inQuotes(host));
  }
}

CopySpec readCopy(const YamlNode& node, const LaunchSpec& launch, Report& report) {
  const MapReader reader(node, schema::kLaunchCopy, "launch.copy", report);
  CopySpec copy;
  reader.boolean("programs", copy.programs);
  reader.boolean("data", copy.data);
  readHarmless(reader, "dir", copy.dir);
  reader.whole("max_gib", copy.max_gib);
  if (!copy.any())
    report.error(node.where(), "'copy' copies nothing: it needs 'programs: true' or 'data: true'");
  const auto has_programs = [](const auto& host) { return !host.second.binary_dir.empty(); };
  if (copy.programs && (!launch.ssh.binary_dir.empty() ||
                        std::any_of(launch.hosts.begin(), launch.hosts.end(), has_programs)))
    report.error(reader.find("programs")->key_place,
                 "'programs: true' and 'binary_dir' exclude each other: copied programs have their "
                 "own folder");
  return copy;
}

// Whether a value is safe in an #SBATCH line, a comment of a shell script.
bool isOption(std::string_view word) {
  return word.starts_with('-') &&
         std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::iscntrl(c); });
}

bool isTimeLimit(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) &&
         text.find_first_not_of("0123456789:-") == std::string_view::npos;
}

void readSlurm(const MapReader& reader, SlurmSpec& slurm) {
  Report& report = reader.report();
  reader.whole("nodes", slurm.nodes);
  reader.boolean("requeue", slurm.requeue);
  if (reader.text("time", slurm.time) && !isTimeLimit(slurm.time))
    report.error(reader.find("time")->where(),
                 "a limit is minutes, hours:minutes:seconds or days-hours:minutes:seconds, got " +
                     inQuotes(slurm.time));
  for (const YamlNode& node : reader.list("sbatch")) {
    const std::optional<std::string> option = readText(node, "sbatch", report);
    if (!option) continue;
    if (isOption(*option))
      slurm.options.push_back(*option);
    else
      report.error(node.where(),
                   "an option of sbatch starts with '-' and is one line, got " + inQuotes(*option));
  }
}

// Refuses `auto`: no process could keep a unit's port while the unit is restarted.
void checkPorts(const ClusterSpec& cluster, Report& report) {
  for (const JobKind job : {JobKind::kPs, JobKind::kWorker})
    for (const TaskSpec& task : cluster.tasks(job)) {
      if (task.address.port != 0) continue;
      report.error(
          report.placeOf(task.mark),
          "via systemd each task needs an address with a port number: the others reconnect to it "
          "after a restart");
      if (task.by_count) break;  // all have the same place
    }
}

// Refuses keys that the chosen `via` would ignore.
void checkFits(const MapReader& reader, const ClusterSpec& cluster, LaunchSpec::Via via) {
  using Via = LaunchSpec::Via;
  Report& report = reader.report();
  const auto only = [&](std::string_view key, bool fits, std::string_view whose) {
    const YamlNode* found = reader.find(key);
    if (found != nullptr && !fits)
      report.error(found->key_place, fmt::format("{} is for 'via: {}'", inQuotes(key), whose));
  };
  for (const std::string_view key : {"user", "port", "identity", "ssh_config", "hosts"})
    only(key, via == Via::kSsh || via == Via::kSystemd, "ssh' and 'via: systemd");
  only("copy", via == Via::kSsh, "ssh");
  for (const std::string_view key : {"nodes", "time", "requeue", "sbatch"})
    only(key, via == Via::kSlurm, "slurm");
  only("binary_dir", via != Via::kLocal, "ssh', 'via: systemd' and 'via: slurm");
  only("fetch_model", via == Via::kSsh || via == Via::kSlurm, "ssh' and 'via: slurm");
  for (const JobKind job : {JobKind::kPs, JobKind::kWorker})
    if (via == Via::kSsh && !cluster.tasks(job).empty() && cluster.tasks(job)[0].by_count)
      report.error(report.placeOf(cluster.tasks(job)[0].mark),
                   "'count' names no hosts: over ssh each task needs its address");
  if (via == Via::kSystemd) checkPorts(cluster, report);
}

}  // namespace

LaunchSpec readLaunch(const YamlNode& node, const ClusterSpec& cluster, Report& report) {
  const MapReader reader(node, schema::kLaunch, node.key, report);
  LaunchSpec launch;
  reader.choice("via", launch.via);
  readSsh(reader, launch.ssh);
  readFileName(reader, "ssh_config", launch.ssh.config);
  readHosts(reader, cluster, launch);
  readSlurm(reader, launch.slurm);
  if (reader.choice("on_sigterm", launch.on_sigterm) && launch.pauses() &&
      launch.via == LaunchSpec::Via::kSlurm)
    report.error(reader.find("on_sigterm")->where(),
                 "'pause' is not for 'via: slurm': use 'requeue: true', with which the job waits "
                 "for another turn");
  reader.boolean("fetch_model", launch.fetch_model);
  checkFits(reader, cluster, launch.via);
  if (const YamlNode* copy = reader.find("copy")) launch.copy = readCopy(*copy, launch, report);
  const YamlNode* restarts = reader.find("restarts");
  if (restarts == nullptr) return launch;
  if (restarts->isScalar()) {
    report.error(restarts->where(), "'restarts' is a map: {max: 0} for none, {max: 5} for a few");
    return launch;
  }
  const MapReader budget(*restarts, schema::kRestarts, "launch.restarts", report);
  budget.whole("max", launch.restarts.max);
  budget.number("refill_minutes", launch.restarts.refill_minutes);
  return launch;
}

}  // namespace dtf::cluster
