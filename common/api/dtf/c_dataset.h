#ifndef DTF_C_DATASET_H
#define DTF_C_DATASET_H

/* The data of a job in your own program, by the job's readers. <dtf/dtf.h> includes it, and has the
 * rules. */

#include "c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dtf_dataset dtf_dataset;

/* 0 and NULL stand for the defaults. */
typedef struct dtf_dataset_options {
  size_t size;        /* sizeof(dtf_dataset_options): later versions have more fields */
  const char* folder; /* where relative paths start; NULL: the working directory */
  /* The shape of one example, for folders of images and files of libsvm: what a job has as
   * model.input.shape. */
  const int64_t* input_shape;
  size_t input_rank;
  int64_t rank;       /* this shard, from 0 */
  int64_t of;         /* the number of shards; 0: 1 */
  int64_t epochs;     /* 0: without end */
  int64_t evaluation; /* nonzero: the examples of `eval`, or that side of `eval_split` */
} dtf_dataset_options;

/* Opens the data that `settings` describe: YAML with the keys of `data` in a job's file, as
 * "train: {format: idx, images: a.gz, labels: b.gz}\nbatch_size: 64\nseed: 1". A table that learns
 * its preparation learns it from the examples to train on. More than 256 MiB of a part are mapped
 * from disk. `options` may be NULL.
 * Settings without `train`, and empty ones, open the embedded digits.
 * DTF_BAD_CONFIG: a key, with its line; no shape where one is needed; fewer examples than shards;
 * epochs that have no step. DTF_BAD_DATA: a file can't be read, or isn't what the settings say. */
dtf_code dtf_dataset_open(const char* settings, const dtf_dataset_options* options,
                          dtf_dataset** made);
void dtf_dataset_free(dtf_dataset* dataset);

int64_t dtf_dataset_examples(const dtf_dataset* dataset);   /* of all shards */
int64_t dtf_dataset_batch_size(const dtf_dataset* dataset); /* of dtf_dataset_batch() */
/* Returns the number of parts of an example: "features", "labels", then each of categories. */
size_t dtf_dataset_parts(const dtf_dataset* dataset);
/* Returns the name of a part, valid as long as the data set; NULL beyond the last. `dims`, with
 * room for `room`, receives the shape of one example, `rank` its rank; each may be NULL. */
const char* dtf_dataset_part(const dtf_dataset* dataset, size_t index, dtf_dtype* dtype,
                             int64_t* dims, size_t room, size_t* rank);

/* Reads this shard's batch of a global step, a function of the settings, the step, `rank` and `of`
 * alone: the batch of a job's worker `rank` of `of`, in sync mode. `values` receives a new tensor
 * for each part, [batch_size, ...]. An epoch leaves out the examples that fill no batch, others
 * than the epoch before.
 * DTF_OUT_OF_RANGE: `global_step` isn't before dtf_dataset_steps(), or `of` times it is 2^64 or
 * more. DTF_BAD_CONFIG: there are fewer examples than in a batch. */
dtf_code dtf_dataset_batch(dtf_dataset* dataset, uint64_t global_step, dtf_tensor** values);
/* Returns the number of steps of all epochs, at least 1; 0: `epochs` is 0, they have no end. */
uint64_t dtf_dataset_steps(const dtf_dataset* dataset);
/* Reads the next `n` examples of this shard, as TensorFlow's next_batch(). An epoch has each
 * example once over all shards, in a new order; a batch may end one epoch and begin the next.
 * DTF_OUT_OF_RANGE: fewer than `n` are left of the last epoch. */
dtf_code dtf_dataset_next_batch(dtf_dataset* dataset, int64_t n, dtf_tensor** values);
/* Returns the number of epochs that dtf_dataset_next_batch() has completed. */
uint64_t dtf_dataset_epochs_completed(const dtf_dataset* dataset);
/* Reads `count` examples from `first` on, in their own order and unchanged by `augment`: for an
 * evaluation. All shards' examples are counted. DTF_OUT_OF_RANGE: beyond the last. */
dtf_code dtf_dataset_slice(dtf_dataset* dataset, int64_t first, int64_t count, dtf_tensor** values);
/* Returns the word of a class, valid as long as the data set; NULL beyond the last, or if classes
 * are numbers. */
const char* dtf_dataset_class(const dtf_dataset* dataset, size_t index);

#ifdef __cplusplus
}
#endif

#endif
