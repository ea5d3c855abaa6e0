#pragma once

// The devices of a task that serves, and its limits, from its cluster file.

#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "common/engine/local_tasks.h"
#include "common/runtime/computing_device.h"
#include "common/serving/part_server.h"

namespace dtf::serving {

using ComputingDevices = std::vector<std::unique_ptr<runtime::ComputingDevice>>;

// Each device gets its share of the task's threads, as in a worker that trains.
// Errors: kUnavailable if the host lacks a GPU, or gives fewer threads.
ComputingDevices makeDevices(const cluster::ClusterSpec& cluster, TaskId task);

// Returns the devices as sessions name them. Borrows: `devices`.
std::vector<engine::SessionDevice> sessionDevices(TaskId task, const ComputingDevices& devices);

// Returns the options of the task's server. Its memory is the task's share of three quarters of the
// host's, among the cluster's tasks on this host. `attempt`: the number of this start, or 0.
PartServerOptions serverOptions(const cluster::ClusterSpec& cluster, TaskId task, uint32_t attempt);

// Bounds the sessions of clients, and lets in the connections that they need in a cluster of so
// many tasks. From 1 to cluster::kSessionsMaxMost.
void setSessionsMax(size_t sessions, size_t tasks, ServeLimits& limits);

// Bounds the memory of all sessions. Tensors that wait for their receivers have a quarter of it.
void setBytesMax(uint64_t bytes, ServeLimits& limits);

}  // namespace dtf::serving
