#ifndef DTF_DEVICE_PLUGIN_H
#define DTF_DEVICE_PLUGIN_H

/* The boundary between dtf and a device plug-in: a shared library that computes with
 * libraries that the programs don't link (libdtf_gpu.so: CUDA). Plain C, so that neither
 * exceptions nor types of the standard library cross it, and the two may be built by different
 * compilers.
 *
 * A plug-in exports one function, DTF_DEVICE_PLUGIN_SYMBOL, of the type dtf_device_plugin_entry.
 * Its first field is the version of this file: another version is rejected before anything else is
 * read.
 *
 * Errors: a function that can fail takes a dtf_plugin_status and fills it; it is DTF_PLUGIN_OK
 * before the call. The result of a failed call is NULL. Text that a plug-in returns is UTF-8 and
 * valid until its owner is destroyed. No argument is NULL.
 * Threads: one thread at a time uses a device and its objects; several devices may be
 * used by several threads.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DTF_DEVICE_PLUGIN_VERSION 6u
#define DTF_DEVICE_PLUGIN_SYMBOL "dtf_device_plugin_calls"

typedef enum dtf_plugin_code {
  DTF_PLUGIN_OK = 0,
  DTF_PLUGIN_BAD_CONFIG = 1,  /* no kernel for these types or shapes */
  DTF_PLUGIN_BAD_DATA = 2,    /* a value that the data must not contain: a label without a class */
  DTF_PLUGIN_UNAVAILABLE = 3, /* the device is missing, out of memory, or has failed */
  DTF_PLUGIN_INTERNAL = 4     /* a library rejected a call that it should have accepted */
} dtf_plugin_code;

typedef struct dtf_plugin_status {
  int32_t code;       /* a dtf_plugin_code */
  char message[1024]; /* a sentence, ends with 0 */
} dtf_plugin_status;

/* Numbers as in dtf's own files and calls. */
typedef enum dtf_plugin_dtype {
  DTF_PLUGIN_FLOAT32 = 1,
  DTF_PLUGIN_UINT8 = 2,
  DTF_PLUGIN_INT32 = 3,
  DTF_PLUGIN_INT64 = 4,
  DTF_PLUGIN_BFLOAT16 = 5 /* within a step alone */
} dtf_plugin_dtype;

/* Dense, row-major. */
typedef struct dtf_plugin_tensor {
  int32_t dtype; /* a dtf_plugin_dtype */
  uint32_t rank;
  const int64_t* dims;
} dtf_plugin_tensor;

typedef enum dtf_plugin_attribute_type {
  DTF_PLUGIN_INTEGER = 1, /* also a bool: 0 or 1, and a dtf_plugin_dtype */
  DTF_PLUGIN_NUMBER = 2,
  DTF_PLUGIN_LIST = 3 /* of integers: a shape */
} dtf_plugin_attribute_type;

typedef struct dtf_plugin_attribute {
  const char* key;
  int32_t type; /* a dtf_plugin_attribute_type: selects one of the fields below */
  int64_t integer;
  double number;
  const int64_t* list;
  size_t list_size;
} dtf_plugin_attribute;

/* One computation of a compiled step. Ops, their inputs, outputs and attributes are those of
 * common/graph/standard_*_ops.cc. Valid during the call. */
typedef struct dtf_plugin_operation {
  const char* name; /* the node's, for messages */
  const char* op;   /* "MatMul" */
  const dtf_plugin_attribute* attributes;
  size_t attributes_size;
  const dtf_plugin_tensor* inputs;
  size_t inputs_size;
  const dtf_plugin_tensor* outputs;
  size_t outputs_size;
} dtf_plugin_operation;

typedef struct dtf_plugin_device dtf_plugin_device;
typedef struct dtf_plugin_kernel dtf_plugin_kernel;
typedef struct dtf_plugin_program dtf_plugin_program;

/* One kernel of a program with its memory, all of it the device's. */
typedef struct dtf_plugin_launch {
  dtf_plugin_kernel* kernel;
  const void* const* inputs; /* by the operation's inputs */
  void* const* outputs;      /* by its outputs */
  void* workspace;           /* of kernel_workspace_bytes(), aligned to 64; NULL for none */
} dtf_plugin_launch;

