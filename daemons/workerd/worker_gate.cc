#include "daemons/workerd/worker_gate.h"

#include <utility>

#include "common/base/json.h"

namespace dtf::workerd {

namespace {

class Gate final : public schema::WorkerGate::Server {
 public:
  Gate(const cluster::TaskOptions& task, const WorkerStatus& status, std::string metrics_address)
      : task_(task), status_(status), metrics_address_(std::move(metrics_address)) {}
  kj::Promise<void> status(StatusContext context) override {
    context.getResults().setJson(
        Json({{"schema", 1},
              {"job", task_.job.job},
              {"task", task_.task.name()},
              {"metrics", metrics_address_.empty() ? Json(nullptr) : Json(metrics_address_)},
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
  const std::string metrics_address_;
};

}  // namespace

schema::WorkerGate::Client makeWorkerGate(const cluster::TaskOptions& task,
                                          const WorkerStatus& status, std::string metrics_address) {
  return kj::heap<Gate>(task, status, std::move(metrics_address));
}

}  // namespace dtf::workerd
