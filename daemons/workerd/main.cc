// workerd: a worker. See README.md; what it does is in worker_job.h.

#include "daemons/daemon.h"
#include "daemons/serve_process.h"
#include "daemons/workerd/worker_server.h"

int main(int argc, char** argv) {
  return dtf::daemons::runDaemon(
      argc, argv, dtf::JobKind::kWorker, [](const dtf::cluster::TaskOptions& task) {
        if (task.serves) {
          return dtf::daemons::ServeProcess(task, dtf::daemons::inheritedListener()).run();
        }
        return dtf::workerd::WorkerServer(task, dtf::daemons::inheritedListener()).run();
      });
}
