#include "daemons/workerd/worker_gate.h"

#include <nlohmann/json.hpp>

namespace dtf::workerd {

namespace {

class Gate final : public schema::WorkerGate::Server {
 public:
  Gate(const cluster::TaskOptions& task, const WorkerStatus& status)
      : task_(task), status_(status) {}
  kj::Promise<void> status(StatusContext context) override {
    context.getResults().setJson(
        nlohmann::json({{"schema", 1},
                        {"job", task_.job.job},
                        {"task", task_.task.name()},
                        {"training", status_.phase() == WorkerPhase::kTraining},
                        {"global_step", status_.global_step.load()},
                        {"steps", status_.steps.load()},
                        {"loss", status_.loss.load()},
                        {"steps_per_second", status_.steps_per_second.load()},
                        {"examples_per_second", status_.examples_per_second.load()}})
            .dump());
    return kj::READY_NOW;
  }

 private:
  const cluster::TaskOptions& task_;
  const WorkerStatus& status_;
};

}  // namespace

schema::WorkerGate::Client makeWorkerGate(const cluster::TaskOptions& task,
                                          const WorkerStatus& status) {
  return kj::heap<Gate>(task, status);
}

}  // namespace dtf::workerd
