#pragma once

// Messages of a task to its launcher: one JSON object a line on the file descriptor named by
// DTF_NOTIFY_FD. Without that variable (a task started by hand) every call does nothing. Lines:
//   {"event":"ready"}                                              the task serves, or is connected
//                                                                  to every ps
//   {"event":"progress","step":120,"steps":1000,"loss":0.31,"examples_per_second":81000,
//    "eval_accuracy":0.9}
//   {"event":"model","variables":2,"parameters":7850,"ps_bytes":[31360,40]}
//   {"event":"left_out","records":2,"reasons":["t.csv:3:5: ..."]}  from the chief: records that
//                                                                  can't be read
//   {"event":"evaluation","step":200,"loss":0.29,"accuracy":0.91,"examples":1000}
//   {"event":"waiting","for":"worker/1 in step 12 (says ps/0)","seconds":3.0}
//                                                                  a worker's step, every 3 s; or
//                                                                  "initialising w1: 40 %"; "" when
//                                                                  the wait is over
//   {"event":"finished"}                                           from a worker: its part is done;
//                                                                  it may still host a shard
//   {"event":"worker_lost","worker":"worker/1","reason":"..."}     from a ps: a worker vanished
//   {"event":"result","outcome":"done","global_step":1000,...}     the chief's part of summary.json
//   {"event":"failed","code":"bad_data","message":"..."}           why this task will exit
// Threads: thread-safe. Blocks: notify() for kNotifyPatience (notify_pipe.h) while the launcher
// does not read, notifyIfRoom() never. Lines arrive whole or not at all.

#include <optional>

#include "common/base/clock.h"
#include "common/base/json.h"

namespace dtf {

// Writes one line that the launcher must receive. Reports no error: the loss of the launcher is
// detected elsewhere. If the launcher does not read in time, the line is lost, with a warning in
// the log.
void notify(const Json& line);

// For lines that newer ones soon replace ("progress", "checkpoint"): dropped if the launcher is
// slow.
void notifyIfRoom(const Json& line);

// Sends the event "ready" to dtf-launch or to the service manager (service_manager.h), whichever
// started this task.
void notifyReady();

// Returns whether this process has a launcher.
bool notifyEnabled();

// The start time of the launcher, for "seconds until the first step". markLaunch() records it in
// the environment for the tasks that this process starts on this host (DTF_LAUNCHED_NS,
// CLOCK_MONOTONIC). launchedAt() returns nullopt in a task started by hand.
void markLaunch();
std::optional<TimePoint> launchedAt();

}  // namespace dtf
