#include "common/host/checkpoint_service.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/checksum.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/wire/checkpoint_codec.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/still_loop.h"

namespace dtf::host {
namespace {

using Mode = cluster::ReplicationSpec::Mode;

constexpr Incarnation kChiefProcess{5};
constexpr uint64_t kOnlyElements = 16;
const std::filesystem::path kSavedFolder = "/run/checkpoints";

arena::ModelDeclaration modelOf(Mode mode) {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(
      {{"v", Shape{static_cast<int64_t>(kOnlyElements)}, {{0, 0, kOnlyElements}}}}, 1);
  model.optimizer.kind = cluster::OptimizerSpec::Kind::kGradientDescent;
  model.optimizer.learning_rate = 1;
  model.steps = 20;
  model.replication = {mode, mode == Mode::kSync ? 2u : 0u, mode == Mode::kSync ? 2u : 0u};
  return model;
}

// The only ps of a job of two workers, and the chief's checkpoint session with it.
class CheckpointServiceTest : public ::testing::Test {
 protected:
  CheckpointServiceTest() {
    disk_.makeFolder("/run");
    folder_.prepare();
    startPs();
  }
  ~CheckpointServiceTest() noexcept override { host_->stop(); }

  // Starts a ps without values, as after a restart.
  void startPs() {
    if (host_ != nullptr) host_->stop();
    host_ = std::make_unique<ShardHost>(loop_, loop_, loop_);
    host_->start({.workers = 2}, std::make_unique<optimizer::InlineUpdateRunner>(), nullptr,
                 nullptr);
    for (const uint32_t rank : {0u, 1u}) shard().workers().join(rank, kChiefProcess);
    session_ = makeCheckpoint(*host_, options_, kChiefProcess);
  }
  shard::Shard& shard() { return host_->shard(); }

  // Returns the error of a call; "" if it succeeds.
  template <class Request>
  std::string refusal(Request request) {
    std::string text = "waits";
    auto done = request.send()
                    .then([&](auto&&) { text = ""; },
                          [&](kj::Exception&& e) { text = net::toError(e).message(); })
                    .eagerlyEvaluate(nullptr);
    loop_.settle();
    return text;
  }
  std::string save(const std::string& folder, uint64_t step = 0) {
    auto request = session_->saveRequest();
    request.setFolder(folder.c_str());
    request.initPosition(1).set(0, step);
    return refusal(kj::mv(request));
  }
  std::string restore(const std::string& folder) {
    auto request = session_->restoreRequest();
    request.setFolder(folder.c_str());
    return refusal(kj::mv(request));
  }
  std::string commit(uint64_t epoch = replication::nextEpoch(replication::kFirstEpoch, 0)) {
    auto request = session_->commitRestoreRequest();
    request.setEpoch(epoch);
    request.setCutEpoch(replication::kFirstEpoch);
    return refusal(kj::mv(request));
  }

  // Saves a checkpoint of parameters that are all 0.5, at step 0 of a sync job. Returns its folder.
  std::string saved() {
    shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
    shard().initialise(0, kChiefProcess, std::vector<float>(kOnlyElements, 0.5F));
    auto cut = session_->cutRequest();
    cut.initPosition(1).set(0, 0);
    cut.setEpoch(replication::kFirstEpoch);
    EXPECT_EQ(refusal(kj::mv(cut)), "");
    const std::string attempt = folder_.beginAttempt(0);
    auto request = session_->saveRequest();
    request.setFolder(attempt.c_str());
    request.initPosition(1).set(0, 0);
    auto answered = request.send();
    loop_.settle();
    auto answer = answered.wait(loop_.waitScope());
    const checkpoint::SavedShard shard = wire::decodeSaved(answer.getSaved());
    checkpoint::Manifest manifest;
    manifest.job = "still";
    manifest.worker_batches = {0, 0};
    manifest.clocks = {shard.clock};
    manifest.variables.push_back({"v", Shape{static_cast<int64_t>(kOnlyElements)}, {}});
    manifest.shards = {shard.file};
    EXPECT_EQ(folder_.commit(manifest), checkpoint::CommitOutcome::kCommitted);
    return "step-0";
  }

