#include "daemons/workerd/chief_findings.h"

#include <vector>

#include "common/checkpoint/checkpoint_client.h"
#include "common/ps/parameter_digest.h"
#include "common/train/chief_decision.h"

namespace dtf::workerd {

Error lostForGood(size_t ps_tasks, uint32_t ps_task) {
  std::vector<checkpoint::HeldValues> held(ps_tasks, {ps::kFirstEpoch});
  held.at(ps_task) = {};
  try {
    train::decideAsChief(held, {.epoch = ps::kFirstEpoch});
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "a ps without its values was treated as if it held them"};
}

uint64_t digestOf(const ps::ParameterLayout& layout, ps::ParameterClient& client) {
  const bool is_whole = client.bringsWhole();
  if (!is_whole) client.pullWhole();
  return ps::parameterDigest(
      layout, [&](uint32_t ps) { return is_whole ? client.parameters(ps) : client.whole(ps); });
}

}  // namespace dtf::workerd
