#ifndef DTF_DTF_H
#define DTF_DTF_H

/* dtf from programs of your own: graphs, and sessions that run them on `psd --serve` and
 * `workerd --serve`, or on the CPU of this process. The plain C interface of libdtf; C++ has
 * <dtf/graph.h> and <dtf/session.h> above it.
 *
 * A function that can fail returns DTF_OK or an error code; dtf_error_message() then returns the
 * message. The caller owns every object that a function makes, and frees it with the ..._free() of
 * its kind, which ignores NULL. Text is UTF-8, ends with 0, and is copied. Texts and pointers to
 * results must not be NULL unless a function allows it; an array of no elements may be NULL.
 * Threads: several threads may use a session, and objects passed as const, at once; any other
 * object is used by one thread at a time. The library writes only errors and warnings to stderr, as
 * dtf's programs do.
 */

#include "c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graphs: nodes are added, and never removed */

typedef struct dtf_graph dtf_graph;
typedef struct dtf_node dtf_node; /* a node being described */

/* The index-th output of a node. */
typedef struct dtf_output {
  int32_t node;
  int32_t index;
} dtf_output;

dtf_code dtf_graph_new(dtf_graph** made);
/* Makes a graph of the same nodes. A program whose threads share a graph copies it under its lock,
 * and opens a session on the copy without. */
dtf_code dtf_graph_copy(const dtf_graph* graph, dtf_graph** made);
void dtf_graph_free(dtf_graph* graph);

/* Begins a node of the op, such as "MatMul"; dtf_op_names() lists all ops. If `name` is NULL,
 * empty, or ends in '/', the name of the op is appended, with a number if needed. The graph does
 * not contain the node before dtf_node_add(). */
dtf_code dtf_node_new(dtf_graph* graph, const char* op, const char* name, dtf_node** made);
void dtf_node_input(dtf_node* node, dtf_output input);
void dtf_node_control_input(dtf_node* node, int32_t input); /* it runs after that node */
/* "/job:ps/task:1", "/job:worker/task:0/cpu:0", or a part of that: the node's device. */
void dtf_node_device(dtf_node* node, const char* device);
void dtf_node_bool(dtf_node* node, const char* attribute, int value);
void dtf_node_int(dtf_node* node, const char* attribute, int64_t value);
void dtf_node_double(dtf_node* node, const char* attribute, double value);
void dtf_node_text(dtf_node* node, const char* attribute, const char* value);
/* DTF_BAD_CONFIG for an unknown type or a negative dimension. */
dtf_code dtf_node_dtype(dtf_node* node, const char* attribute, dtf_dtype value);
dtf_code dtf_node_shape(dtf_node* node, const char* attribute, const int64_t* dims, size_t rank);
/* Sets a function, for an If or a While: a copy of `body`. Its parameters are all Placeholders of
 * `body`, and it has no variables. DTF_BAD_CONFIG if this is violated, or for an output that
 * `body` doesn't have. */
dtf_code dtf_node_function(dtf_node* node, const char* attribute, const dtf_graph* body,
                           const dtf_output* parameters, size_t parameters_count,
                           const dtf_output* results, size_t results_count);
/* Adds the node, with inferred shapes. Frees the description, even on failure: DTF_BAD_CONFIG for
 * an op, an attribute or a shape that doesn't fit, or a name that is taken. */
dtf_code dtf_node_add(dtf_node* node, int32_t* id);
void dtf_node_free(dtf_node* node); /* for a node that is never added */

/* Returns the name of a node, valid until the next node is added; NULL if there is no such node. */
const char* dtf_graph_node_name(const dtf_graph* graph, int32_t id);
/* Returns dtype and shape of an output. `dims` has room for `room` dimensions (if 0, it may be
 * NULL); `rank` receives their number; `dtype` may be NULL. DTF_BAD_CONFIG: no such output. */
