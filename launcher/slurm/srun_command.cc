#include "launcher/slurm/srun_command.h"

#include "common/base/check.h"
#include "launcher/ssh/ssh_command.h"

namespace dtf::launcher {

std::vector<std::string> srunCommand(const std::string& node, const std::string& agent) {
  DTF_CHECK(!node.empty() && !node.starts_with('-') && !agent.empty());
  return {"srun",
          "--nodelist=" + node,
          "--nodes=1",
          "--ntasks=1",
          "--ntasks-per-node=1",  // not the batch script's, which may be more
          "--overlap",            // other steps have the same processors
          "--mem=0",              // all of the allocation's on that node
          "--cpu-bind=none",      // one process, whose tasks share what the step has
          "--mpi=none",
          "--export=ALL",
          "--unbuffered",  // else half a line stays where it is
          "--job-name=dtf-agent",
          agent};
}

Error srunError(const std::string& node, const std::string& agent, const ExitStatus& status,
                std::string_view said) {
  const std::string last = lastLine(said);
  const auto has = [said](std::string_view text) {
    return said.find(text) != std::string_view::npos;
  };
  const auto error = [&](ErrorCode code, const std::string& what) {
    return Error(code, node + ": " + what + (last.empty() ? "" : "\n  srun printed: " + last));
  };
  if (has("execve()") && has("No such file"))
    return error(
        ErrorCode::kBadConfig,
        "there is no " + agent + ": install dtf there, or name its folder with launch.binary_dir");
  if (has("execve()") && has("Permission denied"))
    return error(ErrorCode::kPermission, agent + " can't be run there");
  if (has("error while loading shared libraries"))
    return error(
        ErrorCode::kBadConfig,
        agent + " lacks a library there: install dtf's dependencies (scripts/install-deps.sh)");
  if (has("nodes are not available") || has("node configuration is not available") ||
      has("Requested nodes are busy"))
    return error(ErrorCode::kUnavailable, "Slurm can't run a step on this node");
  return error(ErrorCode::kUnavailable, "its step " + status.text());
}

}  // namespace dtf::launcher
