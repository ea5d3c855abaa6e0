#include "common/replication/phase_json.h"

#include "common/replication/membership.h"

namespace dtf::replication {

namespace {

double milliseconds(Duration time) {
  return 1e3 * toSeconds(time);
}

}  // namespace

Json phasesJson(const PhaseTimes& times) {
  Json json = Json::object();
  for (size_t i = 0; i < kPhaseNames.size(); ++i)
    json[kPhaseNames[i]] = milliseconds(times.each[i]);
  return json;
}

Json stragglerJson(const std::optional<Straggler>& straggler) {
  if (!straggler) return nullptr;
  return {{"worker", workerName(straggler->rank)},
          {"phase", phaseName(straggler->phase)},
          {"excess_ms", milliseconds(straggler->excess)}};
}

}  // namespace dtf::replication