dtf_code dtf_graph_output(const dtf_graph* graph, dtf_output output, dtf_dtype* dtype,
                          int64_t* dims, size_t room, size_t* rank);

/* Adds the nodes that compute d(loss) / d(with_respect_to[i]), and returns their outputs.
 * DTF_BAD_CONFIG: the loss is no float32 scalar, or doesn't depend on one of them, which the
 * message names; the graph may then contain unused nodes. */
dtf_code dtf_graph_gradients(dtf_graph* graph, dtf_output loss, const dtf_output* with_respect_to,
                             size_t count, dtf_output* gradients);

/* ---- training: an optimizer of a job, as nodes of a graph */

typedef struct dtf_minimize_options {
  size_t size;                 /* sizeof(dtf_minimize_options): later versions have more fields */
  const dtf_output* variables; /* to train; none: every float32 variable that the loss depends on */
  size_t variables_count;
  const char* prefix;      /* of the names of nodes that belong to no variable; may be NULL */
  const char* global_step; /* name of the counter of steps; NULL: "global_step" */
} dtf_minimize_options;

/* Adds one step of an optimizer that makes `loss` smaller: gradients, clipping, the updates of all
 * variables on their tasks, and the count of the step. `optimizer` is a name of train.optimizer in
 * a job's file with its settings, as "adam learning_rate=0.001 beta1=0.9", or, with a schedule by
 * the global step, "momentum learning_rate=0.1 schedule=exponential decay_steps=1000
 * decay_rate=0.9". Three settings are of every optimizer: clip_by_global_norm=5,
 * clip_by_value=0.5 and moving_average.decay=0.99. Settings that are left out have the defaults of
 * a file (`dtf-launch --help-config`). With equal settings the values have the bits of a job with
 * one worker.
 *
 * The slots are variables with TensorFlow's names, on the task of their own: "w/Adam", "w/Adam_1".
 * `train`: the node to run; its value is the global step after the step. `global_step`: the
 * counter, added unless the graph has it. `norm`: with clip_by_global_norm the norm before; else
 * its node is -1. Each may be NULL, as may `options`.
 *
 * DTF_BAD_CONFIG: a setting doesn't work; the loss is no float32 scalar, or doesn't depend on a
 * variable; a variable has slots already. The graph may then contain unused nodes.
 *
 * After an error of a step with `train` some variables may have changed and others not: restore a
 * checkpoint, or initialize, before the next step. */
dtf_code dtf_graph_minimize(dtf_graph* graph, dtf_output loss, const char* optimizer,
                            const dtf_minimize_options* options, dtf_output* train,
                            dtf_output* global_step, dtf_output* norm);

/* Returns all ops, one a line: "MatMul(2 inputs) transpose_a:bool transpose_b:bool". */
const char* dtf_op_names(void);

/* ---- sessions: run any part of a graph */

typedef struct dtf_session dtf_session;

/* 0 stands for the default. The times apply to sessions on other tasks; step_seconds also to
 * sessions in this process. */
typedef struct dtf_session_options {
  size_t size;             /* sizeof(dtf_session_options): later versions have more fields */
  double connect_seconds;  /* until every target has replied, and again until every task
                              found through one has; 10 */
  double register_seconds; /* the compilation of a part of the graph; 120 */
  double step_seconds;     /* a step; 600 */
  /* The end of all kernels after a failed step: a task that computes for longer is lost; 5. */
  double abort_seconds;
  int soft_placement; /* a node runs on another device if its own can't run it */
  /* A folder made by `dtf-launch keys`, with ca.pem and client.pem, for tasks that have keys. NULL
   * or empty: no keys. */
  const char* keys;
  /* Without keys, on this host: nonzero also accepts tasks of other users, as a cluster file with
   * `insecure: true` does. 0 accepts only tasks of this user and of root; others are rejected with
   * DTF_PERMISSION. It has 64 bits so that the struct has no padding at its end. */
  int64_t insecure;
} dtf_session_options;

