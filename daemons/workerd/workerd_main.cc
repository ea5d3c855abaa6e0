#include "daemons/workerd/workerd_main.h"

#include <optional>
#include <utility>

#include "daemons/daemon.h"
#include "daemons/serve_process.h"
#include "daemons/workerd/worker_server.h"

namespace dtf::workerd {

int workerdMain(int argc, char** argv) {
  return daemons::runDaemon(
      argc, argv, JobKind::kWorker,
      [](const cluster::TaskOptions& task, const net::Credentials& credentials) {
        std::optional<Fd> listening = daemons::inheritedListener();
        if (task.serves)
          return daemons::ServeProcess(task, credentials, std::move(listening)).run();
        return WorkerServer(task, credentials, std::move(listening)).run();
      });
}

}  // namespace dtf::workerd
