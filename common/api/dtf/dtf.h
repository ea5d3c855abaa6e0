#ifndef DTF_DTF_H
#define DTF_DTF_H

/* dtf from programs of your own: graphs, and sessions that run them on `psd --serve` and
 * `workerd --serve`, or on the CPU of this process. The plain C interface of libdtf; C++ has
 * <dtf/graph.h> and <dtf/session.h> above it.
 *
 * A function that can fail returns DTF_OK or what went wrong; dtf_error_message() then has the
 * sentence. What a function makes is the caller's, who gives it back with the ..._free() of its
 * kind, which ignores NULL. Text is UTF-8, ends with 0, and is copied. No function takes NULL for
 * text or for where its result goes, unless it says so; for an array of no elements NULL will do.
 * Threads: a session may be used by several at once, and so may what a function takes as const;
 * anything else by one at a time. It writes to stderr only what is wrong, as dtf's programs do.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong, with the exit codes of dtf's programs. */
typedef enum dtf_code {
  DTF_OK = 0,
  DTF_TRAINING_FAILED = 1, /* a kernel said no: a label out of its range */
  DTF_USAGE = 2,           /* an argument is wrong in itself: a target that is no address */
  DTF_BAD_DATA = 65,
  DTF_OUT_OF_RANGE = 66, /* a queue is closed: nothing more comes out of it, or goes in */
  DTF_UNAVAILABLE =
      69,            /* a task can't be reached, was lost, or has no room; the message says which */
  DTF_INTERNAL = 70, /* a mistake of dtf's: report it */
  DTF_CANNOT_WRITE = 73,
  DTF_PERMISSION = 77,
  DTF_BAD_CONFIG = 78, /* the graph, a feed or a fetch is wrong; the message names it */
  DTF_DEADLINE = 124   /* something did not happen in time; the message names it */
} dtf_code;

/* Of the call that failed last in this thread; good until this thread calls again. */
const char* dtf_error_message(void);

const char* dtf_version(void); /* "0.1.0" */

/* ---- tensors: dense, row-major */

typedef enum dtf_dtype { DTF_FLOAT32 = 1, DTF_UINT8 = 2, DTF_INT32 = 3, DTF_INT64 = 4 } dtf_dtype;

typedef struct dtf_tensor dtf_tensor;

/* Of zeros. `rank` dimensions, none negative; 0: a scalar. */
dtf_code dtf_tensor_new(dtf_dtype dtype, const int64_t* dims, size_t rank, dtf_tensor** made);
void dtf_tensor_free(dtf_tensor* tensor);
dtf_dtype dtf_tensor_dtype(const dtf_tensor* tensor);
size_t dtf_tensor_rank(const dtf_tensor* tensor);
int64_t dtf_tensor_dim(const dtf_tensor* tensor, size_t axis); /* axis < rank */
size_t dtf_tensor_bytes(const dtf_tensor* tensor);
void* dtf_tensor_data(dtf_tensor* tensor);
const void* dtf_tensor_const_data(const dtf_tensor* tensor);

/* ---- graphs: nodes are added, and never removed */

typedef struct dtf_graph dtf_graph;
typedef struct dtf_node dtf_node; /* one that is being described */

/* The index-th output of a node. */
typedef struct dtf_output {
  int32_t node;
  int32_t index;
} dtf_output;

dtf_code dtf_graph_new(dtf_graph** made);
void dtf_graph_free(dtf_graph* graph);

/* Begins a node of the op, "MatMul"; dtf_op_names() has them all. `name` NULL, empty, or one that
 * ends in '/': it is named after the op, behind that, with a number where needed. Nothing is in
 * the graph before dtf_node_add(). */
dtf_code dtf_node_new(dtf_graph* graph, const char* op, const char* name, dtf_node** made);
void dtf_node_input(dtf_node* node, dtf_output input);
void dtf_node_control_input(dtf_node* node, int32_t input); /* it runs after that node */
/* "/job:ps/task:1", "/job:worker/task:0/cpu:0", or a part of that: where it runs. */
void dtf_node_device(dtf_node* node, const char* device);
void dtf_node_bool(dtf_node* node, const char* attribute, int value);
void dtf_node_int(dtf_node* node, const char* attribute, int64_t value);
void dtf_node_double(dtf_node* node, const char* attribute, double value);
void dtf_node_text(dtf_node* node, const char* attribute, const char* value);
/* DTF_BAD_CONFIG for an unknown type or a negative dimension. */
dtf_code dtf_node_dtype(dtf_node* node, const char* attribute, dtf_dtype value);
dtf_code dtf_node_shape(dtf_node* node, const char* attribute, const int64_t* dims, size_t rank);
/* A function, for an If or a While: a copy of `body`, whose parameters are all of its Placeholders.
 * It only computes: no variables. DTF_BAD_CONFIG where that isn't so, and for outputs that it
 * doesn't have. */
