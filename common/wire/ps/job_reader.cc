#include "common/wire/ps/job_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/net/buffer_pool.h"
#include "common/net/connector.h"
#include "common/net/error_bridge.h"
#include "common/net/message_stream.h"
#include "common/net/rpc_connection.h"
#include "common/net/timer.h"
#include "common/replication/replication_rules.h"
#include "common/wire/arena_codec.h"
#include "common/wire/message_limits.h"
#include "common/wire/model_codec.h"
#include "common/wire/named_wait.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

namespace {

constexpr Duration kAgainAfter = std::chrono::milliseconds(100);
constexpr Duration kPieceWithin = std::chrono::seconds(30);
constexpr uint64_t kPieceElements = uint64_t{4} << 20;
constexpr uint64_t kAheadMax = 1 << 16;

// Returns the time left until `deadline`, at least a moment, in which a peer on this host replies.
Duration leftUntil(TimePoint deadline, TimePoint now) {
  return std::max<Duration>(deadline - now, std::chrono::milliseconds(10));
}

// Names the host in the error of a connection that broke.
kj::Promise<void> ofHost(const std::string& host, kj::Promise<void> call) {
  return call.catch_([host](kj::Exception&& exception) {
    if (net::carriesError(exception)) kj::throwFatalException(kj::mv(exception));
    const Error error = net::toError(exception);
    net::throwAsKj(Error(error.code(), host + ": " + error.message()));
  });
}

}  // namespace

struct JobReader::Host {
  std::string name;
  std::unique_ptr<net::RpcConnection> connection;
  std::optional<schema::PsReader::Client> reader;
};

JobReader::JobReader(std::string job, FindHosts find_hosts, net::Credentials credentials)
    : job_(std::move(job)),
      find_hosts_(std::move(find_hosts)),
      loop_(Duration{0}, std::move(credentials)) {
  DTF_CHECK(find_hosts_ != nullptr);
}

JobReader::~JobReader() {
  disconnect();
}

void JobReader::disconnect() {
  loop_.call([this] { hosts_.clear(); });
}

const arena::ModelDeclaration& JobReader::model() const {
  DTF_CHECK(model_.has_value());
  return *model_;
}

TakenVersion JobReader::take(Duration patience) {
  const TimePoint deadline = loop_.clock().now() + patience;
  std::optional<Error> reason;  // of the attempts so far
  while (true) {
    try {
      return takeOnce(deadline);
    } catch (const Error& error) {
      // A host that starts again has another connection, and perhaps another model.
      disconnect();
      const bool may_pass = error.code() == ErrorCode::kUnavailable;
      if (may_pass) reason = error;
      // A last attempt has little time, and its own deadline is no reason.
      if (error.code() == ErrorCode::kDeadline && reason) throw Error(*reason);
      if (!may_pass || loop_.clock().now() + kAgainAfter >= deadline) throw;
    }
    pause();
  }
}

void JobReader::pause() {
  loop_.call([this] { return loop_.timer().afterDelay(net::toKj(kAgainAfter)); });
}

// Captures the newest version of each shard. If their steps differ, it names a step that is a
// little ahead, which each shard captures as it comes there, and looks further ahead while the
// training overtakes the calls.
TakenVersion JobReader::takeOnce(TimePoint deadline) {
  const auto now = [this] { return loop_.clock().now(); };
  if (hosts_.empty()) {
    const std::vector<ListeningTask> tasks = find_hosts_();
    for (size_t shard = 0; shard < tasks.size(); ++shard)
      connect(tasks, shard, leftUntil(deadline, now()));
  }
  std::vector<Captured> captured = capture(std::nullopt, leftUntil(deadline, now()));
  uint64_t newest = 0;
  for (uint64_t ahead = 0;;) {
    if (const std::optional<TakenVersion> version = common(captured)) return *version;
    uint64_t step = 0;
    for (const Captured& of_host : captured) step = std::max(step, of_host.version.step);
    if (now() >= deadline)
      throw Error(ErrorCode::kDeadline,
                  fmt::format("the {} hosts of the parameters came to no common step in time; the "
                              "newest was {}",
                              hosts_.size(), step));
    // Shards without common steps only differ in their epochs, while the job goes back.
    if (!replication::sharesSteps(model().replication)) {
      pause();
      captured = capture(std::nullopt, leftUntil(deadline, now()));
      continue;
    }
    ahead = step > std::exchange(newest, step) ? std::min(2 * ahead + 1, kAheadMax) : 0;
    captured = capture(step + ahead, leftUntil(deadline, now()));
  }
}

std::optional<TakenVersion> JobReader::common(const std::vector<Captured>& captured) const {
  const bool shares_steps = replication::sharesSteps(model().replication);
  TakenVersion version = captured.at(0).version;
  for (const Captured& of_host : captured) {
    if (!of_host.is_captured || of_host.version.epoch != version.epoch) return std::nullopt;
    if (shares_steps && of_host.version.step != version.step) return std::nullopt;
    version.step = std::min(version.step, of_host.version.step);
  }
  return version;
}

