#pragma once

// What a ps says of itself to those who watch over it: people, a service manager, Prometheus.

#include <cstdint>

#include "common/host/ps_server.h"
#include "daemons/service_watch.h"

namespace dtf::daemons {

// A ps is ready while it holds values: then workers can pull and push. That one of them is missing
// is no lack of the ps.
ServiceLook lookOf(const host::PsReport& report);

}  // namespace dtf::daemons