  float firstValue() {
    float value = -1;
    shard().pull(0, kChiefProcess, {}, [&](const replication::PushAnswer& answer) {
      if (const auto* reply = std::get_if<replication::PushReply>(&answer))
        value = reply->parameters->data()[0];
    });
    return value;
  }

  testing::StillLoop loop_;
  testing::SimulatedDisk disk_;
  checkpoint::CheckpointFolder folder_{disk_, kSavedFolder, kChiefProcess};
  CheckpointOptions options_{kSavedFolder, 0, 2, &disk_};
  std::unique_ptr<ShardHost> host_;
  std::optional<schema::PsCheckpoint::Client> session_;
};

TEST_F(CheckpointServiceTest, WhatWasSavedIsRestoredByAPsWithoutValues) {
  const std::string folder = saved();
  startPs();
  shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
  EXPECT_EQ(restore(folder), "");
  EXPECT_FALSE(shard().status().initialised) << "reading it changes nothing yet";
  EXPECT_EQ(commit(), "");
  EXPECT_EQ(firstValue(), 0.5F);
}

TEST_F(CheckpointServiceTest, APsThatHoldsValuesGoesBackToALaterEpochOnly) {
  const std::string folder = saved();
  startPs();
  shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
  shard().initialise(0, kChiefProcess, std::vector<float>(kOnlyElements, 2.0F));
  EXPECT_EQ(restore(folder), "");
  EXPECT_EQ(commit(replication::kFirstEpoch), "") << "it is on that epoch: nothing to do";
  EXPECT_EQ(firstValue(), 2.0F);
  EXPECT_EQ(restore(folder), "");
  EXPECT_EQ(commit(0), "ps/0 received the invalid epoch 0x0 for the saved values");
  EXPECT_EQ(restore(folder), "");
  EXPECT_EQ(commit(), "");
  EXPECT_EQ(firstValue(), 0.5F);
  EXPECT_EQ(shard().held().origin, checkpoint::EpochOrigin::kCheckpoint);
}

// worker/1 was first with another file; the chief declares after it has read the checkpoint.
TEST_F(CheckpointServiceTest, WhatWasReadForAnotherModelIsNotTaken) {
  const std::string folder = saved();
  startPs();
  shard().workers().declare(1, kChiefProcess, modelOf(Mode::kAsync));
  EXPECT_EQ(restore(folder), "");
  shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
  EXPECT_EQ(commit(), "another model was declared since the checkpoint was read: restore again");
  EXPECT_FALSE(shard().status().initialised);
  EXPECT_EQ(restore(folder), "");
  EXPECT_EQ(commit(), "");
  EXPECT_EQ(firstValue(), 0.5F);
}

TEST_F(CheckpointServiceTest, AFolderIsANameNeverAPath) {
  saved();
  for (const std::string& folder :
       {std::string(), std::string("../checkpoints/step-0"), std::string("/etc"), std::string("."),
        std::string(".."), std::string("step-0/."), std::string("step 0"), std::string(129, 'a')}) {
    SCOPED_TRACE(folder);
    EXPECT_NE(restore(folder).find("is no name of a checkpoint folder"), std::string::npos);
    EXPECT_NE(save(folder).find("is no name of a checkpoint folder"), std::string::npos);
  }
}

TEST_F(CheckpointServiceTest, CallsOutOfTheirOrderAreRefused) {
  EXPECT_EQ(commit(), "no saved values were read before the restore");
  EXPECT_NE(restore("step-0").find("a request to read saved values before the model was declared"),
            std::string::npos);
  const std::string folder = saved();
  EXPECT_NE(save(folder), "") << "the capture was given back";
  startPs();
  shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
  EXPECT_NE(restore("step-7").find("step-7"), std::string::npos) << "there is none";
  EXPECT_EQ(commit(), "no saved values were read before the restore");
}

TEST_F(CheckpointServiceTest, ASessionOfAReplacedChiefDoesNothing) {
  const std::string folder = saved();
  startPs();
  shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
  EXPECT_EQ(restore(folder), "");
  shard().workers().join(0, Incarnation::of(1, 0, 5));
  EXPECT_NE(commit(), "");
  EXPECT_FALSE(shard().status().initialised);
}

TEST_F(CheckpointServiceTest, AFileOfTheChiefsIsSeenAlsoWhenItComesLater) {
  const auto look = [this](const std::string& file, double seconds) {
    auto request = session_->seeRequest();
    request.setFile(file.c_str());
    request.setSeconds(seconds);
    return request.send().then([](auto&& answer) { return answer.getSeen(); });
  };
  auto never = look("seen-2.1", 0.5);
  auto later = look("seen-1.1", 5);
  loop_.settle();
  EXPECT_FALSE(later.poll(loop_.waitScope()));
  loop_.live(std::chrono::seconds(1));
  disk_.create(kSavedFolder / "seen-1.1")->close();
  loop_.live(std::chrono::seconds(1));
  EXPECT_TRUE(later.wait(loop_.waitScope()));
  EXPECT_FALSE(never.wait(loop_.waitScope()));
  for (const double seconds : {-1.0, 61.0, std::nan("")}) {
    auto request = session_->seeRequest();
    request.setFile("seen-1.1");
    request.setSeconds(seconds);
    EXPECT_NE(refusal(kj::mv(request)).find("is not allowed"), std::string::npos);
  }
  auto request = session_->seeRequest();
  request.setFile("../seen-1.1");
  EXPECT_EQ(refusal(kj::mv(request)), "'../seen-1.1' is no name of a file");
}

// ---- shards that travel

class TravelServiceTest : public CheckpointServiceTest {
 protected:
  TravelServiceTest() {
    shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
    shard().initialise(0, kChiefProcess, std::vector<float>(kOnlyElements, 0.5F));
  }
  void capture() {
    auto cut = session_->cutRequest();
    cut.initPosition(1).set(0, 0);
    cut.setEpoch(replication::kFirstEpoch);
    EXPECT_EQ(refusal(kj::mv(cut)), "");
  }
  checkpoint::SavedShard stage() {
    auto request = session_->stageRequest();
    request.initPosition(1).set(0, 0);
    auto answered = request.send();
    loop_.settle();
    return wire::decodeSaved(answered.wait(loop_.waitScope()).getSaved());
  }
  auto fetch(uint64_t offset, uint64_t bytes) {
    auto request = session_->fetchRequest();
    request.setOffset(offset);
    request.setBytes(static_cast<uint32_t>(bytes));
    return request;
  }
  auto release(bool saved) {
    auto request = session_->releaseRequest();
    request.setSaved(saved);
    return request;
  }
  std::string expect() {
    auto request = session_->expectRequest();
    request.setGlobalStep(4);
    request.initClocks(1);
    return refusal(kj::mv(request));
  }
  auto bring(uint64_t offset, const std::vector<float>& values) {
    auto request = session_->bringRequest();
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(float));
    request.setOffset(offset);
    request.setValues(kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
    request.setChecksum(checksumOf(bytes));
    return request;
  }
};

TEST_F(TravelServiceTest, AShardIsFetchedInPiecesAndItsPlaceIsSavedWhenTheChiefSaysSo) {
  capture();
  const checkpoint::SavedShard saved = stage();
  EXPECT_EQ(saved.file.file, "shard-0-of-1.safetensors");
  std::string bytes;
  for (uint64_t at = 0; at < saved.file.bytes; at += 100) {
    auto answered = fetch(at, std::min<uint64_t>(100, saved.file.bytes - at)).send();
    loop_.settle();
    auto answer = answered.wait(loop_.waitScope());
    const std::string piece(reinterpret_cast<const char*>(answer.getData().begin()),
                            answer.getData().size());
    EXPECT_EQ(answer.getChecksum(), checksumOf(piece));
    bytes += piece;
  }
  EXPECT_EQ(checksumOf(bytes), saved.file.checksum);
  EXPECT_FALSE(shard().status().saved);
  EXPECT_EQ(refusal(release(true)), "");
  EXPECT_TRUE(shard().status().saved);
  EXPECT_TRUE(disk_.list(kSavedFolder).empty()) << "nothing is written here";
}

TEST_F(TravelServiceTest, WhatIsNotReadyOrNotThereIsRefused) {
  EXPECT_EQ(refusal(fetch(0, 1)), "no shard is ready to be fetched");
  capture();
  const uint64_t size = stage().file.bytes;
  EXPECT_EQ(refusal(fetch(0, size)), "");
  EXPECT_NE(refusal(fetch(1, size)), "");
  EXPECT_NE(refusal(fetch(std::numeric_limits<uint64_t>::max(), 2)), "");
  EXPECT_NE(refusal(fetch(0, checkpoint::kPieceBytesMax + 1)), "");
  EXPECT_EQ(refusal(release(false)), "");
  EXPECT_FALSE(shard().status().saved) << "it is in no checkpoint";
  EXPECT_EQ(refusal(fetch(0, 1)), "no shard is ready to be fetched");
  EXPECT_EQ(refusal(release(false)), "") << "said twice";
  auto request = session_->stageRequest();
  request.initPosition(1).set(0, 0);
  EXPECT_NE(refusal(kj::mv(request)), "") << "the capture was given back";
}

TEST_F(TravelServiceTest, WhatIsBroughtWholeIsTaken) {
  EXPECT_EQ(refusal(bring(0, {1})), "no expect() came before the values of a checkpoint");
  EXPECT_EQ(expect(), "");
  const std::vector<float> half(kOnlyElements / 2, 3.0F);
  EXPECT_EQ(refusal(bring(0, half)), "");
  EXPECT_NE(commit().find("received 8 of the 16 values"), std::string::npos);
  EXPECT_EQ(firstValue(), 0.5F);
  EXPECT_EQ(expect(), "") << "from the beginning again";
  EXPECT_EQ(refusal(bring(kOnlyElements / 2, half)), "");
  EXPECT_EQ(refusal(bring(0, half)), "");
  EXPECT_EQ(firstValue(), 0.5F) << "beside what it holds";
  EXPECT_EQ(commit(), "");
  EXPECT_EQ(firstValue(), 3.0F);
  EXPECT_EQ(shard().status().coordinator.global_step, 4u);
}

TEST_F(TravelServiceTest, BytesThatWereDamagedOnTheWayAreNotTaken) {
  EXPECT_EQ(expect(), "");
  auto request = bring(0, std::vector<float>(kOnlyElements, 3.0F));
  request.setChecksum(request.getChecksum() + 1);
  EXPECT_NE(refusal(kj::mv(request)).find("were damaged on the way"), std::string::npos);
  EXPECT_EQ(refusal(bring(0, std::vector<float>(kOnlyElements, 3.0F))), "");
  EXPECT_EQ(commit(), "");
}

TEST_F(TravelServiceTest, AReplacedChiefGetsAndBringsNothing) {
  capture();
  EXPECT_EQ(expect(), "");
  EXPECT_EQ(refusal(bring(0, std::vector<float>(kOnlyElements, 3.0F))), "");
  shard().workers().join(0, Incarnation::of(1, 0, 5));
  auto request = session_->stageRequest();
  request.initPosition(1).set(0, 0);
  EXPECT_NE(refusal(kj::mv(request)), "");
  EXPECT_NE(expect(), "");
  EXPECT_NE(commit(), "");
  EXPECT_EQ(shard().held().epoch, replication::kFirstEpoch);
}

// ---- snapshots

class SnapshotServiceTest : public CheckpointServiceTest {
 protected:
  SnapshotServiceTest() {
    options_.snapshots.folder = kMemory;
    startPs();
    begin();
  }
  // Begins a job with values that are all 0.5, at step 0.
  void begin() {
    shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
    shard().initialise(0, kChiefProcess, std::vector<float>(kOnlyElements, 0.5F));
  }
  // Captures the shard at its current position, and keeps the capture as the snapshot of `step`.
  std::string keep(uint64_t step, std::optional<uint64_t> other = std::nullopt) {
    auto cut = session_->cutRequest();
    cut.initPosition(1).set(0, 0);
    cut.setEpoch(replication::kFirstEpoch);
    EXPECT_EQ(refusal(kj::mv(cut)), "");
    auto request = session_->snapshotRequest();
    request.initPosition(1).set(0, 0);
    wire::encodeCut({replication::kFirstEpoch, step}, request.initCut());
    request.setKeeps(other.has_value());
    if (other) wire::encodeCut({replication::kFirstEpoch, *other}, request.initKeep());
    return refusal(kj::mv(request));
  }
  std::string load(uint64_t step) {
    auto request = session_->restoreSnapshotRequest();
    wire::encodeCut({replication::kFirstEpoch, step}, request.initCut());
    return refusal(kj::mv(request));
  }
  std::vector<uint64_t> kept() {
    std::vector<uint64_t> steps;
    for (const checkpoint::CutName& name : listSnapshots(options_)) steps.push_back(name.step);
    return steps;
  }