/* Opens a session on a copy of the graph.
 *
 * `targets`: "dtf://host:port" of a task, or "dtf://host:port/worker/1" for exactly that task,
 * which its certificate must prove if it has keys. Nodes without a device run on the first target.
 * It also provides the addresses of the other tasks in its cluster file; the session connects to
 * those that nodes name ("/job:ps/task:1"). Without targets the session runs on the CPU of this
 * process,
 * "/job:worker/task:0/cpu:0". `options` may be NULL.
 *
 * DTF_UNAVAILABLE: a target doesn't reply, or doesn't serve. DTF_PERMISSION: a target is another
 * task, or its certificate or this client's is rejected. DTF_BAD_DATA: the keys can't be read.
 * DTF_BAD_CONFIG: a node can't be placed; the message lists the devices. */
dtf_code dtf_session_open(const dtf_graph* graph, const char* const* targets, size_t count,
                          const dtf_session_options* options, dtf_session** made);
/* Frees the session's resources on its tasks. No step may be running. */
void dtf_session_free(dtf_session* session);

/* Drops the variables of a container on all of the session's tasks, for every session that shares
 * them; "" is the container of variables that name none. Use it when a shape has changed. The
 * container's queues become empty and open, and steps that wait for one return DTF_UNAVAILABLE. */
dtf_code dtf_session_reset(dtf_session* session, const char* container);
/* Sets the value of a variable from the next step on. Before that, dtf_session_initialize(), or an
 * Assign, it has no value, even if it has an initializer. */
dtf_code dtf_session_set_variable(dtf_session* session, const char* name, const dtf_tensor* value);

/* Gives every variable of the graph its initial value, by the attribute "initializer" of its node,
 * on its task; replaces values that are there. The values follow from `seed` and the order of the
 * variables, as in a job with this seed. */
dtf_code dtf_session_initialize(dtf_session* session, uint64_t seed);
/* Writes the names of the variables without a value, each with a newline behind it, then a 0, to
 * `names`, up to `room` bytes. `bytes` receives the number of bytes of all. */
dtf_code dtf_session_uninitialized(dtf_session* session, char* names, size_t room, size_t* bytes);

typedef struct dtf_feed {
  const char* tensor; /* "x", "layer/Relu:0": any, not only placeholders */
  const dtf_tensor* value;
} dtf_feed;

/* Runs the nodes needed for the fetches and targets, and returns when all have ended. `values`
 * receives a new tensor for each fetch, or none after an error. `targets`: nodes to run without
 * fetching their values; one of either must be there. The error is the first of any part: the root
 * cause.
 * Steps with the same feeds, fetches and targets run one at a time, also from different threads:
 * the next one waits, without a deadline, until the previous one has ended. Other steps run
 * concurrently. */
dtf_code dtf_session_run(dtf_session* session, const dtf_feed* feeds, size_t feed_count,
                         const char* const* fetches, size_t fetch_count, dtf_tensor** values,
                         const char* const* targets, size_t target_count);

/* Aborts the steps that run now, from any thread: each returns DTF_UNAVAILABLE with the text `why`
 * once its kernels have ended. Later steps are unaffected. */
dtf_code dtf_session_abort(dtf_session* session, const char* why);

/* ---- checkpoints of a session's variables, in the format of jobs */

typedef struct dtf_saver_options {
  size_t size;     /* sizeof(dtf_saver_options): later versions have more fields */
  const char* job; /* the name in the checkpoint, by which a job goes on from it; NULL: "graph" */
  const char* global_step; /* name of the counter of steps; NULL: "global_step" */
  int64_t max_to_keep;     /* newest checkpoints in a folder; 0: 5; -1: all */
} dtf_saver_options;

typedef struct dtf_saver dtf_saver;

dtf_code dtf_saver_new(const dtf_saver_options* options, dtf_saver** made); /* may be NULL */
void dtf_saver_free(dtf_saver* saver);