void JobReader::connect(const std::vector<ListeningTask>& tasks, size_t shard, Duration patience) {
  const ListeningTask& task = tasks[shard];
  Host* const host = hosts_.emplace_back(std::make_unique<Host>()).get();
  host->name = fmt::format("{} ({})", task.task.name(), task.address.str());
  std::string not_yet;
  loop_.call([&] {
    return awaitNamed(
        loop_.timer(), {host->name + " to reply to a reader", patience},
        ofHost(host->name,
               loop_
                   .connect(task.address.host, task.address.port,
                            {.kind = net::ConnectionKind::kBulk,
                             .peer_name = task.task.name(),
                             .deadline = patience,
                             .certified_task = task.task.name()},
                            kAnswerLimits, net::BufferPool::create(kPieceElements * sizeof(float)))
                   .then([&](kj::Own<net::MessageStream> stream) {
                     host->connection = std::make_unique<net::RpcConnection>(
                         kj::mv(stream), net::RpcOptions{.peer = host->name});
                     auto request =
                         host->connection->bootstrap().castAs<schema::PsDataGate>().readRequest();
                     request.setJob(job_);
                     return request.send();
                   })
                   .then([&](capnp::Response<schema::PsDataGate::ReadResults>&& response) {
                     not_yet = response.getNotYet();
                     if (!not_yet.empty()) return;
                     net::bridgeErrors([&] {
                       if (response.getShard() != shard)
                         throw Error(
                             ErrorCode::kBadConfig,
                             fmt::format("{} holds shard {} of the job, not {}: the cluster file "
                                         "has its hosts in another order",
                                         host->name, response.getShard(), shard));
                       arena::ModelDeclaration model = decodeModel(response.getModel());
                       if (model.layout.shards.size() != tasks.size())
                         throw Error(
                             ErrorCode::kBadConfig,
                             fmt::format("{} trains a model on {} hosts, not on the {} of the "
                                         "cluster file",
                                         host->name, model.layout.shards.size(), tasks.size()));
                       model_ = std::move(model);
                     });
                     host->reader = response.getReader();
                   })));
  });
  if (!not_yet.empty()) throw Error(ErrorCode::kUnavailable, not_yet);
}

std::vector<JobReader::Captured> JobReader::capture(std::optional<uint64_t> step,
                                                    Duration patience) {
  std::vector<Captured> captured(hosts_.size());
  loop_.call([&] {
    kj::Vector<kj::Promise<void>> calls;
    for (size_t shard = 0; shard < hosts_.size(); ++shard) {
      auto request = hosts_[shard]->reader->captureRequest();
      request.setNewest(!step.has_value());
      request.setStep(step.value_or(0));
      calls.add(awaitNamed(
          loop_.timer(), {hosts_[shard]->name + " to keep a version", patience},
          ofHost(
              hosts_[shard]->name,
              request.send().then(
                  [captured = &captured[shard]](
                      capnp::Response<schema::PsReader::CaptureResults>&& response) {
                    *captured = {response.getCaptured(), {response.getStep(), response.getEpoch()}};
                  }))));
    }
    return joinAll(kj::mv(calls));
  });
  return captured;
}

void JobReader::read(uint32_t index, std::vector<float>& values) {
  const arena::ParameterLayout& layout = model().layout;
  values.resize(static_cast<size_t>(layout.variables.at(index).shape.elements()));
  if (hosts_.empty()) throw Error(ErrorCode::kUnavailable, "no version is taken: take one again");
  for (size_t shard = 0; shard < hosts_.size(); ++shard)
    for (const arena::Slice& slice : layout.shards[shard].slices) {
      if (slice.variable != index) continue;
      for (uint64_t done = 0; done < slice.count; done += kPieceElements) {
        const uint64_t count = std::min(kPieceElements, slice.count - done);
        // An arena is padded to the alignment.
        const uint64_t asked =
            (count + arena::kSliceAlignment - 1) / arena::kSliceAlignment * arena::kSliceAlignment;
        loop_.call([&] {
          auto request = hosts_[shard]->reader->valuesRequest();
          request.setOffset(slice.offset + done);
          request.setCount(asked);
          return awaitNamed(
              loop_.timer(), {hosts_[shard]->name + " to send parameters", kPieceWithin},
              ofHost(hosts_[shard]->name,
                     request.send().then(
                         [&](capnp::Response<schema::PsReader::ValuesResults>&& response) {
                           net::bridgeErrors([&] {
                             Buffer assembled;
                             const auto piece = readArena(response.getValues(), asked, assembled);
                             std::copy_n(
                                 piece.begin(), count,
                                 values.begin() + static_cast<ptrdiff_t>(slice.begin + done));
                           });
                         })));
        });
      }
    }
}

}  // namespace dtf::wire
