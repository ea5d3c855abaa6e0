// psd: a parameter server. See README.md; the life of a ps is in ps_server.h.

#include "daemons/daemon.h"
#include "daemons/psd/ps_process.h"
#include "daemons/serve_process.h"

int main(int argc, char** argv) {
  return dtf::daemons::runDaemon(
      argc, argv, dtf::JobKind::kPs, [](const dtf::cluster::TaskOptions& task) {
        if (task.serves) {
          return dtf::daemons::ServeProcess(task, dtf::daemons::inheritedListener()).run();
        }
        return dtf::psd::PsProcess(task, dtf::daemons::inheritedListener()).run();
      });
}