/* Saves all variables of the session's graph, with slots and counters, in `folder`/step-N, and
 * removes the oldest beyond max_to_keep, but never this one. The folder and its parents are made.
 * N is the global step; without such a counter it is `step`, which is otherwise ignored. The values
 * are of one step only if no other step changes variables meanwhile, of this client or of another:
 * each device reads its variables one after another. A folder has one saver at a time. If it has a
 * newer checkpoint, which dtf_saver_restore() of the folder takes, a warning on stderr names it.
 * `path` receives the path with its 0, up to `room` bytes, and `bytes` its size; both may be NULL.
 * DTF_TRAINING_FAILED: a value isn't finite. DTF_CANNOT_WRITE: the disk, or a checkpoint of that
 * step with other values. DTF_BAD_CONFIG: `folder` is empty, or the global step negative. */
dtf_code dtf_saver_save(dtf_saver* saver, dtf_session* session, const char* folder, uint64_t step,
                        char* path, size_t room, size_t* bytes);
/* Sets all variables of the session's graph from a checkpoint, folder/step-N, or from the newest
 * whole one in a folder; a warning on stderr names each newer one that is damaged. `step`, which
 * may be NULL, receives its global step. A job's checkpoint will do. The variables are set one
 * after another, so no client may train them meanwhile. DTF_BAD_DATA: there is none, or it is
 * damaged. DTF_BAD_CONFIG: `path` is empty; or the checkpoint lacks a variable, or has it with
 * another shape: the message has a line for each. */
dtf_code dtf_saver_restore(dtf_saver* saver, dtf_session* session, const char* path,
                           uint64_t* step);
/* Returns the path of the newest whole checkpoint in a folder as above; an empty text if there is
 * none. DTF_BAD_CONFIG: `folder` is empty. */
dtf_code dtf_saver_latest(dtf_saver* saver, const char* folder, char* path, size_t room,
                          size_t* bytes);

/* ---- a job of `dtf-launch` while it trains */

typedef struct dtf_job_reader dtf_job_reader;

/* Prepares to read the parameters of the job in a cluster file. It connects to nothing yet. `keys`:
 * a folder with ca.pem and client.pem; NULL or empty: the one that the file names.
 * DTF_BAD_CONFIG: the file is wrong, its job runs in one process, or it has `placement: auto`. */
dtf_code dtf_job_reader_open(const char* cluster_file, const char* keys, dtf_job_reader** made);
void dtf_job_reader_free(dtf_job_reader* reader);

/* Takes the newest version of all parameters, in place of the one before. The tasks that hold them
 * keep it in memory until the next call, or for a minute without one; the training does not wait.
 * In sync training, all variables are of one step. In async and bounded training each task has its
 * own newest version, and `step`, which may be NULL, is the lowest. Waits at most `seconds` (0: 10)
 * for tasks that are not there, or hold no values. DTF_BAD_CONFIG: the tasks run another job.
 * DTF_UNAVAILABLE: a task isn't there. DTF_DEADLINE: a task has not replied, or the tasks came to
 * no common step in time. */
dtf_code dtf_job_reader_take(dtf_job_reader* reader, double seconds, uint64_t* step);
/* The variables of the version taken last; without one, none. A name is valid until the next
 * dtf_job_reader_take(); NULL beyond the last. */
size_t dtf_job_reader_count(const dtf_job_reader* reader);
const char* dtf_job_reader_variable(const dtf_job_reader* reader, size_t index);
/* Makes a tensor of a variable of the version taken last. DTF_USAGE: none was taken.
 * DTF_BAD_CONFIG: there is no such variable. DTF_UNAVAILABLE: the version is no longer kept.
 * DTF_DEADLINE: a task did not send its part within half a minute. */
dtf_code dtf_job_reader_read(dtf_job_reader* reader, const char* name, dtf_tensor** value);
/* Writes the state of all tasks as one JSON object and a 0 to `json`, up to `room` bytes: what each
 * replies to `dtf-launch status`, by the name of the task; null for a task that doesn't reply
 * within two seconds. `bytes` receives the size of all. */
