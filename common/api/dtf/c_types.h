#ifndef DTF_C_TYPES_H
#define DTF_C_TYPES_H

/* Errors and tensors of the C interface. <dtf/dtf.h> includes it, and has the rules. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Error codes, equal to the exit codes of dtf's programs. */
typedef enum dtf_code {
  DTF_OK = 0,
  DTF_TRAINING_FAILED = 1, /* a kernel rejected its data: a label out of range */
  DTF_USAGE = 2,           /* an argument is invalid: a target that is no address */
  DTF_BAD_DATA = 65,
  DTF_OUT_OF_RANGE = 66, /* a queue is closed: nothing more comes out of it, or goes in */
  DTF_UNAVAILABLE =
      69,            /* a task can't be reached, was lost, or has no room; the message says which */
  DTF_INTERNAL = 70, /* a bug in dtf: report it */
  DTF_CANNOT_WRITE = 73,
  DTF_PERMISSION = 77,
  DTF_BAD_CONFIG = 78, /* the graph, a feed or a fetch is wrong; the message names it */
  DTF_DEADLINE = 124   /* a deadline has passed; the message names the missing event */
} dtf_code;

/* Returns the message of the last failed call in this thread; valid until this thread's next call.
 */
const char* dtf_error_message(void);

const char* dtf_version(void); /* "0.1.0" */

/* ---- tensors: dense, row-major */

typedef enum dtf_dtype { DTF_FLOAT32 = 1, DTF_UINT8 = 2, DTF_INT32 = 3, DTF_INT64 = 4 } dtf_dtype;

typedef struct dtf_tensor dtf_tensor;

/* Makes a tensor of zeros with `rank` dimensions, none negative; 0: a scalar. */
dtf_code dtf_tensor_new(dtf_dtype dtype, const int64_t* dims, size_t rank, dtf_tensor** made);
void dtf_tensor_free(dtf_tensor* tensor);
dtf_dtype dtf_tensor_dtype(const dtf_tensor* tensor);
size_t dtf_tensor_rank(const dtf_tensor* tensor);
int64_t dtf_tensor_dim(const dtf_tensor* tensor, size_t axis); /* axis < rank */
size_t dtf_tensor_bytes(const dtf_tensor* tensor);
void* dtf_tensor_data(dtf_tensor* tensor);
const void* dtf_tensor_const_data(const dtf_tensor* tensor);

#ifdef __cplusplus
}
#endif

#endif
