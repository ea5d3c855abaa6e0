#pragma once

// What a task did in a step, to and from the schema.

#include "common/base/ids.h"
#include "common/base/step_trace.h"
#include "common/wire/parts.capnp.h"

namespace dtf::wire {

void encodeTrace(const trace::TaskTrace& trace, schema::PartTrace::Builder builder);

// `is_given`: the task's answer has one; else the reader is not looked at, as it is of a task of an
// earlier version.
// Errors: kInternal that names `task`, for what no task of ours says.
trace::TaskTrace decodeTrace(TaskId task, bool is_given, schema::PartTrace::Reader reader);

}  // namespace dtf::wire