dtf_code dtf_job_reader_status(dtf_job_reader* reader, char* json, size_t room, size_t* bytes);

/* ---- models trained by `dtf-launch` */

typedef struct dtf_model dtf_model;

/* Loads a model of `dtf-launch CLUSTER.yaml`: its layers from the file, its values from a
 * checkpoint of its run. `checkpoint`: NULL or empty for the newest one in <run_dir>/checkpoints,
 * where run_dir is relative to the working directory, as for dtf-launch; a step; a checkpoint's
 * folder; or "initial" for the job's initial values. DTF_BAD_CONFIG: the file is wrong.
 * DTF_BAD_DATA: there is no such checkpoint, or it is damaged. */
dtf_code dtf_model_load(const char* cluster_file, const char* checkpoint, dtf_model** made);
void dtf_model_free(dtf_model* model);
uint64_t dtf_model_step(const dtf_model* model); /* the step of the checkpoint */

/* The meaning of the training data. The texts are valid as long as the model; NULL if the
 * checkpoint holds none. dtf_model_data() returns one line of JSON: the columns of each input and
 * target, in order, and the preparation of their fields (common/data/data_signature.h).
 * dtf_model_column() returns column `index` of the table that feeds `part`, an input ("features")
 * or a target; NULL beyond the last. dtf_model_class() returns the name of a class; NULL beyond the
 * last. */
const char* dtf_model_data(const dtf_model* model);
const char* dtf_model_column(const dtf_model* model, const char* part, size_t index);
const char* dtf_model_class(const dtf_model* model, size_t index);

/* A named function of a model, as in TensorFlow's saved models. The tensors of a signature are
 * named; they are fed, fetched, or variables of the model:
 *   predict   features -> outputs: probabilities after a cross-entropy, else the result of the last
 *             layer
 *   evaluate  features, labels -> loss; logits, the result of the last layer; accuracy, if the
 * model has that metric train     features, labels; with dropout also random_key, two int64 that
 * determine the masks of a step -> loss, and for each variable W gradient/W; for a moving average A
 * (of batch normalisation) next/A instead, its new value `features` is [batch, the input's shape],
 * `labels` [batch] classes, or [batch, units] targets. */
typedef struct dtf_signature dtf_signature;
typedef enum dtf_role { DTF_INPUT = 0, DTF_OUTPUT = 1, DTF_VARIABLE = 2 } dtf_role;

/* Adds the nodes of the signature `name` for `batch` examples. Their names start with `prefix` ("",
 * "digits/"), and they run on `device` (NULL: the session's first). If there are
 * `variable_devices`, variable i is on `variable_devices[i % count]`: `/job:ps/task:0`,
 * `/job:ps/task:1` distributes them over two ps. DTF_BAD_CONFIG: there is no such signature, or a
 * name is taken; the graph may then contain some of the nodes. */
dtf_code dtf_model_add(const dtf_model* model, const char* name, dtf_graph* graph,
                       const char* prefix, const char* device, const char* const* variable_devices,
                       size_t count, int64_t batch, dtf_signature** made);
void dtf_signature_free(dtf_signature* signature);
size_t dtf_signature_count(const dtf_signature* signature); /* number of its tensors */
/* Returns the name of tensor `index`, without prefix, valid as long as the signature; NULL beyond
 * the last. `role` and `tensor` may be NULL. */
const char* dtf_signature_tensor(const dtf_signature* signature, size_t index, dtf_role* role,
                                 dtf_output* tensor);

/* Sets the variables under `prefix` to the model's values, in a session on such a graph. */
dtf_code dtf_model_restore(const dtf_model* model, const char* prefix, dtf_session* session);

#ifdef __cplusplus
}
#endif

#include "c_dataset.h"
#include "c_server.h"

#endif
