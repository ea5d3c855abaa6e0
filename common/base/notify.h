#pragma once

// What a task tells its launcher: one JSON object a line on the file descriptor named by
// DTF_NOTIFY_FD. Without that variable (a task started by hand) every call does nothing. Lines:
//   {"event":"ready"}                                              the task serves, or is connected
//                                                                  to every ps
//   {"event":"progress","step":120,"steps":1000,"loss":0.31,"examples_per_second":81000,
//    "eval_accuracy":0.9}
//   {"event":"model","variables":2,"parameters":7850,"ps_bytes":[31360,40]}
//   {"event":"evaluation","step":200,"loss":0.29,"accuracy":0.91,"examples":1000}
//   {"event":"waiting","for":"worker/1 in step 12 (says ps/0)","seconds":3.0}
//                                                                  a worker's step, every 3 s; or
//                                                                  "initialising w1: 40 %", or "":
//                                                                  nothing any more
//   {"event":"worker_lost","worker":"worker/1","reason":"..."}     a ps, of a worker that vanished
//   {"event":"result","outcome":"done","global_step":1000,...}     the chief's part of summary.json
//   {"event":"failed","code":"bad_data","message":"..."}           why this task is about to exit
// Threads: thread-safe. Blocks: notify() for kNotifyPatience (notify_pipe.h) while the launcher
// does not read, notifyIfRoom() never. Lines arrive whole or not at all.

#include <optional>

#include "common/base/clock.h"
#include "common/base/json.h"

namespace dtf {

// Writes one line that the launcher must get. No error: a launcher that is gone is noticed
// elsewhere; one that does not read in time costs the line, and a warning in the log.
void notify(const Json& line);

// For lines that are soon replaced by newer ones ("progress", "checkpoint"): dropped when the
// launcher is slow.
void notifyIfRoom(const Json& line);

// The event "ready", for dtf-launch or for the service manager (service_manager.h), whichever has
// started this task.
void notifyReady();

// True when a launcher listens.
bool notifyEnabled();

// When the launcher started, for "seconds until the first step": markLaunch() puts the time where
// the tasks that this process starts on this host find it (DTF_LAUNCHED_NS, CLOCK_MONOTONIC).
// nullopt for a task started by hand.
void markLaunch();
std::optional<TimePoint> launchedAt();

}  // namespace dtf