dtf_code dtf_node_function(dtf_node* node, const char* attribute, const dtf_graph* body,
                           const dtf_output* parameters, size_t parameters_count,
                           const dtf_output* results, size_t results_count);
/* Adds it, with its shapes inferred. Frees the description, also where this fails: DTF_BAD_CONFIG
 * for an op, an attribute or a shape that doesn't fit, or a name that is taken. */
dtf_code dtf_node_add(dtf_node* node, int32_t* id);
void dtf_node_free(dtf_node* node); /* for one that is not added after all */

/* The name of a node of the graph; good until the next node is added. NULL: there is no such
 * node. */
const char* dtf_graph_node_name(const dtf_graph* graph, int32_t id);
/* What an output is. `dims` has room for `room` dimensions (0: it may be NULL), `rank` says how
 * many there are, `dtype` may be NULL. DTF_BAD_CONFIG: there is no such output. */
dtf_code dtf_graph_output(const dtf_graph* graph, dtf_output output, dtf_dtype* dtype,
                          int64_t* dims, size_t room, size_t* rank);

/* Adds the nodes that compute d(loss) / d(with_respect_to[i]), and tells the outputs that do.
 * DTF_BAD_CONFIG: the loss is no float32 scalar, or doesn't depend on one of them, which is named;
 * the graph may have nodes then that nothing uses. */
dtf_code dtf_graph_gradients(dtf_graph* graph, dtf_output loss, const dtf_output* with_respect_to,
                             size_t count, dtf_output* gradients);

/* All ops, a line each: "MatMul(2 inputs) transpose_a:bool transpose_b:bool". */
const char* dtf_op_names(void);

/* ---- sessions: run any part of a graph */

typedef struct dtf_session dtf_session;

/* 0 stands for the default. Seconds are of sessions on other tasks, but for step_seconds, which
 * holds in this process, too. */
typedef struct dtf_session_options {
  size_t size;             /* sizeof(dtf_session_options): later versions have more fields */
  double connect_seconds;  /* until every target has answered, and then until every task that
                              is found through one has; 10 */
  double register_seconds; /* until a part of the graph is compiled; 120 */
  double step_seconds;     /* a step; 600 */
  /* Until all is quiet after a failed step: a task whose kernel computes for longer is lost; 5. */
  double abort_seconds;
  int soft_placement; /* a node runs elsewhere where its device can't run it */
  /* A folder of the job's keys with ca.pem and client.pem in it, as `dtf-launch keys` makes it: for
   * tasks that have keys. NULL or empty: none. */
  const char* keys;
  /* Without keys, on this host: not 0 also talks to tasks that another user runs, as a cluster file
   * with `insecure: true` does. 0: only to those of this user and of root; others are refused with
   * DTF_PERMISSION. Of 64 bits, so that nothing follows it within today's size. */
  int64_t insecure;
} dtf_session_options;

/* Takes a copy of the graph. `targets`: "dtf://host:port" of a task, or "dtf://host:port/worker/1"
 * for that task and no other, which with keys its certificate must prove. The first is where a node
 * goes that asks for nothing; it also says where the other tasks of its cluster file are, of which
 * those are reached that nodes name ("/job:ps/task:1") and that aren't among the targets. None: the
 * CPU of this process, "/job:worker/task:0/cpu:0". `options` may be NULL. DTF_UNAVAILABLE names a
 * target that doesn't answer, or doesn't serve; DTF_PERMISSION one that is another task, or whose
 * certificate, or this client's, is refused; DTF_BAD_DATA keys that can't be read; DTF_BAD_CONFIG a
 * node that can't be placed, with the devices that there are. */
dtf_code dtf_session_open(const dtf_graph* graph, const char* const* targets, size_t count,
                          const dtf_session_options* options, dtf_session** made);
/* What the session held on its tasks is freed. No step may run. */
void dtf_session_free(dtf_session* session);

/* Drops the variables of a container, "" being the one of those that name none, on all of the
 * session's tasks: whoever shares them finds them without a value. For variables whose shape has
 * changed. Its queues are empty and open, and a step that waits for one returns DTF_UNAVAILABLE. */
dtf_code dtf_session_reset(dtf_session* session, const char* container);
/* Gives a variable its value, from the next step on; before that, or an Assign, it has none,
 * whatever its initializer says. */
dtf_code dtf_session_set_variable(dtf_session* session, const char* name, const dtf_tensor* value);

