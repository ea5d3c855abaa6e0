#pragma once

#include <memory>
#include <optional>

#include "common/base/file_system.h"
#include "common/train/supervisor.h"
#include "daemons/workerd/checkpointer_options.h"
#include "daemons/workerd/job_evaluations.h"
#include "daemons/workerd/worker_client.h"

namespace dtf::workerd {

// The chief's objects for checkpoints: made once the model is declared, destroyed before the
// connections.
// Owns: the checkpoint client, the checkpointer and the supervisor.
// Borrows: the constructor's arguments (must outlive this).
// Threads: as Checkpointer and Supervisor.
struct Supervision {
  // `evaluations` know the checkpoints that stay beside the newest.
  Supervision(const cluster::TaskOptions& task, const Clock& clock, WorkerClient& worker_client,
              const arena::ModelDeclaration& declaration, const JobEvaluations& evaluations)
      : client(worker_client.checkpoints(task.job.timeouts.finish_seconds)),
        checkpointer(realFileSystem(), clock, *client, declaration,
                     checkpointerOptions(task, [&evaluations] { return evaluations.kept(); })) {}

  const std::unique_ptr<checkpoint::CheckpointClient> client;
  train::Checkpointer checkpointer;
  std::optional<train::Supervisor> supervisor;  // once the ps hold values
};

}  // namespace dtf::workerd
