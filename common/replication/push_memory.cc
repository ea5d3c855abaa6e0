#include "common/replication/push_memory.h"

#include "common/base/check.h"

namespace dtf::replication {

void PushMemory::applied(const UpdateNote& note) {
  loss = note.loss;
  for (Worker& worker : workers) worker.sets <<= 1;
  for (const UpdateNote::Push& push : note.pushes) {
    DTF_CHECK(push.rank < workers.size());
    Worker& worker = workers[push.rank];
    worker.incarnation = push.incarnation;
    worker.steps = push.step + 1;
    worker.sets |= 1;
    worker.loss = note.loss;
    worker.progress = push.progress;
  }
}

}  // namespace dtf::replication
