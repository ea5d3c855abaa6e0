#pragma once

// The signature of a job's data, and data read by the signature of a model.

#include <string>

#include "common/cluster/data_spec.h"
#include "common/data/csv_columns.h"
#include "common/data/data_signature.h"

namespace dtf::data {

// Blocks: on the disk: the first lines of tables, the names of the classes' folders.
// Errors: see readCsvHeader() and classFolders(), at the key that names the file.
DataSignature readSignature(const cluster::DatasetSpec& spec);

// Returns `spec` with the columns of the model: a table with a header is read by the names of the
// training data, whatever the order of its columns and of the names in the job's file.
// Blocks, errors: see readSignature(); kBadData at the key that names the file, with both sides,
// for data with another meaning.
cluster::DatasetSpec readAsTrained(const cluster::DatasetSpec& spec, const DataSignature& model);

// Does the same by the job's training data; the job's file names the targets of both.
cluster::DatasetSpec readAsTrained(const cluster::DatasetSpec& spec,
                                   const cluster::DatasetSpec& train);

// Returns `model` with the names of the targets that the job's file gives to `spec`: to the file
// they are the same, under other names. Blocks, errors: see readSignature().
DataSignature withTargetsOf(const cluster::DatasetSpec& spec, DataSignature model);

// Returns the columns of the model's inputs and targets.
TrainedColumns trainedColumns(const DataSignature& model);

// Returns how the preparation that the job's file describes differs from the model's, for a person,
// as signatureDifference(). Empty: it doesn't. Columns aren't compared, and no data are read.
std::string preparationDifference(const cluster::DatasetSpec& spec, const DataSignature& model);

// Checks that the job's file prepares examples without labels as the training examples were. Their
// columns are the model's.
// Errors: kBadConfig with both sides.
void checkPreparation(const cluster::DatasetSpec& spec, const DataSignature& model);

}  // namespace dtf::data
