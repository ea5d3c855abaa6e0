#pragma once

// What the chief concludes from its ps.

#include <cstddef>
#include <cstdint>

#include "common/base/error.h"
#include "common/ps/parameter_client.h"
#include "common/ps/parameter_layout.h"

namespace dtf::workerd {

// Why a job that nobody supervises ends when one of its ps holds nothing: nothing else does,
// either.
Error lostForGood(size_t ps_tasks, uint32_t ps_task);

// The digest of the parameters that the last pull() brought, sparse ones whole.
// Blocks, errors: as ParameterClient::pullWhole().
uint64_t digestOf(const ps::ParameterLayout& layout, ps::ParameterClient& client);

}  // namespace dtf::workerd
