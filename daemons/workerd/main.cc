// workerd: a worker. See README.md; its work is in worker_job.h.

#include "daemons/workerd/workerd_main.h"

int main(int argc, char** argv) {
  return dtf::workerd::workerdMain(argc, argv);
}
