#include "daemons/psd/psd_main.h"

#include <optional>
#include <utility>

#include "daemons/daemon.h"
#include "daemons/psd/ps_process.h"
#include "daemons/serve_process.h"

namespace dtf::psd {

int psdMain(int argc, char** argv) {
  return daemons::runDaemon(
      argc, argv, JobKind::kPs,
      [](const cluster::TaskOptions& task, const net::Credentials& credentials) {
        std::optional<Fd> listening = daemons::inheritedListener();
        if (task.serves)
          return daemons::ServeProcess(task, credentials, std::move(listening)).run();
        return PsProcess(task, credentials, std::move(listening)).run();
      });
}

}  // namespace dtf::psd
