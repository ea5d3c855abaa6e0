#ifndef DTF_C_CHECKPOINT_H
#define DTF_C_CHECKPOINT_H

/* The tensors of a checkpoint, of a dtf_saver or of a job, without a graph. <dtf/dtf.h> has the
 * rules. */

#include "dtf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dtf_checkpoint dtf_checkpoint;

/* Opens a checkpoint, folder/step-N, or the newest whole one in a folder; a warning on stderr names
 * each newer one that is damaged. Reads and verifies every byte. DTF_BAD_DATA: there is none, or it
 * is damaged. DTF_BAD_CONFIG: `path` is empty. */
dtf_code dtf_checkpoint_open(const char* path, dtf_checkpoint** made);
void dtf_checkpoint_free(dtf_checkpoint* checkpoint);
/* The texts are valid as long as the checkpoint. */
const char* dtf_checkpoint_path(const dtf_checkpoint* checkpoint); /* folder/step-N */
const char* dtf_checkpoint_job(const dtf_checkpoint* checkpoint);
uint64_t dtf_checkpoint_step(const dtf_checkpoint* checkpoint);
/* Returns the name of a tensor; NULL beyond the last. First the variables, each with its slots
 * behind it ("w", "w/Adam", "w/Adam_1"), then the counters; the last is the global step. */
const char* dtf_checkpoint_tensor(const dtf_checkpoint* checkpoint, size_t index);
/* Reads a tensor: float32, or, of a counter, an int64 scalar. DTF_BAD_CONFIG: the checkpoint has no
 * such tensor. DTF_BAD_DATA: its bytes have changed since, or are gone. */
dtf_code dtf_checkpoint_read(const dtf_checkpoint* checkpoint, const char* name,
                             dtf_tensor** value);

#ifdef __cplusplus
}
#endif

#endif
