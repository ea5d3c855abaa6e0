#pragma once

// Reads the parameters of a job that trains, for a caller that is no task of it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/net/caller_loop.h"
#include "common/net/credentials.h"
#include "common/wire/status_question.h"

namespace dtf::wire {

// The parameters as a reader has taken them.
struct TakenVersion {
  uint64_t step = 0;  // updates in them; of shards at different steps, the lowest
  uint64_t epoch = 0;
  bool operator==(const TakenVersion&) const = default;
};

// take() captures one version on all hosts; read() fetches variables of that version, however far
// the training is by then. In sync training all shards have the same step. In async and bounded
// training each shard has the newest of its own: such a job has no common version.
// Owns: the loop, its connections.
// Threads: thread-compatible.
// Blocks: take() and read().
// Errors: kBadConfig: the hosts run another job. kUnavailable: a host isn't there, or the version
// is no longer kept. kDeadline: the hosts had no common step in time.
class JobReader {
 public:
  // Returns the tasks that hold the shards, by shard. Called before each attempt to connect: a task
  // that starts again may have another address.
  // Errors: kUnavailable: not all addresses are known yet.
  using FindHosts = std::function<std::vector<ListeningTask>()>;

  // `job`: its name.
  JobReader(std::string job, FindHosts find_hosts, net::Credentials credentials);
  ~JobReader();
  JobReader(const JobReader&) = delete;
  JobReader& operator=(const JobReader&) = delete;

  // Connects where needed. Waits for hosts that are not there, for `patience` in all.
  TakenVersion take(Duration patience);

  // Returns the variables of the job; of the last take(). Precondition: there was one.
  const arena::ModelDeclaration& model() const;
  // Fills `values` with variable `index`, whose elements it has room for.
  // Preconditions: take() has returned; `index` is one of model().layout.variables.
  void read(uint32_t index, std::vector<float>& values);

 private:
  struct Host;
  struct Captured {
    bool is_captured = false;
    TakenVersion version;
  };

  void connect(const std::vector<ListeningTask>& tasks, size_t shard, Duration patience);
  std::vector<Captured> capture(std::optional<uint64_t> step, Duration patience);
  std::optional<TakenVersion> common(const std::vector<Captured>& captured) const;
  TakenVersion takeOnce(TimePoint deadline);
  void disconnect();
  void pause();

  const std::string job_;
  const FindHosts find_hosts_;
  net::CallerLoop loop_;
  std::vector<std::unique_ptr<Host>> hosts_;  // by shard; empty: not connected
  std::optional<arena::ModelDeclaration> model_;
};

}  // namespace dtf::wire
