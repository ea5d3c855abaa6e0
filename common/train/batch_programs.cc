#include "common/train/batch_programs.h"

#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "common/cluster/batch_plan.h"
#include "common/train/epochs.h"
#include "common/train/initial_values.h"

namespace dtf::train {

namespace {

struct Program {
  model::ModelGraph model;
  engine::TaskPart part;
};

Program programOf(const cluster::TrainSpec& train, const WorkerPlace& place,
                  const ComputeDevice& on, int64_t examples, bool is_short) {
  model::ModelGraph model = graphOf(train, examples, is_short);
  const graph::Placement placement =
      placeModel(model.graph, placementOf(train), place.ps_tasks, place.rank, place.one_process);
  engine::TaskPart part = trainingPart(model, placement, place.rank, on);
  return {std::move(model), std::move(part)};
}

// Compiles one program per size of a share; there are at most two sizes. With fewer examples than
// devices, the last devices get no tower.
TowerGroup makeTowers(const cluster::TrainSpec& train, const WorkerPlace& place,
                      const TowerDevices& devices, const DeviceVariables* kept, int64_t count) {
  const auto examples = static_cast<uint64_t>(count);
  const bool is_short = count != train.data.batch_size;
  const uint64_t towers = std::min<uint64_t>(devices.each.size(), examples);
  std::map<uint64_t, Program> programs;
  std::vector<TowerProgram> each;
  for (uint64_t tower = 0; tower < towers; ++tower) {
    const uint64_t share = cluster::evenShare(examples, towers, tower).count;
    if (!programs.contains(share))
      programs.emplace(share, programOf(train, place, devices.each.at(0),
                                        static_cast<int64_t>(share), is_short));
    const Program& program = programs.at(share);
    each.push_back({program.model, program.part});
  }
  return TowerGroup(each, devices,
                    kept == nullptr ? std::vector<const runtime::KeptVariables*>{} : kept->kept());
}

}  // namespace

BatchPrograms::BatchPrograms(const cluster::TrainSpec& train, const WorkerPlace& place,
                             const TowerDevices& devices, const DeviceVariables* kept,
                             std::span<const int64_t> counts) {
  DTF_CHECK(!counts.empty() && std::ranges::is_sorted(counts, std::greater{}));
  // Throws if a whole batch does not divide evenly.
  if (counts.front() == train.data.batch_size) shareOf(train, devices.each.size());
  groups_.reserve(counts.size());
  for (const int64_t count : counts)
    groups_.push_back(makeTowers(train, place, devices, kept, count));
}

TowerGroup& BatchPrograms::of(int64_t count) {
  const auto found = std::ranges::find(groups_, count, &TowerGroup::examples);
  DTF_CHECK(found != groups_.end());
  return *found;
}

}  // namespace dtf::train
