#include "launcher/ssh/ssh_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/text.h"
#include "launcher/launch_plan.h"
#include "launcher/ssh/agent_bootstrap.h"

namespace dtf::launcher {

namespace {

constexpr int kConnectSeconds = 10;
constexpr int kLaterIntervals = 3;
constexpr int kSshFailed = 255;      // ssh's own exit code
constexpr int kNotFound = 127;       // a shell's
constexpr int kNotExecutable = 126;  // likewise

// "ssh -l me -p 2222 gpu1 true", for a person to try.
std::string byHand(const std::string& host, const cluster::SshSpec& ssh) {
  std::string text = "ssh";
  if (!ssh.config.empty()) text += " -F " + shellQuote(ssh.config.string());
  if (!ssh.user.empty()) text += " -l " + ssh.user;
  if (ssh.port != 0) text += fmt::format(" -p {}", ssh.port);
  if (!ssh.identity.empty()) text += " -i " + shellQuote(ssh.identity.string());
  return text + " " + host + " true";
}

}  // namespace

std::string lastLine(std::string_view said) {
  std::string last;
  for (const std::string& line : split(said, '\n')) {
    const std::string text = printable(line);
    const bool says = text.find_first_not_of(" \t\r?@") != std::string::npos;
    if (says) last = text.substr(0, text.find_last_not_of(" \t?") + 1);
  }
  return last;
}

std::vector<std::string> sshCommand(const std::string& host, const cluster::SshSpec& ssh,
                                    double heartbeat_seconds, double lease_seconds,
                                    bool brings_agent) {
  DTF_CHECK(!host.empty() && !host.starts_with('-'));
  const int interval = std::max(1, static_cast<int>(std::ceil(heartbeat_seconds)));
  // Later than the agent, which has ended its tasks by the time that this end gives the host up.
  const int count = static_cast<int>(std::ceil(lease_seconds / interval)) + kLaterIntervals;
  std::vector<std::string> argv = {"ssh", "-T"};
  const auto option = [&argv](std::string text) {
    argv.emplace_back("-o");
    argv.push_back(std::move(text));
  };
  if (!ssh.config.empty()) argv.insert(argv.end(), {"-F", ssh.config.string()});
  option("BatchMode=yes");  // nobody is there to type a password
  option(fmt::format("ConnectTimeout={}", kConnectSeconds));
  option(fmt::format("ServerAliveInterval={}", interval));
  option(fmt::format("ServerAliveCountMax={}", count));
  // A connection of its own, which ends with this process, and carries nothing else.
  for (const char* each :
       {"ControlMaster=no", "ControlPath=none", "ClearAllForwardings=yes", "ForwardAgent=no",
        "ForwardX11=no", "PermitLocalCommand=no", "RemoteCommand=none", "EscapeChar=none"})
    option(each);
  if (!ssh.user.empty()) argv.insert(argv.end(), {"-l", ssh.user});
  if (ssh.port != 0) argv.insert(argv.end(), {"-p", std::to_string(ssh.port)});
  if (!ssh.identity.empty()) argv.insert(argv.end(), {"-i", ssh.identity.string()});
  const std::string agent = ssh.binary_dir.empty() ? "dtf-agent" : ssh.binary_dir + "/dtf-agent";
  argv.insert(argv.end(), {"--", host, brings_agent ? std::string(kBootstrapWord) : agent});
  return argv;
}

Error sshError(const std::string& host, const cluster::SshSpec& ssh, const ExitStatus& status,
               std::string_view said) {
  const std::string last = lastLine(said);
  const auto has = [said](std::string_view text) {
    return said.find(text) != std::string_view::npos;
  };
  const auto error = [&](ErrorCode code, const std::string& what) {
    return Error(code, host + ": " + what + (last.empty() ? "" : "\n  ssh printed: " + last));
  };
  const std::string retry = "; try it by hand: " + byHand(host, ssh);
  if (status.code == kSshFailed || status.signal != 0) {
    if (has("REMOTE HOST IDENTIFICATION HAS CHANGED"))
      return error(ErrorCode::kPermission,
                   "its host key has changed: the host was installed anew, or another host answers "
                   "in its place. Compare the fingerprint with the host's own, then remove the old "
                   "key: ssh-keygen -R " +
                       host);
    if (has("Host key verification failed"))
      return error(ErrorCode::kPermission,
                   "its host key is not known here: connect once by hand and compare the "
                   "fingerprint, " +
                       byHand(host, ssh));
    if (has("Permission denied") || has("Too many authentication failures"))
      return error(ErrorCode::kPermission,
                   "it does not let this user in without a password: set the user and the key with "
                   "launch.user and launch.identity" +
                       retry);
    if (has("Could not resolve hostname"))
      return error(ErrorCode::kBadConfig, "there is no host of that name");
    if (has("Connection refused"))
      return error(ErrorCode::kUnavailable,
                   "nothing listens at its ssh port; name another port with launch.port");
    if (has("timed out") || has("No route to host") || has("Network is unreachable") ||
        has("not responding"))
      return error(ErrorCode::kUnavailable, "it can't be reached" + retry);
    return error(ErrorCode::kUnavailable, "ssh " + status.text() + retry);
  }
  const std::string there = ssh.binary_dir.empty() ? "in the PATH of its ssh sessions"
                                                   : "in launch.binary_dir, " + ssh.binary_dir;
  // The loader's exit code is that of a shell which finds no program.
  if (has("error while loading shared libraries"))
    return error(
        ErrorCode::kBadConfig,
        "its dtf-agent, " + there +
            ", lacks a library: install dtf's dependencies there (scripts/install-deps.sh)");
  if (status.code == kNotFound)
    return error(ErrorCode::kBadConfig,
                 "there is no dtf-agent " + there +
                     ": install dtf there, or name its folder with launch.binary_dir");
  if (status.code == kNotExecutable)
    return error(ErrorCode::kPermission, "its dtf-agent, " + there + ", can't be run");
  return error(ErrorCode::kUnavailable, "its dtf-agent " + status.text());
}

}  // namespace dtf::launcher
