// The tables of the files, and the list of all of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/cluster/schema.h"

namespace dtf::cluster {
namespace {

using yaml::Table;

TEST(SchemaTables, EachStandsInTheListOnce) {
  std::set<const Table*> listed;
  for (const Table* table : allTables()) EXPECT_TRUE(listed.insert(table).second) << table->path;
  for (const Table* table :
       {&schema::kJob, &schema::kTask, &schema::kLaunchHost, &schema::kTrain, &schema::kDataset,
        &schema::kOptimizers, &schema::kAdam, &schema::kCosineRate, &schema::kReport})
    EXPECT_TRUE(listed.contains(table)) << table->path;
}

// `--set train.steps=5` finds its key by this path.
TEST(SchemaTables, APathLeadsFromTheTopOfTheFile) {
  EXPECT_EQ(keyPath(schema::kJob, "job"), "job");
  EXPECT_EQ(keyPath(schema::kTrain, "steps"), "train.steps");
  EXPECT_EQ(keyPath(schema::kDataset, "format"), "train.data.train.format")
      << "of several places the first";
}

TEST(SchemaTables, EachMapOfAFileHasATable) {
  EXPECT_EQ(schema::kJob.path, "");
  EXPECT_TRUE(schema::kCluster.at("worker").required);
  EXPECT_FALSE(schema::kCluster.at("ps").required) << "in one process there is none";
  EXPECT_TRUE(schema::kTask.at("address").required);
  EXPECT_EQ(schema::kTask.at("threads").rangeText(), "from 1 to 1024");
}

TEST(SchemaTables, WhatALaterVersionHasIsKnown) {
  const auto is_later = [](std::string_view choice) {
    return schema::kLaunch.at("via").later_choices.find(choice) != std::string_view::npos;
  };
  EXPECT_TRUE(is_later("kubernetes"));
  EXPECT_FALSE(is_later("ssh"));
}

}  // namespace
}  // namespace dtf::cluster