  static constexpr char kMemory[] = "/dtf-1000-still-0";
};

TEST_F(SnapshotServiceTest, WhatAPsKeptItsNextProcessTakes) {
  EXPECT_EQ(keep(10), "");
  EXPECT_EQ(keep(20, 10), "");
  EXPECT_EQ(kept(), (std::vector<uint64_t>{10, 20}));
  startPs();
  shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
  EXPECT_EQ(load(20), "");
  EXPECT_FALSE(shard().status().initialised) << "reading it changes nothing yet";
  EXPECT_EQ(commit(), "");
  EXPECT_EQ(firstValue(), 0.5F);
  EXPECT_EQ(shard().held().origin, checkpoint::EpochOrigin::kSnapshot);
}

TEST_F(SnapshotServiceTest, OneThatCannotBeReadIsNotOfferedAgain) {
  EXPECT_EQ(keep(10), "");
  for (const auto& file : disk_.files()) {
    if (file.extension() != ".safetensors") continue;
    std::string bytes = disk_.contents(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    disk_.setContents(file, bytes);
  }
  startPs();
  shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
  EXPECT_EQ(kept(), std::vector<uint64_t>{10});
  const std::string why = load(10);
  EXPECT_EQ(why.substr(0, 6), "ps/0: ") << why;
  EXPECT_EQ(kept(), std::vector<uint64_t>{});
  EXPECT_EQ(commit(), "no saved values were read before the restore");
}

TEST_F(SnapshotServiceTest, WhatMakesNoSenseIsRefused) {
  EXPECT_NE(keep(10, 10), "") << "in place of itself";
  auto request = session_->snapshotRequest();
  request.initPosition(1).set(0, 0);
  EXPECT_EQ(refusal(kj::mv(request)), "the checkpoint's epoch is invalid");
  EXPECT_NE(load(30), "") << "there is none";
  options_.snapshots.folder.clear();
  EXPECT_EQ(keep(20), "ps/0 was started without `durability: snapshot`");
  EXPECT_EQ(kept(), std::vector<uint64_t>{});
}

TEST_F(SnapshotServiceTest, TheyGoWhenTheChiefSaysSoAndWhenTheJobHasEndedWell) {
  EXPECT_EQ(keep(10), "");
  shard().workers().join(0, Incarnation::of(1, 0, 5));
  EXPECT_NE(refusal(session_->forgetSnapshotsRequest()), "") << "its successor may need them";
  EXPECT_EQ(kept(), std::vector<uint64_t>{10});
  startPs();
  shard().workers().declare(0, kChiefProcess, modelOf(Mode::kSync));
  EXPECT_EQ(refusal(session_->forgetSnapshotsRequest()), "");
  EXPECT_EQ(kept(), std::vector<uint64_t>{});
  shard().initialise(0, kChiefProcess, std::vector<float>(kOnlyElements, 0.5F));
  EXPECT_EQ(keep(20), "");
  forgetSnapshots(options_);
  EXPECT_FALSE(disk_.exists(kMemory));
}

}  // namespace
}  // namespace dtf::host
