#pragma once

// The system's ssh client: how it is called, and what its last words mean. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/cluster/spec.h"
#include "launcher/exit_status.h"

namespace dtf::launcher {

// ssh joins the words behind the host with spaces, and a shell there takes them apart again: so
// there is one, of harmless characters; all else goes over stdin. The host stands behind `--`, so
// that none can be an option. Which keys and hosts are trusted is up to the user's own
// configuration of ssh: nothing here loosens it.
// `brings_agent`: the word is that of agent_bootstrap.h.
std::vector<std::string> sshCommand(const std::string& host, const cluster::SshSpec& ssh,
                                    double heartbeat_seconds, double lease_seconds,
                                    bool brings_agent = false);

// What is worth telling of ssh's stderr: the last line that says something, made printable.
std::string lastLine(std::string_view said);

// How the connection to `host` ended, in words for a person. `said`: the last of ssh's stderr.
Error sshError(const std::string& host, const cluster::SshSpec& ssh, const ExitStatus& status,
               std::string_view said);

}  // namespace dtf::launcher
