#pragma once

// The trace of a task's step, to and from the schema.

#include "common/base/ids.h"
#include "common/base/step_trace.h"
#include "common/wire/parts.capnp.h"

namespace dtf::wire {

void encodeTrace(const trace::TaskTrace& trace, schema::PartTrace::Builder builder);

// `is_given`: the reply contains a trace. A task of an earlier version sends none, and the reader
// is then not read.
// Errors: kInternal with the name of `task`, for a trace that no version sends.
trace::TaskTrace decodeTrace(TaskId task, bool is_given, schema::PartTrace::Reader reader);

}  // namespace dtf::wire
