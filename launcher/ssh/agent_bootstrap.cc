#include "launcher/ssh/agent_bootstrap.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include "common/base/check.h"
#include "common/base/text.h"
#include "launcher/ssh/ssh_command.h"

namespace dtf::launcher {

namespace {

constexpr std::string_view kFirstWords = "dtf-copy 1 ";
constexpr size_t kLineShown = 80;

// Its exit codes: neither those of ssh, of a shell, nor of the agent.
enum : int {
  kLacksTool = 91,
  kCantWrite = 92,
  kDamaged = 93,
  kTooLate = 94,
  kNoWords = 95,
  kOthers = 96
};

// For any POSIX shell, and the tools of coreutils or busybox. Every wait ends by itself: where the
// network is cut, sshd would not notice for hours.
constexpr std::string_view kScript = R"sh({
mask=$(umask)
umask 077
for tool in chmod head ls mkdir mktemp mv rm sha256sum timeout touch uname; do
  command -v "$tool" >/dev/null || { echo "there is no $tool" >&2; exit 91; }
done
echo "dtf-copy 1 $(uname -sm)"
words=$(timeout 30 head -n 1)
digest=${words%% *}; words=${words#* }; bytes=${words%% *}; dir=${words#* }
case $digest in '' | *[!0-9a-f]*) exit 95 ;; esac
case $bytes in '' | *[!0-9]*) exit 95 ;; esac
if [ "$dir" = - ]; then
  case ${XDG_CACHE_HOME:-} in /*) dir=$XDG_CACHE_HOME ;; *) dir=.cache ;; esac
  dir=$dir/dtf/copies
fi
case $dir in /*) ;; *) dir=${HOME:?}/$dir ;; esac
place=$dir/agents/$digest
agent=$place/dtf-agent
mkdir -p "$place" || exit 92
for own in "$dir" "$dir/agents"; do
  [ ! -L "$own" ] || { echo "$own is a link" >&2; exit 96; }
  [ -O "$own" ] || { echo "$own is another user's" >&2; exit 96; }
  case $(ls -ld "$own") in
    ?????w* | ????????w*) echo "$own may be written by others" >&2; exit 96 ;;
  esac
done
touch "$place" || exit 92
if [ -f "$agent" ] && [ "$(sha256sum <"$agent")" = "$digest  -" ]; then
  echo have
else
  new=$(mktemp -d "$dir/agents/new-XXXXXX") || exit 92
  trap 'rm -rf "$new"' EXIT
  echo send
  timeout 300 head -c "$bytes" >"$new/dtf-agent"
  case $? in 0) ;; 124) exit 94 ;; *) exit 92 ;; esac
  [ "$(sha256sum <"$new/dtf-agent")" = "$digest  -" ] || exit 93
  chmod 500 "$new/dtf-agent" && mv -f "$new/dtf-agent" "$agent" || exit 92
  rm -rf "$new"
  trap - EXIT
fi
umask "$mask"
exec "$agent"
}
)sh";

}  // namespace

std::string_view bootstrapScript() {
  return kScript;
}

std::string bootstrapWords(std::string_view digest, size_t bytes, std::string_view dir) {
  DTF_CHECK(dir.find('\n') == std::string_view::npos);
  return fmt::format("{} {} {}\n", digest, bytes, dir.empty() ? "-" : dir);
}

std::string systemHere() {
  utsname names{};
  DTF_CHECK(::uname(&names) == 0);
  return std::string(names.sysname) + " " + names.machine;
}

std::string wrongBootstrapLine(std::string_view line, std::string_view here) {
  const std::string shown = printable(line.substr(0, kLineShown));
  if (!line.starts_with(kFirstWords))
    return "it prints '" + shown +
           "' before the copied dtf-agent starts: its shell's start files (~/.bashrc) must print "
           "nothing for ssh";
  const std::string_view there = line.substr(kFirstWords.size());
  if (there == here) return "";
  return "it is " + printable(there.substr(0, kLineShown)) + ", and the programs here are for " +
         std::string(here) + ": install dtf there, and set 'programs: false' in 'launch.copy'";
}

bool wantsAgent(std::string_view line) {
  if (line != "have" && line != "send")
    throw Error(ErrorCode::kBadData, "it prints '" + printable(line.substr(0, kLineShown)) +
                                         "' instead of 'have' or 'send'");
  return line == "send";
}

std::optional<Error> bootstrapError(const std::string& host, const std::string& dir,
                                    const ExitStatus& status, std::string_view said) {
  const std::string last = lastLine(said);
  const std::string folder = dir.empty() ? "~/.cache/dtf/copies" : dir;
  const auto error = [&](ErrorCode code, const std::string& what) {
    return Error(code, host + ": " + what + (last.empty() ? "" : "\n  it printed: " + last));
  };
  const auto has = [said](std::string_view text) {
    return said.find(text) != std::string_view::npos;
  };
  const std::string another = "; name another folder with launch.copy.dir";
  constexpr int kNotExecutable = 126;
  if (status.signal != 0) return std::nullopt;
  // The loader has no exit code of its own.
  if (has("error while loading shared libraries") || (has(": version `") && has("not found")))
    return error(ErrorCode::kBadConfig,
                 "the copied dtf-agent can't run there: install dtf's dependencies there "
                 "(scripts/install-deps.sh), or dtf itself");
  switch (status.code) {
    case kLacksTool:
      return error(ErrorCode::kBadConfig,
                   "it lacks a program that copying needs: install coreutils there");
    case kCantWrite:
      if (has("Permission denied"))
        return error(ErrorCode::kPermission,
                     "this user may not write the folder for copies there, " + folder + another);
      return error(ErrorCode::kCannotWrite,
                   "the folder for copies there, " + folder + ", can't be written" + another);
    case kDamaged:
      return error(ErrorCode::kUnavailable, "the copied dtf-agent was damaged on the way");
    case kTooLate:
      return error(ErrorCode::kDeadline, "dtf-agent did not arrive there within 300 s");
    case kNoWords:
      return error(ErrorCode::kUnavailable, "the request to it did not arrive");
    case kOthers:
      return error(ErrorCode::kPermission, "the folder for copies there, " + folder +
                                               ", is not this user's alone" + another);
    case kNotExecutable:
      return error(ErrorCode::kPermission, "dtf-agent can't be run in " + folder +
                                               ": a disk that is mounted noexec?" + another);
    default:
      return std::nullopt;
  }
}

}  // namespace dtf::launcher
