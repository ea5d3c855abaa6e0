// `dtf-launch check --network`.

#include <fmt/format.h>
#include <unistd.h>

#include "common/base/error.h"
#include "common/base/print.h"
#include "launcher/commands.h"
#include "launcher/network/judgement.h"
#include "launcher/network/measured_hosts.h"
#include "launcher/network/network_report.h"
#include "launcher/output.h"

namespace dtf::launcher {

int checkNetwork(const cluster::JobSpec& job, const Options& options, const Origin& origin) {
  const bool quiet = options.json || options.verbosity == Verbosity::kQuiet;
  const std::vector<NetworkRow> rows =
      measureHosts(job, options, origin, NetworkScope::kAll, quiet);
  const std::vector<std::string> warnings = networkWarnings(rows);
  if (options.json) {
    printEvent("network", networkJson(rows, warnings));
  } else {
    print(networkTable(rows));
    for (const std::string& warning : warnings)
      printBounded(STDERR_FILENO, "dtf-launch: warning: " + warning + "\n");
  }
  const std::vector<std::string> unreached = unreachedPairs(rows);
  if (unreached.empty()) return 0;
  std::string text = fmt::format("{} pair{} of hosts can't reach each other:", unreached.size(),
                                 unreached.size() == 1 ? "" : "s");
  for (const std::string& pair : unreached) text += "\n  " + pair;
  throw Error(ErrorCode::kUnavailable, text);
}

}  // namespace dtf::launcher
