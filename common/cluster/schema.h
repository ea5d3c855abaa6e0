#pragma once

// The tables of all keys of CLUSTER.yaml and TRAIN.yaml. model/layer_table.h has the model's.

#include <string>

#include "common/cluster/optimizer_spec.h"
#include "common/yaml/key_table.h"

namespace dtf::cluster {

namespace schema {
extern const yaml::Table kJob;               // a whole CLUSTER.yaml
extern const yaml::Table kCluster;           // cluster:
extern const yaml::Table kTask;              // an element of ps: and worker:, written as a map
extern const yaml::Table kTaskCount;         // ps: and worker: in one map for all
extern const yaml::Table kLaunch;            // launch:
extern const yaml::Table kLaunchCopy;        // launch.copy:
extern const yaml::Table kLaunchHost;        // an element of launch.hosts:
extern const yaml::Table kRestarts;          // launch.restarts:
extern const yaml::Table kTimeouts;          // timeouts:
extern const yaml::Table kDurability;        // durability: its three values
extern const yaml::Table kSnapshot;          // durability.snapshot:
extern const yaml::Table kMetrics;           // metrics:
extern const yaml::Table kTraces;            // traces:
extern const yaml::Table kTrain;             // a whole TRAIN.yaml
extern const yaml::Table kData;              // data:
extern const yaml::Table kEvalSplit;         // data.eval_split:, written as a map
extern const yaml::Table kAugment;           // data.augment:
extern const yaml::Table kDataset;           // data.train:, data.eval:
extern const yaml::Table kCategoricalArray;  // data.train.categorical_arrays.NAME:
extern const yaml::Table kCategorical;       // data.train.categorical_columns.NAME:
extern const yaml::Table kVocabulary;        // the vocabulary: of one of these
extern const yaml::Table kNumeric;           // data.train.numeric_columns.COLUMN:
extern const yaml::Table kClassNames;        // data.train.class_names:, written as a map
extern const yaml::Table kOptimizers;        // the optimizers
extern const yaml::Table kOptimizerCommon;   // settings of every optimizer
extern const yaml::Table kMovingAverage;
extern const yaml::Table kGradientDescent;
extern const yaml::Table kMomentum;
extern const yaml::Table kAdagrad;
extern const yaml::Table kAdadelta;
extern const yaml::Table kAdam;
extern const yaml::Table kAdamW;
extern const yaml::Table kRmsProp;
extern const yaml::Table kFtrl;
extern const yaml::Table kLars;
extern const yaml::Table kLamb;
extern const yaml::Table kLearningRate;  // the schedules
extern const yaml::Table kConstantRate;
extern const yaml::Table kExponentialRate;
extern const yaml::Table kPolynomialRate;
extern const yaml::Table kCosineRate;
extern const yaml::Table kReplication;    // replication:
extern const yaml::Table kTransfer;       // replication.transfer:
extern const yaml::Table kTopology;       // replication.topology:
extern const yaml::Table kPlacement;      // placement:
extern const yaml::Table kPartition;      // placement.partition:
extern const yaml::Table kEval;           // eval:
extern const yaml::Table kCheckpoint;     // checkpoint:
extern const yaml::Table kEarlyStopping;  // early_stopping:
extern const yaml::Table kSummaries;      // summaries:
extern const yaml::Table kReport;         // report:

const yaml::Table& optimizer(OptimizerSpec::Kind kind);
const yaml::Table& learningRate(LearningRateSchedule::Kind kind);
}  // namespace schema

yaml::Tables allTables();

// Returns the reference of all keys for a terminal, at most 100 columns.
std::string keyReference();

}  // namespace dtf::cluster
