#include "common/host/staying_service.h"

#include <gtest/gtest.h>

#include "common/base/checksum.h"
#include "common/checkpoint/shard_transfer.h"
#include "common/wire/checkpoint_codec.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/still_loop.h"

namespace dtf::host {
namespace {

constexpr Incarnation kChiefOfStay{5};
constexpr uint64_t kElementsOfStay = 16;
const std::filesystem::path kFolderOfStay = "/data/run/shards/step-0-5.1";
constexpr char kFileOfStay[] = "shard-0-of-1.safetensors";

// The only ps of a job of one worker, on a disk without a run directory.
class StayingServiceTest : public ::testing::Test {
 protected:
  StayingServiceTest() {
    host_.start({.workers = 1}, std::make_unique<optimizer::InlineUpdateRunner>(), nullptr,
                nullptr);
    host_.shard().workers().join(0, kChiefOfStay);
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout(
        {{"v", Shape{static_cast<int64_t>(kElementsOfStay)}, {{0, 0, kElementsOfStay}}}}, 1);
    model.steps = 20;
    model.replication = {cluster::ReplicationSpec::Mode::kSync, 1, 1};
    host_.shard().workers().declare(0, kChiefOfStay, model);
    host_.shard().initialise(0, kChiefOfStay, std::vector<float>(kElementsOfStay, 0.5F));
  }
  ~StayingServiceTest() noexcept override { host_.stop(); }

  template <class Request, class Take>
  std::string answer(Request request, Take take) {
    std::string text = "waits";
    auto done = request.send()
                    .then(
                        [&](auto&& response) {
                          text = "";
                          take(response);
                        },
                        [&](kj::Exception&& e) { text = net::toError(e).message(); })
                    .eagerlyEvaluate(nullptr);
    loop_.settle();
    return text;
  }
  std::string save(const char* name = "step-0-5.1") {
    host_.shard().cuts().cutAt(kChiefOfStay, replication::kFirstEpoch, {0},
                               [](const replication::CutAnswer&) {});
    auto request = session_.saveRequest();
    request.setName(name);
    request.initPosition(1).set(0, 0);
    return answer(kj::mv(request),
                  [this](auto& response) { saved_ = wire::decodeSaved(response.getSaved()).file; });
  }
  std::vector<checkpoint::FoundShard> find(const std::vector<checkpoint::ShardFile>& files) {
    auto request = session_.findRequest();
    request.setName("step-0-5.1");
    wire::encodeWanted(files, request.initFiles(static_cast<uint32_t>(files.size())));
    std::vector<checkpoint::FoundShard> found;
    EXPECT_EQ(answer(kj::mv(request),
                     [&](auto& response) {
                       found = wire::decodeFound(response.getFound(), files.size());
                     }),
              "");
    return found;
  }
  std::string fetch(uint64_t offset, uint32_t bytes, const char* file = kFileOfStay) {
    auto request = session_.fetchRequest();
    request.setName("step-0-5.1");
    request.setFile(file);
    request.setOffset(offset);
    request.setBytes(bytes);
    return answer(kj::mv(request), [this](auto& response) {
      const auto data = response.getData();
      piece_.assign(reinterpret_cast<const char*>(data.begin()), data.size());
      EXPECT_EQ(response.getChecksum(), checksumOf(piece_));
    });
  }
  std::string drop(schema::PsStaying::Client& session, const char* name = "step-0-5.1") {
    auto request = session.dropRequest();
    request.setName(name);
    return answer(kj::mv(request), [](auto&) {});
  }

  testing::StillLoop loop_;
  testing::SimulatedDisk disk_;
  CheckpointOptions options_{"/data/run/checkpoints", 0, 1, &disk_};
  ShardHost host_{loop_, loop_, loop_};
  schema::PsStaying::Client session_ = makeStaying(host_, options_, kChiefOfStay);
  checkpoint::ShardFile saved_;
  std::string piece_;
};

TEST_F(StayingServiceTest, WhatIsSavedIsDurableIsFoundAndComesInPieces) {
  EXPECT_EQ(save(), "");
  EXPECT_EQ(saved_.file, kFileOfStay);
  disk_.powerCut(3);
  const auto found = find({saved_, {"shard-1-of-2.safetensors", 1, 2, {}}});
  EXPECT_EQ(found.at(0).standing, checkpoint::Standing::kWhole);
  EXPECT_EQ(found.at(1).standing, checkpoint::Standing::kAbsent);
  EXPECT_EQ(fetch(8, 20), "");
  EXPECT_EQ(piece_, disk_.contents(kFolderOfStay / kFileOfStay).substr(8, 20));
}

TEST_F(StayingServiceTest, OnlyItsOwnChiefRemoves) {
  EXPECT_EQ(save(), "");
  schema::PsStaying::Client replaced = makeStaying(host_, options_, Incarnation{4});
  EXPECT_NE(drop(replaced), "");
  EXPECT_TRUE(disk_.exists(kFolderOfStay));
  EXPECT_EQ(drop(session_), "");
  EXPECT_FALSE(disk_.exists(kFolderOfStay));
  EXPECT_EQ(drop(session_), "") << "again";
}

TEST_F(StayingServiceTest, WhatCanNotBeReadIsRefused) {
  EXPECT_EQ(save(), "");
  EXPECT_NE(fetch(saved_.bytes, 1).find("ends before byte"), std::string::npos);
  EXPECT_NE(
      fetch(0, static_cast<uint32_t>(checkpoint::kPieceBytesMax) + 1).find("a piece has at most"),
      std::string::npos);
  EXPECT_NE(fetch(0, 1, "shard-1-of-2.safetensors").find("shard-1-of-2"), std::string::npos);
}

TEST_F(StayingServiceTest, ANameIsNeverAPath) {
  for (const char* name : {"", "..", "../checkpoints", "/etc", "a/b", ".hidden"}) {
    EXPECT_NE(save(name).find("is no name of a folder of shards"), std::string::npos) << name;
    EXPECT_NE(drop(session_, name).find("is no name of a folder of shards"), std::string::npos);
  }
  EXPECT_NE(fetch(0, 1, "../../secret").find("is no name of a shard's file"), std::string::npos);
}

}  // namespace
}  // namespace dtf::host
