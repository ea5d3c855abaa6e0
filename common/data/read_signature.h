#pragma once

// The signature of a job's data, and data read by the signature of a model.

#include <string>

#include "common/cluster/data_spec.h"
#include "common/data/csv_columns.h"
#include "common/data/data_signature.h"

namespace dtf::data {

// Blocks: on the disk: the first lines of tables, the names of the classes' folders.
// Errors: those of readCsvHeader() and classFolders(), at the key that names the file.
DataSignature readSignature(const cluster::DatasetSpec& spec);

// Returns `spec` with the columns of the model: a table with a header is read by the names of the
// training data, whatever the order of its columns and of the names in the job's file.
// Blocks, errors: as readSignature(); kBadData at the key that names the file, with both sides, for
// data that mean something else.
cluster::DatasetSpec readAsTrained(const cluster::DatasetSpec& spec, const DataSignature& model);

// The same by the training data of the job, whose file names the targets of both.
cluster::DatasetSpec readAsTrained(const cluster::DatasetSpec& spec,
                                   const cluster::DatasetSpec& train);

// `model`, with the names of the targets that the job's file gives to `spec`: the file says that
// they are the same, under other names. Blocks, errors: as readSignature().
DataSignature withTargetsOf(const cluster::DatasetSpec& spec, DataSignature model);

// The columns of the model's inputs and targets.
TrainedColumns trainedColumns(const DataSignature& model);

// That the job's file asks for examples without labels to be prepared as those that the model was
// trained on; their columns are the model's.
// Errors: kBadConfig with both sides.
void checkPreparation(const cluster::DatasetSpec& spec, const DataSignature& model);

}  // namespace dtf::data
