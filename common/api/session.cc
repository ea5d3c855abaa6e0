#include "common/engine/session.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/cores.h"
#include "common/base/error.h"
#include "common/engine/local_tasks.h"
#include "common/net/tls_keys.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/wire/session/remote_tasks.h"

namespace {

// The CPU of this process, with all its cores.
struct HostCpu {
  dtf::runtime::ComputePool pool{dtf::availableCores()};
  dtf::runtime::KernelTable kernels;
  dtf::runtime::CpuDevice device;

  HostCpu() { dtf::runtime::registerCpuKernels(kernels, {dtf::bestIsa(), &pool}); }
};

dtf::wire::RemoteTasksOptions remoteOptions(const char* const* targets, size_t count,
                                            const dtf_session_options& wanted) {
  dtf::wire::RemoteTasksOptions options;
  options.targets.assign(targets, targets + count);
  const auto set = [](dtf::Duration& to, double seconds) {
    if (seconds > 0) to = dtf::fromSeconds(seconds);
  };
  set(options.limits.connect_max, wanted.connect_seconds);
  set(options.limits.register_max, wanted.register_seconds);
  set(options.limits.step_max, wanted.step_seconds);
  set(options.limits.abort_max, wanted.abort_seconds);
  using dtf::net::Credentials;
  if (wanted.keys != nullptr && *wanted.keys != '\0')
    options.credentials =
        Credentials::ofKeys(std::make_shared<dtf::net::TlsKeys>(wanted.keys, "client"));
  else
    options.credentials = wanted.insecure != 0 ? Credentials::insecure() : Credentials::ownUser();
  return options;
}

}  // namespace

struct dtf_session {
  std::unique_ptr<HostCpu> host;  // outlives the session; null for sessions on other tasks
  std::unique_ptr<dtf::engine::Session> session;
};

using dtf::api::guarded;

dtf::engine::Session& dtf::api::sessionOf(dtf_session& session) {
  return *session.session;
}

dtf_session* dtf::api::openSession(const graph::Graph& graph, const char* const* targets,
                                   size_t count, const dtf_session_options* options,
                                   std::shared_ptr<const std::atomic<bool>> gives_up) {
  DTF_CHECK(count == 0 || targets != nullptr);
  const dtf_session_options wanted = optionsOf(options, "dtf_session_options");
  quietLog();
  const engine::SessionOptions how{.soft_placement = wanted.soft_placement != 0};
  auto session = std::make_unique<dtf_session>();
  if (count > 0) {
    wire::RemoteTasksOptions remote = remoteOptions(targets, count, wanted);
    remote.wanted = wire::tasksNamedIn(graph);
    remote.gives_up = std::move(gives_up);
    auto tasks = std::make_unique<wire::RemoteTasks>(std::move(remote));
    session->session = std::make_unique<engine::Session>(graph, std::move(tasks), how);
  } else {
    session->host = std::make_unique<HostCpu>();
    const TaskId self{JobKind::kWorker, 0};
    const std::vector<engine::SessionDevice> devices = {
        {graph::fullDevice(self), &session->host->device, &session->host->kernels,
         &session->host->pool}};
    auto tasks = std::make_unique<engine::LocalTasks>(
        std::make_shared<engine::LocalProcess>(devices),
        wanted.step_seconds > 0 ? fromSeconds(wanted.step_seconds) : engine::LocalTasks::kStepMax);
    session->session = std::make_unique<engine::Session>(graph, std::move(tasks), how);
  }
  return session.release();
}

void dtf::api::checkAsks(size_t fetch_count, size_t target_count) {
  if (fetch_count == 0 && target_count == 0)
    throw Error(ErrorCode::kUsage, "nothing to run: name a fetch or a target");
}

std::vector<dtf::engine::Feed> dtf::api::feedsOf(const dtf_feed* feeds, size_t count) {
  DTF_CHECK(count == 0 || feeds != nullptr);
  std::vector<engine::Feed> fed;
  for (size_t i = 0; i < count; ++i) fed.push_back({feeds[i].tensor, &feeds[i].value->tensor});
  return fed;
}

void dtf::api::giveValues(std::vector<Tensor> got, dtf_tensor** values) {
  DTF_CHECK(got.empty() || values != nullptr);
  std::vector<std::unique_ptr<dtf_tensor>> made;
  for (Tensor& tensor : got)
    made.push_back(std::make_unique<dtf_tensor>(dtf_tensor{std::move(tensor)}));
  for (size_t i = 0; i < made.size(); ++i) values[i] = made[i].release();
}

dtf_code dtf_session_open(const dtf_graph* graph, const char* const* targets, size_t count,
                          const dtf_session_options* options, dtf_session** made) {
  return guarded([&] { *made = dtf::api::openSession(graph->graph, targets, count, options); });
}

void dtf_session_free(dtf_session* session) {
  delete session;
}

dtf_code dtf_session_set_variable(dtf_session* session, const char* name, const dtf_tensor* value) {
  return guarded([&] { session->session->setVariable(name, value->tensor); });
}

dtf_code dtf_session_initialize(dtf_session* session, uint64_t seed) {
  return guarded([&] { session->session->initialize(seed); });
}

dtf_code dtf_session_uninitialized(dtf_session* session, char* names, size_t room, size_t* bytes) {
  return guarded([&] {
    std::string text;
    for (const std::string& name : session->session->uninitialized()) text += name + "\n";
    *bytes = text.size() + 1;
    if (room > 0) std::memcpy(names, text.c_str(), std::min(room, *bytes));
  });
}

dtf_code dtf_session_reset(dtf_session* session, const char* container) {
  return guarded([&] { session->session->reset(container); });
}

dtf_code dtf_session_abort(dtf_session* session, const char* why) {
  return guarded([&] {
    session->session->abort(dtf::Error(dtf::ErrorCode::kUnavailable,
                                       "the step was aborted by its client: " + std::string(why)));
  });
}

dtf_code dtf_session_run(dtf_session* session, const dtf_feed* feeds, size_t feed_count,
                         const char* const* fetches, size_t fetch_count, dtf_tensor** values,
                         const char* const* targets, size_t target_count) {
  return guarded([&] {
    dtf::api::checkAsks(fetch_count, target_count);
    const std::vector<dtf::engine::Feed> fed = dtf::api::feedsOf(feeds, feed_count);
    const std::vector<std::string> fetched(fetches, fetches + fetch_count);
    const std::vector<std::string> also(targets, targets + target_count);
    std::vector<dtf::Tensor> got = session->session->run(fed, fetched, also);
    DTF_CHECK(got.size() == fetch_count);
    dtf::api::giveValues(std::move(got), values);
  });
}