typedef struct dtf_feed {
  const char* tensor; /* "x", "layer/Relu:0": any, not only placeholders */
  const dtf_tensor* value;
} dtf_feed;

/* Runs what the fetches and targets need, and returns when all of it has ended. `values` takes a
 * new tensor for each fetch; after an error there are none. `targets`: nodes that run, too,
 * without their values. The error is the first of any part: its root cause.
 * Steps with the same feeds, fetches and targets run one at a time, whichever threads ask: the next
 * one waits, with no deadline of its own, until the one before has ended. Others run side by
 * side. */
dtf_code dtf_session_run(dtf_session* session, const dtf_feed* feeds, size_t feed_count,
                         const char* const* fetches, size_t fetch_count, dtf_tensor** values,
                         const char* const* targets, size_t target_count);

/* Ends the steps that run now, from any thread: each returns DTF_UNAVAILABLE with the text `why`,
 * once its kernels have ended. Steps that begin later run. */
dtf_code dtf_session_abort(dtf_session* session, const char* why);

/* ---- models that `dtf-launch` trained */

typedef struct dtf_model dtf_model;

/* Reads what `dtf-launch CLUSTER.yaml` trains, or trained: the model from the file, its values
 * from a checkpoint of its run. `checkpoint`: NULL or empty: the newest one in
 * <run_dir>/checkpoints, where run_dir is relative to the working directory, as dtf-launch's;
 * else a step, or a checkpoint's folder; or "initial": none, but what the job starts from.
 * DTF_BAD_CONFIG: the file is wrong; DTF_BAD_DATA: there is no such checkpoint, or it is
 * damaged. */
dtf_code dtf_model_load(const char* cluster_file, const char* checkpoint, dtf_model** made);
void dtf_model_free(dtf_model* model);
uint64_t dtf_model_step(const dtf_model* model); /* after which the checkpoint was taken */

/* The meaning of the numbers that the model was trained on. The texts are good as long as the
 * model; NULL: the checkpoint holds none. dtf_model_data(): JSON, one line, the columns of each
 * input and target, in order, and the preparation of their fields (common/data/data_signature.h).
 * dtf_model_column(): the column `index` of the table that feeds `part`, an input ("features") or a
 * target; NULL beyond the last. dtf_model_class(): the name of a class; NULL beyond the last. */
const char* dtf_model_data(const dtf_model* model);
const char* dtf_model_column(const dtf_model* model, const char* part, size_t index);
const char* dtf_model_class(const dtf_model* model, size_t index);

/* What a model computes, by name, as TensorFlow's saved models have it. A tensor of a signature has
 * a name there, and is fed, fetched, or a variable of the model:
 *   predict   features -> outputs: probabilities after a cross-entropy, else what the last layer
 *             gives, which logits always are
 *   evaluate  features, labels -> loss, logits; accuracy, where the model asks for it
 *   train     features, labels; random_key where there is dropout, two int64, from which the masks
 *             of a step are drawn -> loss, and for each variable W gradient/W; for a moving average
 *             A (of batch normalisation) next/A in its place, the value that the step gives it
 * `features` is [batch, the input's shape], `labels` [batch] classes, or [batch, units] targets. */
typedef struct dtf_signature dtf_signature;
typedef enum dtf_role { DTF_INPUT = 0, DTF_OUTPUT = 1, DTF_VARIABLE = 2 } dtf_role;

/* Adds what the signature `name` needs, for `batch` examples: every node with `prefix` before its
 * name ("", "digits/"), and on `device` (NULL: on the session's first); but variable i on
 * `variable_devices[i % count]`, where there are some: `/job:ps/task:0`, `/job:ps/task:1` deals
 * them to two ps. DTF_BAD_CONFIG: there is no such signature, or a name is taken; the graph may
 * have some of the nodes then. */
dtf_code dtf_model_add(const dtf_model* model, const char* name, dtf_graph* graph,
                       const char* prefix, const char* device, const char* const* variable_devices,
                       size_t count, int64_t batch, dtf_signature** made);
void dtf_signature_free(dtf_signature* signature);
size_t dtf_signature_count(const dtf_signature* signature); /* of its tensors */
/* The name of the tensor `index`, without prefix; good as long as the signature. NULL: there is
 * none. `role` and `tensor` may be NULL. */
const char* dtf_signature_tensor(const dtf_signature* signature, size_t index, dtf_role* role,
                                 dtf_output* tensor);

/* Gives the variables under `prefix` their values, in a session on such a graph. */
dtf_code dtf_model_restore(const dtf_model* model, const char* prefix, dtf_session* session);

#ifdef __cplusplus
}
#endif

#endif
