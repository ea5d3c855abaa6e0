#include "common/train/imported_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/arena/initial_value.h"
#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/data/data_files.h"
#include "common/data/read_signature.h"
#include "common/data/table_preparation.h"
#include "common/model_files/trained_model.h"
#include "common/optimizer/gradient_math.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/optimizer.h"
#include "common/replication/replication_rules.h"
#include "common/train/checkpointer.h"
#include "common/train/initial_values.h"
#include "common/yaml/error_at.h"

namespace dtf::train {

namespace {

using checkpoint::TensorPart;
using model_files::NamedTensor;

// A single ps with values of step 0, which can only be saved.
class RestingPs final : public checkpoint::CheckpointClient {
 public:
  RestingPs(FileSystem& file_system, std::filesystem::path folder,
            const arena::ModelDeclaration& model, uint32_t workers, std::vector<TensorPart> parts)
      : file_system_(file_system),
        folder_(std::move(folder)),
        position_(
            replication::cutKind(model.replication) == replication::CutKind::kAtStep ? 1 : workers),
        parts_(std::move(parts)) {}

  std::vector<CutPosition> positions(bool) override { return {position_}; }
  void releaseHold() override {}
  void startCut(const CutPosition& position, uint64_t) override {
    DTF_CHECK(position == position_);
  }
  std::optional<uint64_t> awaitCut() override { return 0; }
  std::vector<checkpoint::SavedShard> save(const std::string& folder, const CutPosition&) override {
    checkpoint::SavedShard saved;
    saved.file = checkpoint::writeShard(file_system_, folder_ / folder, 0, 1, parts_);
    return {saved};
  }

  // An import never calls these.
  std::vector<checkpoint::PsState> held() override { never(); }
  checkpoint::ShardTransfer& transfer() override { never(); }
  checkpoint::StayingShards& staying() override { never(); }
  std::vector<bool> see(const std::string&) override { never(); }
  void callOffCuts() override { never(); }
  void interruptCuts() override { never(); }
  std::vector<checkpoint::KeptSnapshot> snapshot(
      const checkpoint::CutName&, const CutPosition&,
      const std::optional<checkpoint::CutName>&) override {
    never();
  }
  void forgetSnapshots() override { never(); }
  void refill(const std::vector<uint32_t>&, uint64_t) override { never(); }
  void awaitReplicas(uint64_t) override { never(); }
  void restore(const checkpoint::GoingBack&) override { never(); }

 private:
  [[noreturn]] static void never() { DTF_CHECK_MSG(false, "an import only saves"); }

  FileSystem& file_system_;
  const std::filesystem::path folder_;
  const CutPosition position_;
  const std::vector<TensorPart> parts_;
};

std::string listText(const ImportReport& report) {
  std::string text;
  for (const std::string& line : report.drawn) text += "\n  missing: " + line;
  for (const std::string& line : report.unused) text += "\n  not used: " + printable(line);
  return text;
}

// Returns the values of all variables, in the model's order, and fills in `report`.
std::vector<NamedTensor> valuesOf(const model::ModelGraph& model,
                                  const model_files::WantedModel& wanted, uint64_t seed,
                                  const model_files::FoundWeights& weights, ImportReport& report) {
  DTF_CHECK(wanted.variables.size() == model.variables.size());
  model_files::WeightMatch match = model_files::matchWeights(wanted, weights);
  report.unused = std::move(match.unused);
  std::vector<NamedTensor> values;
  for (uint32_t i = 0; i < wanted.variables.size(); ++i) {
    const model_files::WantedWeights& variable = wanted.variables[i];
    const graph::Node& node = model.graph.node(model.variables[i].value.node);
    DTF_CHECK_MSG(node.name == variable.name, node.name);
    const std::string title = fmt::format("{} {}", variable.name, variable.shape.str());
    std::optional<model_files::MatchedWeights>& found = match.found[i];
    Tensor value = found ? std::move(found->value)
                         : arena::initialValue(node.attribute<std::string>("initializer"),
                                               variable.shape, seed, i);
    if (found)
      report.used.push_back(fmt::format("{} from {}", title, found->from));
    else
      report.drawn.push_back(title);
    if (const auto bad = optimizer::firstNonFinite(value.as<float>()))
      throw Error(ErrorCode::kBadData, fmt::format("{}: element {} is {}: nothing can be trained "
                                                   "from that",
                                                   title, *bad, value.as<float>()[*bad]));
    values.push_back({variable.name, std::move(value)});
  }
  return values;
}

// The tensors of a checkpoint on one ps, before any update.
class InitialParts {
 public:
  InitialParts(const arena::ModelDeclaration& declaration, const std::vector<NamedTensor>& values) {
    const std::vector<arena::VariableInfo>& variables = declaration.layout.variables;
    DTF_CHECK(variables.size() == values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      DTF_CHECK_MSG(variables[i].name == values[i].name, values[i].name);
      add(values[i].name, values[i].value);
      for (uint32_t slot = 0; slot < optimizer::slotCount(declaration.optimizer, variables[i]);
           ++slot)
        addSlot(declaration.optimizer, slot, values[i]);
    }
  }
  std::vector<TensorPart> take() { return std::move(parts_); }

