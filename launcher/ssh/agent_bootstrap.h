#pragma once

// The first step onto a host that has nothing of dtf: how dtf-agent comes there and is run, over
// one ssh connection, before there is anybody to talk to but a shell.
//
// ssh runs one word, `sh`, which reads what it is to do from its stdin: a script that is a constant
// of this program. Each side speaks in turn, so that a shell which reads ahead finds nothing there:
//
//   launcher: the script
//   host:     dtf-copy 1 Linux x86_64                  (uname -sm)
//   launcher: SHA256 BYTES DIR                         (DIR `-`: the default)
//   host:     have | send
//   launcher: BYTES bytes                              (after `send`)
//   host:     dtf-agent ...                            (the agent's greeting: the shell has become
//                                                      it)
//
// Why this is safe: nothing of the job, its files or its settings is in the script or on a command
// line; the three words are data to it, looked at before they are used and never evaluated; and
// what it runs has the digest that this launcher has computed, in a folder that only this user may
// write.

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "launcher/exit_status.h"

namespace dtf::launcher {

inline constexpr std::string_view kBootstrapWord = "sh";

// Ends with the end of its one compound command, without which the shell does nothing.
std::string_view bootstrapScript();

// The third line; `dir`: see CopySpec.
std::string bootstrapWords(std::string_view digest, size_t bytes, std::string_view dir);

// What a host does wrong that answers the script like that; empty: it can run the agent. `here`:
// the `uname -sm` of this host.
std::string wrongBootstrapLine(std::string_view line, std::string_view here);
std::string systemHere();

// Whether the line after the words is "send".
// Errors: kBadData for what is neither that nor "have".
bool wantsAgent(std::string_view line);

// How the script ended, where that was before it ran the agent. nullopt: it was something else.
std::optional<Error> bootstrapError(const std::string& host, const std::string& dir,
                                    const ExitStatus& status, std::string_view said);

}  // namespace dtf::launcher
