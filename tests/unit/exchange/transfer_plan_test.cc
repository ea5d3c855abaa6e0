// The whole table of settings and abilities, against the rules one by one; and the chapter that is
// written from it.

#include "common/exchange/transfer_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "common/cluster/cluster_yaml.h"
#include "common/replication/replication_rules.h"
#include "tests/support/temporary_files.h"

namespace dtf::exchange {
namespace {

using ::testing::HasSubstr;

struct Case {
  JobTransfers job{};
  ShardTransfers shard{};
  TransferAbilities own{};
  TransferPeer peer{};

  TransferPlan plan() const { return planTransfer(job, shard, own, peer); }
};

ShardTransfers shardOfElements(uint64_t elements, const JobTransfers& job, bool has_tables) {
  const uint64_t size = job.codec == arena::CodecKind::kFloat32 ? 4 : 2;
  return {elements, elements * size, has_tables};
}

// Every combination: each bit of a number is one setting.
void forEachCase(const std::function<void(const Case&)>& look) {
  constexpr uint32_t kBits = 17;
  for (uint32_t number = 0; number < 1U << kBits; ++number)
    for (const uint64_t elements : {512, 0, 1 << 21, 1 << 24}) {
      uint32_t rest = number;
      const auto next = [&rest] { return (std::exchange(rest, rest / 2) & 1U) != 0; };
      Case each;
      each.job.shares_steps = next();
      each.job.overlap = next();
      if (next()) each.job.codec = arena::CodecKind::kBFloat16;
      if (next()) each.job.batches_per_step = 2;
      each.job.has_tables = next();
      each.job.one_process = next();
      if (next()) each.job.towers = 2;
      each.job.clips_by_norm = next();
      each.shard = shardOfElements(elements, each.job, next() && each.job.has_tables);
      if (next()) each.own.share_from_bytes = std::nullopt;
      if (next()) each.own.stream_from_bytes = std::nullopt;
      each.peer.on_this_host = next();
      each.peer.takes_unfinished = next();
      if (next()) each.peer.memory_fault = "the kernel refuses";
      if (next()) each.peer.gradients_fault = "the gradient has another place";
      if (next()) each.own.transport = cluster::Transport::kRdma;
      each.job.sums_hosts = next();
      // A leader, a member, or alone on its host.
      if (each.job.sums_hosts)
        each.job.workers_summed = each.job.overlap ? 0 : number % 8 < 4 ? 3 : 1;
      look(each);
    }
}

TEST(TransferPlan, WhatIsNotUsedHasAReasonAndWhatIsUsedHasNone) {
  forEachCase([](const Case& each) {
    const TransferPlan plan = each.plan();
    for (const NamedChoice& named : choicesOf(plan))
      ASSERT_NE(named.choice.is_used, !named.choice.why_not.empty()) << named.name;
  });
}

// Each rule as a sentence of its own; together they are the plan.
TEST(TransferPlan, IsTheWholeTable) {
  forEachCase([](const Case& each) {
    const auto& [job, shard, own, peer] = each;
    const TransferPlan plan = each.plan();
    const bool rounds = job.codec != arena::CodecKind::kFloat32;
    const bool is_alone = job.batches_per_step == 1;
    const uint64_t bytes = shard.elements * sizeof(float);
    const bool by_card = own.transport == cluster::Transport::kRdma;
    const bool remote =
        by_card && !job.one_process && !rounds && !job.has_tables && is_alone && bytes > 0;
    const bool shares = !job.one_process && !rounds && !by_card && own.share_from_bytes &&
                        bytes > 0 && bytes >= *own.share_from_bytes && peer.on_this_host &&
                        peer.memory_fault.empty();
    const bool gives = shares && is_alone && !shard.has_tables && peer.gradients_fault.empty();
    const bool overlaps = job.overlap && !job.shares_steps && !job.one_process;
    ASSERT_EQ(plan.compressed.is_used, rounds && !job.one_process);
    ASSERT_EQ(plan.shared_parameters.is_used, shares);
    ASSERT_EQ(plan.shared_gradients.is_used, gives);
    ASSERT_EQ(plan.remote_memory.is_used, remote);
    ASSERT_EQ(plan.overlap.is_used, overlaps);
    ASSERT_EQ(plan.streaming.is_used, !job.one_process && own.stream_from_bytes && !overlaps &&
                                          is_alone && !job.has_tables && job.towers == 1 &&
                                          !plan.host_sum.is_used && !job.clips_by_norm &&
                                          shard.encoded_bytes >= *own.stream_from_bytes && !gives &&
                                          !remote && peer.takes_unfinished);
    ASSERT_EQ(plan.host_sum.is_used, job.sums_hosts && job.workers_summed != 1);
    ASSERT_EQ(plan.rows.is_used,
              shard.has_tables && !job.one_process && !overlaps && is_alone && !shares);
  });
}

TEST(TransferPlan, DirectionsFollowFromTheChoices) {
  forEachCase([](const Case& each) {
    const TransferPlan plan = each.plan();
    const auto due = [&](const Choice& shared) -> Direction {
      return {plan.compressed.is_used ? each.job.codec.kind : arena::CodecKind::kFloat32,
              plan.remote_memory.is_used ? Channel::kRemoteMemory
              : shared.is_used           ? Channel::kSharedMemory
                                         : Channel::kMessages};
    };
    ASSERT_EQ(plan.parameters, due(plan.shared_parameters));
    ASSERT_EQ(plan.gradients, due(plan.shared_gradients));
    ASSERT_FALSE(plan.streaming.is_used && plan.overlap.is_used);
    ASSERT_FALSE(plan.parameters.channel == Channel::kSharedMemory && plan.compressed.is_used)
        << "memory is read as it is";
  });
}

TEST(TransferPlan, APeerNeedsTheCodecOfTheJobAndOneThatNamesNoneIsTriedWithIt) {
  Case each;
  each.job.codec = arena::CodecKind::kBFloat16;
  EXPECT_EQ(each.plan().fault, "");
  each.peer.codecs = {"float32", "bfloat16", "one of tomorrow"};
  EXPECT_EQ(each.plan().fault, "");
  each.peer.codecs = {"float32"};
  EXPECT_THAT(each.plan().fault, HasSubstr("travel as bfloat16, and the other task's version"));
  each.job.codec = arena::CodecKind::kFloat32;
  EXPECT_EQ(each.plan().fault, "");
}

// Asked for, it is used, or the job is refused: TCP never takes its place in silence.
TEST(TransferPlan, RdmaIsUsedOrRefused) {
  forEachCase([](const Case& each) {
    const TransferPlan plan = each.plan();
    const bool is_due = each.own.transport == cluster::Transport::kRdma && !each.job.one_process &&
                        each.shard.elements > 0;
    ASSERT_EQ(is_due, plan.remote_memory.is_used || (is_due && !plan.fault.empty()));
    ASSERT_FALSE(plan.remote_memory.is_used && !plan.fault.empty()) << plan.fault;
  });
}

TEST(TransferPlan, RdmaNeedsBothSidesAndPlainDenseGradients) {
  Case each;
  each.shard = {512, 2048, false};
  each.own.transport = cluster::Transport::kRdma;
  EXPECT_EQ(each.plan().fault, "");
  EXPECT_EQ(directionText(each.plan().gradients), "float32, in remote memory");
  each.peer.transport = cluster::Transport::kRdma;
  EXPECT_EQ(each.plan().fault, "");
  each.peer.transport = cluster::Transport::kTcp;
  EXPECT_THAT(each.plan().fault, HasSubstr("of this task says 'transport: rdma', and the other's"));
  each.own.transport = cluster::Transport::kTcp;
  EXPECT_EQ(each.plan().fault, "");
  each.peer.transport = cluster::Transport::kRdma;
  EXPECT_THAT(each.plan().fault, HasSubstr("of the other task says 'transport: rdma'"));
  each.own.transport = cluster::Transport::kRdma;
  each.job.codec = arena::CodecKind::kInt8;
  EXPECT_THAT(each.plan().fault, HasSubstr("moves float32 alone"));
  each.job.codec = arena::CodecKind::kFloat32;
  each.job.has_tables = true;
  EXPECT_THAT(each.plan().fault, HasSubstr("rows of sparse variables differ"));
  each.job.has_tables = false;
  each.job.batches_per_step = 2;
  EXPECT_THAT(each.plan().fault, HasSubstr("a worker sends several in a step"));
}

TEST(TransferPlan, ASumOfTheHostIsOfWholeArenas) {
  Case each;
  each.job = transfersOf(
      replication::completeReplication(
          {.mode = cluster::ReplicationSpec::Mode::kSync, .host_leaders = {0, 0, 2, 3, 3}}, 5),
      0);
  each.shard = {1 << 24, 4 << 24, false};
  EXPECT_TRUE(each.plan().host_sum.is_used);
  EXPECT_EQ(each.plan().streaming.why_not, "the gradient is the mean of several workers");
  each.job.has_tables = true;
  EXPECT_THAT(each.plan().fault, HasSubstr("leave out 'topology'"));
  each.job.has_tables = false;
  each.job.workers_summed = 1;
  EXPECT_EQ(each.plan().host_sum.why_not, "no other worker has the host of this one");
  EXPECT_TRUE(each.plan().streaming.is_used);
  each.job.sums_hosts = false;
  EXPECT_EQ(each.plan().host_sum.why_not, "'replication.topology' doesn't say 'hosts: sum'");
}

TEST(TransferPlan, TheSettingsOfAJobAreThoseOfItsFile) {
  cluster::ReplicationSpec spec;
  spec.mode = cluster::ReplicationSpec::Mode::kSync;
  spec.replicas_to_aggregate = 3;
  spec.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  spec = replication::completeReplication(spec, 2);
  EXPECT_TRUE(transfersOf(spec, 0).shares_steps);
  EXPECT_EQ(transfersOf(spec, 0).batches_per_step, 2u);
  EXPECT_EQ(transfersOf(spec, 1).batches_per_step, 1u);
  EXPECT_EQ(transfersOf(spec, 0).codec, arena::CodecKind::kBFloat16);
  spec = {};
  spec.overlap = true;
  EXPECT_TRUE(transfersOf(spec, 0).overlap);
}

// A declaration with overlap that the ps refuse is one whose plan has none.
TEST(TransferPlan, OverlapIsUsedWhereADeclarationMayHaveIt) {
  using Mode = cluster::ReplicationSpec::Mode;
  for (const Mode mode : {Mode::kAsync, Mode::kBounded, Mode::kSync}) {
    cluster::ReplicationSpec spec;
    spec.mode = mode;
    spec.overlap = true;
    spec = replication::completeReplication(spec, 2);
    EXPECT_EQ(Case{.job = transfersOf(spec, 0)}.plan().overlap.is_used,
              !replication::replicationFault(spec, 2).has_value());
  }
}

TEST(TransferPlan, AShardIsAsItsLayoutSays) {
  const arena::ParameterLayout layout = arena::makeLayout(
      {{"gamma", Shape{20}, {{0, 0, 20}}}, {"mean", Shape{20}, {{0, 0, 20}}, 0.9}}, 1);
  const uint64_t elements = layout.shards[0].elements;
  const ShardTransfers wide = shardOf(layout, 0, arena::CodecKind::kFloat32);
  EXPECT_EQ(wide.elements, elements);
  EXPECT_EQ(wide.encoded_bytes, elements * 4);
  EXPECT_FALSE(wide.has_tables);
  EXPECT_EQ(shardOf(layout, 0, arena::CodecKind::kBFloat16).encoded_bytes, (elements + 20) * 2);
}

// The same words, too: the reader of files is below this library.
TEST(TransferPlan, WhatAFileMayNotHaveIsNoPlan) {
  const testing::TemporaryFiles files;
  const auto report = [&files](const std::string& cluster, const std::string& replication) {
    files.write("c.yaml",
                "cluster: " + cluster +
                    "\ntrain:\n  model: {input: {shape: [2]}, layers: [relu], loss: mse}\n"
                    "  replication: " +
                    replication + "\n");
    return testing::badConfigOf([] { cluster::loadCluster("c.yaml", {}); });
  };
  const std::string with_ps = "{ps: [a:1], worker: [b:1]}", alone = "{worker: [local]}";
  JobTransfers job{.shares_steps = true, .overlap = true};
  EXPECT_THAT(report(with_ps, "{mode: sync, overlap: true}"),
              HasSubstr(Case{.job = job}.plan().overlap.why_not));
  job = {.overlap = true, .codec = arena::CodecKind::kBFloat16, .one_process = true};
  EXPECT_THAT(report(alone, "{overlap: true}"), HasSubstr(Case{.job = job}.plan().overlap.why_not));
  EXPECT_THAT(report(alone, "{transfer_dtype: bfloat16}"),
              HasSubstr(Case{.job = job}.plan().compressed.why_not));
  EXPECT_THAT(report(with_ps + "\ntransport: rdma", "{transfer_dtype: bfloat16}"),
              HasSubstr(rdmaFault({.codec = arena::CodecKind::kBFloat16})));
  EXPECT_THAT(report("{ps: [a:1], worker: [b:1, c:1]}\ntransport: rdma",
                     "{mode: sync, replicas_to_aggregate: 3}"),
              HasSubstr(rdmaFault({.batches_per_step = 2})));
}

// ---- the chapter

struct Mode {
  std::string text;
  JobTransfers job;
  cluster::Transport transport = cluster::Transport::kTcp;
};

std::vector<Mode> modes() {
  const auto rounding = arena::CodecKind::kBFloat16;
  return {{"`{mode: async}`, `bounded` or `sync`", {}},
          {"`{mode: sync, replicas_to_aggregate: 8}` of 4 workers",
           {.shares_steps = true, .batches_per_step = 2}},
          {"`{mode: async, overlap: true}` or `bounded`", {.overlap = true}},
          {"`{transfer_dtype: bfloat16}`", {.codec = rounding}},
          {"`{overlap: true, transfer_dtype: bfloat16}`", {.overlap = true, .codec = rounding}},
          {"`{transfer: {dtype: int8}}`", {.codec = arena::CodecKind::kInt8}},
          {"`{transfer: {top_k: 0.01}}`", {.codec = {arena::CodecKind::kTopK, 0.01}}},
          {"`{mode: sync, topology: {hosts: sum}}`, several workers on the host",
           {.shares_steps = true, .workers_summed = 4, .sums_hosts = true}},
          {"`{mode: async}`, `bounded` or `sync`, and `transport: rdma`",
           {},
           cluster::Transport::kRdma},
          {"`{mode: async, overlap: true}` or `bounded`, and `transport: rdma`",
           {.overlap = true},
           cluster::Transport::kRdma}};
}

std::string beginText(const TransferPlan& plan) {
  if (plan.overlap.is_used) return "while the next batch is computed";
  return plan.streaming.is_used ? "while the gradient is computed" : "with the whole gradient";
}

std::string rowsText(const ShardTransfers& shard, const TransferPlan& plan) {
  if (!shard.has_tables) return "";
  return plan.rows.is_used ? "of the next batch" : "all";
}

std::vector<std::string> modeRows() {
  std::vector<std::string> rows;
  for (const auto& [text, job, transport] : modes())
    for (const bool has_tables : {false, true})
      for (const bool on_this_host : {true, false}) {
        Case each{.job = job, .peer = {.on_this_host = on_this_host}};
        each.job.has_tables = has_tables;
        each.shard = shardOfElements(1 << 24, job, has_tables);
        each.own.transport = transport;
        const TransferPlan plan = each.plan();
        if (!plan.fault.empty()) {
          rows.push_back(fmt::format("| {} | {} | {} | refused | refused |  |  |", text,
                                     has_tables ? "tables" : "dense",
                                     on_this_host ? "one" : "two"));
          continue;
        }
        rows.push_back(fmt::format("| {} | {} | {} | {} | {} | {} | {} |", text,
                                   has_tables ? "tables" : "dense", on_this_host ? "one" : "two",
                                   directionText(plan.parameters), directionText(plan.gradients),
                                   beginText(plan), rowsText(each.shard, plan)));
      }
  return rows;
}

// One of those that differ in their numbers alone.
bool isListed(const std::vector<std::string>& reasons, const std::string& why) {
  const auto words = [](const std::string& text) {
    return text.substr(0, text.find_first_of("0123456789"));
  };
  return std::ranges::any_of(
      reasons, [&](const std::string& listed) { return words(listed) == words(why); });
}

// Every reason that any combination gives, by its choice; of gradients those that are their own.
std::vector<std::string> reasonRows() {
  std::array<std::vector<std::string>, 8> reasons{};
  reasons[2] = {"parameters aren't either"};
  std::array<std::string, 8> names;
  forEachCase([&](const Case& each) {
    const TransferPlan plan = each.plan();
    const auto choices = choicesOf(plan);
    for (size_t i = 0; i < choices.size(); ++i) {
      names.at(i) = choices.at(i).name;
      const std::string& why = choices.at(i).choice.why_not;
      const bool is_of_parameters =
          &choices.at(i).choice == &plan.shared_gradients && why == plan.shared_parameters.why_not;
      if (!why.empty() && !is_of_parameters && !isListed(reasons.at(i), why))
        reasons.at(i).push_back(why);
    }
  });
  std::vector<std::string> rows;
  for (size_t i = 0; i < names.size(); ++i) {
    std::ranges::sort(reasons.at(i));
    for (const std::string& why : reasons.at(i))
      rows.push_back(fmt::format("| {} | {} |", names.at(i), why));
  }
  return rows;
}

std::string chapter() {
  std::string text =
      "| `replication` | shard | hosts | parameters | gradients | an exchange begins | rows of "
      "tables |\n|---|---|---|---|---|---|---|\n";
  for (const std::string& row : modeRows()) text += row + "\n";
  text += "\n| not used | because |\n|---|---|\n";
  for (const std::string& row : reasonRows()) text += row + "\n";
  return text;
}

// DTF_UPDATE_DOCS=1 writes it.
TEST(TransferPlan, IsTheTableOfTheChapter) {
  const std::string path = std::string(DTF_SOURCE_ROOT) + "/common/exchange/README.md";
  const std::string begin = "<!-- from planTransfer(): transfer_plan_test.cc -->\n\n";
  const std::string end = "\n<!-- end -->\n";
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t from = text.find(begin), until = text.find(end);
  ASSERT_TRUE(from != std::string::npos && until != std::string::npos) << path;
  const size_t at = from + begin.size();
  if (std::getenv("DTF_UPDATE_DOCS") != nullptr)
    std::ofstream(path) << text.replace(at, until - at, chapter());
  EXPECT_EQ(text.substr(at, text.find(end) - at), chapter());
}

}  // namespace
}  // namespace dtf::exchange