 private:
  void add(const std::string& name, const Tensor& value) {
    const std::span<const float> all = value.as<float>();
    parts_.push_back({name, value.shape(), 0, all.size(), all.data()});
  }

  void addSlot(const cluster::OptimizerSpec& optimizer, uint32_t slot,
               const NamedTensor& variable) {
    const std::string name = variable.name + "/" + optimizer::slotName(optimizer, slot);
    if (optimizer::isMovingAverage(optimizer, slot)) return add(name, variable.value);
    slots_.emplace_back(DType::kFloat32, variable.value.shape());
    const std::span<float> all = slots_.back().as<float>();
    std::fill(all.begin(), all.end(), optimizer::initialSlotValue(optimizer, slot));
    add(name, slots_.back());
  }

  std::vector<TensorPart> parts_;
  std::vector<Tensor> slots_;
};

void requirePlace(FileSystem& file_system, const cluster::JobSpec& job) {
  if (!job.train->checkpoint)
    throw yaml::ErrorAt(
        ErrorCode::kBadConfig, job.train->model.mark,
        "weights are imported as the first checkpoint, and this job keeps none: leave out "
        "'checkpoint: none' in 'train'");
  checkpoint::CheckpointFolder folder(file_system, job.run_dir / "checkpoints",
                                      Incarnation::ofNow());
  if (!folder.steps().empty())
    throw Error(
        ErrorCode::kBadConfig,
        fmt::format("there are checkpoints in {}: the job goes on from these; give it another "
                    "run_dir to start from imported weights",
                    folder.path().string()));
}

// Returns the signature for the checkpoint: of the job's data, or the file's if the data are not on
// this host. The targets may differ if a layer is drawn anew.
// Errors: as data::readSignature(); kBadConfig, with both sides, if file and data differ.
std::optional<data::DataSignature> signatureFor(const cluster::DatasetSpec& train,
                                                const model_files::FoundWeights& weights,
                                                const ImportReport& report) {
  std::optional<data::DataSignature> of_file;
  if (!weights.signature.empty())
    of_file = data::decodeSignature(weights.signature, "the file of weights");
  const bool is_there = data::missingPath(train).empty();
  if (!is_there) return report.drawn.empty() ? of_file : std::nullopt;
  data::DataSignature of_job =
      data::readSignature(of_file ? data::withLearnedOf(*of_file, train) : train);
  if (!of_file) return of_job;
  if (!report.drawn.empty()) of_file->targets = of_job.targets;
  const std::string difference = data::signatureDifference(*of_file, of_job, "the job's data");
  if (!difference.empty())
    throw Error(
        ErrorCode::kBadConfig,
        "the weights are of a model that reads other numbers than the job's:\n" + difference);
  return of_job;
}

}  // namespace

ImportReport saveImported(FileSystem& file_system, const Clock& clock, const cluster::JobSpec& job,
                          const model_files::FoundWeights& weights) {
  DTF_CHECK(job.train.has_value());
  const cluster::TrainSpec& train = *job.train;
  requirePlace(file_system, job);
  ImportReport report;
  const model::ModelGraph model = trainingGraphOf(train);
  const std::vector<NamedTensor> values =
      valuesOf(model, model_files::wantedWeights(train.model), train.data.seed, weights, report);
  if (report.used.empty())
    throw Error(ErrorCode::kBadConfig,
                "none of the tensors is a variable of the model:" + listText(report));
  const auto workers = static_cast<uint32_t>(job.cluster.worker.size());
  cluster::PlacementSpec on_one;
  on_one.partition_min_bytes = 0;
  const arena::ModelDeclaration declaration = declarationOf(
      train, layoutOf(model, placeModel(model.graph, on_one, 1, kChief.index, true)), workers);
  InitialParts parts(declaration, values);
  RestingPs ps(file_system, job.run_dir / "checkpoints", declaration, workers, parts.take());
  Checkpointer checkpointer(
      file_system, clock, ps, declaration,
      {job.job, job.run_dir, Incarnation::ofNow(), workers, train.checkpoint, train.data,
       train.model, false, false, false, signatureFor(train.data.train, weights, report)});
  checkpointer.save(Motion::kAtRest);
  report.checkpoint = job.run_dir / "checkpoints" / "step-0";
  return report;
}

}  // namespace dtf::train
