#pragma once

// Graph files that train: their `minimize`, and steps with checkpoints and summaries.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/engine/session.h"
#include "common/model/read_graph.h"
#include "launcher/graph_feeds.h"
#include "launcher/graph_timeline.h"

namespace dtf::launcher {

// Returns the function that adds a `minimize` of a file: its optimizer is read as a job's, and adds
// the nodes of dtf::Graph::minimize().
model::Minimize minimizer();

using GivesUp = std::shared_ptr<const std::atomic<bool>>;

// Borrows all that it refers to, for the call of runSupervised(). Value type.
struct SupervisedRun {
  const model::GraphSpec& spec;  // with a checkpoint
  GraphFeeds& feeds;
  GraphTimeline* timeline = nullptr;  // null: none
  bool is_fresh = false;              // old checkpoints are set aside, the tasks' variables dropped
  // Opens a session, also after a loss. It stops waiting for tasks when `gives_up` becomes true.
  std::function<std::unique_ptr<engine::Session>(const graph::Graph& graph, GivesUp gives_up)> open;
  // Called with the values of the file's fetches, or of a step that was done before.
  std::function<void(int64_t step, const std::vector<Tensor>& values)> on_step;
  // Called for an event of the run, with a line for people.
  std::function<void(const char* event, int64_t step, const std::string& text)> on_event;
};

// Runs the steps that the checkpoint of log_dir lacks, as a program with dtf::Supervisor does: it
// restores the newest checkpoint, or initialises; saves; writes summaries; goes on after the loss
// of a task. SIGTERM and SIGINT save and end the run, or end the wait for tasks; a second one ends
// the process at once.
// Blocks: on the tasks and the disk.
// Errors: as train::GraphSupervisor; kUnavailable if a signal ended the wait; kUsage if no step was
// recorded for the timeline; kBadConfig at `checkpoint` if a step doesn't count itself.
void runSupervised(const SupervisedRun& run);

}  // namespace dtf::launcher
