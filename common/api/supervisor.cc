#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/api/dtf/training.h"
#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/error.h"
#include "common/train/graph_supervisor.h"
#include "common/train/signal_watch.h"

namespace {

dtf_supervisor_options read(const dtf_supervisor_options* options) {
  dtf_supervisor_options wanted{};
  if (options == nullptr || options->size < sizeof(options->size) || options->size > sizeof(wanted))
    throw dtf::Error(dtf::ErrorCode::kUsage,
                     "dtf_supervisor_options is missing, or its size is not " +
                         std::to_string(sizeof(wanted)) +
                         " or less: set it, or build with the headers of this libdtf");
  std::memcpy(&wanted, options, options->size);
  return wanted;
}

dtf::train::GraphSupervisorOptions optionsOf(const dtf_supervisor_options& given) {
  dtf::train::GraphSupervisorOptions wanted;
  wanted.is_chief = given.is_chief != 0;
  if (given.task != nullptr && *given.task != 0) wanted.task = given.task;
  if (given.log_dir != nullptr) wanted.log_dir = given.log_dir;
  wanted.seed = given.seed;
  const auto every = [](std::optional<dtf::Duration>& to, double seconds) {
    if (seconds < 0) to.reset();
    if (seconds > 0) to = dtf::fromSeconds(seconds);
  };
  every(wanted.save_every, given.save_seconds);
  every(wanted.summarize_every, given.summary_seconds);
  if (given.wait_seconds > 0) wanted.wait_max = dtf::fromSeconds(given.wait_seconds);
  if (given.poll_seconds > 0) wanted.poll_every = dtf::fromSeconds(given.poll_seconds);
  for (size_t i = 0; i < given.summaries_count; ++i)
    wanted.summaries.emplace_back(given.summaries[i]);
  if (given.job != nullptr && *given.job != 0) wanted.saver.job = given.job;
  if (given.global_step != nullptr && *given.global_step != 0)
    wanted.saver.global_step = given.global_step;
  if (given.max_to_keep < -1 || given.max_to_keep > UINT32_MAX)
    throw dtf::Error(dtf::ErrorCode::kUsage,
                     "max_to_keep is " + std::to_string(given.max_to_keep) +
                         ", but must be a number of checkpoints, 0 for 5, or -1 for all");
  if (given.max_to_keep != 0)
    wanted.saver.max_to_keep = given.max_to_keep < 0 ? 0 : static_cast<uint32_t>(given.max_to_keep);
  return wanted;
}

// The settings of a session, which is opened again after a loss.
struct Opening {
  std::vector<std::string> targets;
  std::string keys;
  dtf_session_options options{};

  dtf_session* open(const dtf::graph::Graph& graph,
                    std::shared_ptr<const std::atomic<bool>> gives_up) const {
    std::vector<const char*> texts;
    for (const std::string& target : targets) texts.push_back(target.c_str());
    dtf_session_options how = options;
    if (how.size >= offsetof(dtf_session_options, keys) + sizeof(how.keys))
      how.keys = keys.empty() ? nullptr : keys.c_str();
    return dtf::api::openSession(graph, texts.data(), texts.size(), &how, std::move(gives_up));
  }
};

}  // namespace

struct dtf_supervisor {
  explicit dtf_supervisor(const dtf_supervisor_options& given)
      : supervisor(dtf::realFileSystem(), optionsOf(given)) {
    if (given.handle_signals != 0) signals = std::make_unique<dtf::train::SignalWatch>(supervisor);
  }

  dtf::train::GraphSupervisor supervisor;
  Opening opening;
  std::shared_ptr<dtf_session> session;              // shared with the supervisor
  std::unique_ptr<dtf::train::SignalWatch> signals;  // null: the program handles them
};

using dtf::api::guarded;

dtf_code dtf_supervisor_new(const dtf_supervisor_options* options, dtf_supervisor** made) {
  return guarded([&] {
    const dtf_supervisor_options given = read(options);
    *made = std::make_unique<dtf_supervisor>(given).release();
  });
}

void dtf_supervisor_free(dtf_supervisor* supervisor) {
  delete supervisor;
}

dtf_code dtf_supervisor_prepare(dtf_supervisor* supervisor, const dtf_graph* graph,
                                const char* const* targets, size_t count,
                                const dtf_session_options* options) {
  return guarded([&] {
    Opening& opening = supervisor->opening;
    opening.targets.assign(targets, targets + count);
    opening.options = {};
    opening.options.size = sizeof(opening.options);
    if (options != nullptr) {
      if (options->size < sizeof(options->size) || options->size > sizeof(opening.options))
        throw dtf::Error(dtf::ErrorCode::kUsage,
                         "dtf_session_options.size is " + std::to_string(options->size) +
                             ": set it, or build with the headers of this libdtf");
      std::memcpy(&opening.options, options, options->size);
      opening.options.size = sizeof(opening.options);
    }
    if (opening.options.keys != nullptr) opening.keys = opening.options.keys;
    const auto open = [supervisor](const dtf::graph::Graph& of) {
      std::shared_ptr<dtf_session> made(
          supervisor->opening.open(of, supervisor->supervisor.givesUp()), dtf_session_free);
      // The small session of the supervisor itself is opened after the program's.
      const bool is_programs = of.find(dtf::train::kReadyVariable) == nullptr;
      if (is_programs) supervisor->session = made;
      return std::shared_ptr<dtf::engine::Session>(made, &dtf::api::sessionOf(*made));
    };
    supervisor->supervisor.prepare(graph->graph, open, count == 0);
  });
}

dtf_session* dtf_supervisor_session(dtf_supervisor* supervisor) {
  return supervisor->session.get();
}

dtf_code dtf_supervisor_run(dtf_supervisor* supervisor, const dtf_feed* feeds, size_t feed_count,
                            const char* const* fetches, size_t fetch_count, dtf_tensor** values,
                            const char* const* targets, size_t target_count, int* recovered) {
  return guarded([&] {
    dtf::api::checkAsks(fetch_count, target_count);
    const std::vector<dtf::engine::Feed> fed = dtf::api::feedsOf(feeds, feed_count);
    const std::vector<std::string> fetched(fetches, fetches + fetch_count);
    const std::vector<std::string> also(targets, targets + target_count);
    std::fill(values, values + fetch_count, nullptr);
    auto got = supervisor->supervisor.run(fed, fetched, also);
    *recovered = got ? 0 : 1;
    DTF_CHECK(!got || got->size() == fetch_count);
    if (got) dtf::api::giveValues(*std::move(got), values);
  });
}

dtf_code dtf_supervisor_global_step(dtf_supervisor* supervisor, int64_t* step) {
  return guarded([&] { *step = supervisor->supervisor.globalStep(); });
}

dtf_code dtf_supervisor_save(dtf_supervisor* supervisor) {
  return guarded([&] { supervisor->supervisor.save(); });
}

void dtf_supervisor_request_stop(dtf_supervisor* supervisor) {
  supervisor->supervisor.requestStop();
}

dtf_code dtf_supervisor_abort(dtf_supervisor* supervisor, const char* why) {
  return guarded([&] {
    supervisor->supervisor.requestStop();
    supervisor->supervisor.abortStep(why);
  });
}

int dtf_supervisor_should_stop(const dtf_supervisor* supervisor) {
  return supervisor->supervisor.shouldStop() ? 1 : 0;
}

dtf_code dtf_supervisor_stop(dtf_supervisor* supervisor) {
  return guarded([&] { supervisor->supervisor.stop(); });
}