typedef struct dtf_device_plugin {
  uint32_t version;    /* DTF_DEVICE_PLUGIN_VERSION */
  const char* backend; /* "CUDA 13.0, cuDNN 9.19.0, cuBLASLt 13.1.0": its libraries */

  /* Returns the number of devices of this host; 0 with a message if a driver or library is
   * missing. */
  int32_t (*device_count)(dtf_plugin_status* status);

  /* Returns the ops with kernels; `size` of them. */
  const char* const* (*ops)(size_t* size);

  /* `index` counts from 0. A device is closed after all of its objects are destroyed. */
  dtf_plugin_device* (*open)(int32_t index, dtf_plugin_status* status);
  void (*close)(dtf_plugin_device* device);
  const char* (*describe)(dtf_plugin_device* device); /* "NVIDIA H200, 139.8 GiB, driver 13.0" */
  /* Returns the number of kernels that ran, for tests. */
  uint64_t (*kernels_launched)(dtf_plugin_device* device);

  /* Zeroed memory of the device, aligned to 256. */
  void* (*allocate)(dtf_plugin_device* device, size_t bytes, dtf_plugin_status* status);
  void (*deallocate)(dtf_plugin_device* device, void* memory);

  /* Ordered after the copies and programs before them. Either may return before the copy is done:
   * until synchronise() has returned, the source of a copy to the device must not change, and the
   * target of a copy to the host isn't valid. */
  void (*copy_to_device)(dtf_plugin_device* device, void* target, const void* source, size_t bytes,
                         dtf_plugin_status* status);
  void (*copy_to_host)(dtf_plugin_device* device, void* target, const void* source, size_t bytes,
                       dtf_plugin_status* status);
  /* The same beside the programs. A copy to the device is done before later programs; no program
   * since the last synchronise() may use its target. A copy to the host waits for earlier programs;
   * no program until synchronise() may write its source. */
  void (*copy_to_device_beside)(dtf_plugin_device* device, void* target, const void* source,
                                size_t bytes, dtf_plugin_status* status);
  void (*copy_to_host_beside)(dtf_plugin_device* device, void* target, const void* source,
                              size_t bytes, dtf_plugin_status* status);
  /* Waits for the first `copies` of copy_to_host_beside since the last synchronise():
   * their targets are valid. It need not return errors of kernels. */
  void (*await_host)(dtf_plugin_device* device, uint64_t copies, dtf_plugin_status* status);
  /* Copies from another device of the plug-in, ordered like copy_to_device. `peer` must be idle,
   * and `source` must not change until synchronise() of `device`. */
  void (*copy_from_peer)(dtf_plugin_device* device, void* target, dtf_plugin_device* peer,
                         const void* source, size_t bytes, dtf_plugin_status* status);
  /* Waits for all earlier operations. Returns the errors of kernels. */
  void (*synchronise)(dtf_plugin_device* device, dtf_plugin_status* status);

  /* Makes a kernel for exactly this operation; needs no device. */
  dtf_plugin_kernel* (*make_kernel)(const dtf_plugin_operation* operation,
                                    dtf_plugin_status* status);
  void (*destroy_kernel)(dtf_plugin_kernel* kernel);
  size_t (*kernel_workspace_bytes)(const dtf_plugin_kernel* kernel);
  /* Returns whether `output` may occupy exactly the memory of `input`. */
  int32_t (*kernel_can_overwrite)(const dtf_plugin_kernel* kernel, int32_t output, int32_t input);
  const char* (*kernel_way)(const dtf_plugin_kernel* kernel); /* how it computes; "" for one way */
  /* Called once, before the first program with the kernel: chooses plans for this device, allocates
   * memory. */
  void (*prepare_kernel)(dtf_plugin_kernel* kernel, dtf_plugin_device* device,
                         dtf_plugin_status* status);

  /* Captures launches, in this order, for repeated runs. The kernels must outlive the program; the
   * array of launches and its pointers are copied. */
  dtf_plugin_program* (*make_program)(dtf_plugin_device* device, const dtf_plugin_launch* launches,
                                      size_t size, dtf_plugin_status* status);
  void (*destroy_program)(dtf_plugin_program* program);
  /* May return before it is done. */
  void (*run_program)(dtf_plugin_program* program, dtf_plugin_status* status);
  /* Returns the device's computing time of the last run, after synchronise(), without copies and
   * without the host's overhead. 0 before the first run. */
  double (*program_seconds)(dtf_plugin_program* program, dtf_plugin_status* status);
  /* Runs it once more, launch by launch, and fills `seconds` with the device's time for each. */
  void (*profile_program)(dtf_plugin_program* program, double* seconds, dtf_plugin_status* status);
} dtf_device_plugin;

typedef const dtf_device_plugin* (*dtf_device_plugin_entry)(void);

#ifdef __cplusplus
}
#endif

#endif
