#pragma once

// What a ps says of itself to those who watch over it: people, a service manager, Prometheus.

#include <cstdint>

#include "common/ps/shard.h"
#include "daemons/connection_metrics.h"
#include "daemons/service_watch.h"

namespace dtf::psd {

// What there is to say, from both loops.
struct PsReport {
  ps::ShardStatus shard;
  uint64_t elements = 0;  // of the shard's parameters
  daemons::ConnectionLoad control, bulk;
};

// A ps is ready while it holds values: then workers can pull and push. That one of them is missing
// is no lack of the ps.
daemons::ServiceLook lookOf(const PsReport& report);

}  // namespace dtf::psd
