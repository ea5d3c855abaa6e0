#ifndef DTF_TRAINING_H
#define DTF_TRAINING_H

/* The part of the C interface for training by several clients: synchronous replicas, and a
 * supervisor that initialises, restores, saves and recovers. All else is in <dtf/dtf.h>. */

#include "dtf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- synchronous replicas: TensorFlow's SyncReplicasOptimizer */

typedef struct dtf_sync_replicas_options {
  size_t size; /* sizeof(dtf_sync_replicas_options): later versions have more fields */
  int64_t replicas_to_aggregate; /* gradients of one step, 1 to 4096; 0: total_num_replicas */
  int64_t total_num_replicas;    /* clients, at most 4096; 0: replicas_to_aggregate. More than
                                    replicas_to_aggregate: the others are backups */
  int64_t rank;                  /* of this client, from 0 */
} dtf_sync_replicas_options;

/* Adds one step of an optimizer as dtf_graph_minimize(), of which each client contributes its
 * gradient: the step is taken once, with the mean of replicas_to_aggregate gradients, and `train`
 * waits for it. All clients have the same graph besides the rank. The mean is summed in the order
 * of the ranks, so it doesn't depend on the order of arrival. All ps take the same gradients.
 *
 * `train`: the node to run; its value is the global step after it. `accepted`: an int64 scalar of
 * the same step, 1 if the mean contains this gradient, 0 if it was late, or if another gradient of
 * this rank had come before; then it has changed nothing. `finish`: a node to run at the end: steps
 * that wait, and later ones, return DTF_OUT_OF_RANGE, until the global step is set or initialised.
 * A wait ends at the session's step_seconds, with the missing ranks, at most 8, in the message. The
 * outputs may be NULL.
 *
 * A client that dies leaves its gradient whole or not at all; one that returns with its rank goes
 * on with the current step. DTF_BAD_CONFIG: as dtf_graph_minimize(), or for options out of range.
 */
dtf_code dtf_graph_sync_replicas(dtf_graph* graph, dtf_output loss, const char* optimizer,
                                 const dtf_minimize_options* options,
                                 const dtf_sync_replicas_options* replicas, dtf_output* train,
                                 dtf_output* global_step, dtf_output* norm, dtf_output* accepted,
                                 int32_t* finish);

/* ---- supervisors: TensorFlow's Supervisor */

typedef struct dtf_supervisor_options {
  size_t size;         /* sizeof(dtf_supervisor_options): later versions have more fields */
  int64_t is_chief;    /* one client is: it initialises, restores, saves and writes summaries */
  const char* task;    /* the name of this client in messages; NULL: "worker/0", the chief's */
  const char* log_dir; /* checkpoints in log_dir/checkpoints, event files in log_dir; required for
                          the chief */
  uint64_t seed;       /* of dtf_session_initialize() */
  double save_seconds; /* between checkpoints; 0: 600; negative: only at the end */
  double summary_seconds;       /* between summaries; 0: 120; negative: none */
  double wait_seconds;          /* for the chief, and for a lost task to return; 0: 600 */
  double poll_seconds;          /* between two looks while waiting; 0: 1 */
  const char* const* summaries; /* float32 scalars, written whenever a step fetches them */
  size_t summaries_count;
  const char* global_step; /* name of the counter of steps; NULL: "global_step" */
  const char* job;         /* name in the checkpoints; NULL: "graph" */
  int64_t max_to_keep;     /* newest checkpoints; 0: 5; -1: all */
  int64_t handle_signals;  /* nonzero: SIGTERM and SIGINT end dtf_supervisor_should_stop() */
} dtf_supervisor_options;

typedef struct dtf_supervisor dtf_supervisor;

dtf_code dtf_supervisor_new(const dtf_supervisor_options* options, dtf_supervisor** made);
void dtf_supervisor_free(dtf_supervisor* supervisor); /* saves nothing */

/* Opens the session, as dtf_session_open(). The chief restores the newest checkpoint, or
 * initialises, unless the tasks have a model that is ready; others wait for it. Tasks that don't
 * reply yet are waited for. DTF_DEADLINE after wait_seconds; the message names the missing event.
 * If the chief has ended the run, and begins no other within 10 s, others return with a stop
 * requested.
 */
dtf_code dtf_supervisor_prepare(dtf_supervisor* supervisor, const dtf_graph* graph,
                                const char* const* targets, size_t count,
                                const dtf_session_options* options);
/* Returns the session, which the supervisor owns; valid until a step is `recovered`. NULL before
 * dtf_supervisor_prepare(), without which steps and saves return DTF_USAGE. */
dtf_session* dtf_supervisor_session(dtf_supervisor* supervisor);

/* Runs a step, as dtf_session_run(); the chief then saves and writes summaries when they are due.
 * If a task of the session was lost, or is back without its variables, the session is opened anew
 * as by dtf_supervisor_prepare(), and `recovered` becomes 1: there are no values, all `values` are
 * NULL, and the global step may be an earlier one. Repeat the step, from the global step on. If a
 * step of another client fails because the chief has ended the run, it is `recovered`, too, and
 * dtf_supervisor_should_stop() is 1. A task that is lost after a request to stop is an error:
 * DTF_UNAVAILABLE. */
dtf_code dtf_supervisor_run(dtf_supervisor* supervisor, const dtf_feed* feeds, size_t feed_count,
                            const char* const* fetches, size_t fetch_count, dtf_tensor** values,
                            const char* const* targets, size_t target_count, int* recovered);
/* Reads the global step; recovers as dtf_supervisor_run(). */
dtf_code dtf_supervisor_global_step(dtf_supervisor* supervisor, int64_t* step);
/* The chief saves a checkpoint now; no effect in others. */
dtf_code dtf_supervisor_save(dtf_supervisor* supervisor);

/* From any thread. It also ends dtf_supervisor_prepare(), or a recovery, that waits for tasks. */
void dtf_supervisor_request_stop(dtf_supervisor* supervisor);
/* Does the same, and ends the step that runs, or its recovery: it returns `recovered`, or
 * DTF_UNAVAILABLE with the text `why`. For a program that is interrupted. A checkpoint that is
 * being saved, and dtf_supervisor_stop(), go on to their end. */
dtf_code dtf_supervisor_abort(dtf_supervisor* supervisor, const char* why);
/* Returns 1 after dtf_supervisor_request_stop(), or a signal with handle_signals. */
int dtf_supervisor_should_stop(const dtf_supervisor* supervisor);
/* Ends the supervision: the chief saves, if a step was taken since the last checkpoint, marks the
 * run as finished, runs the `finish` of synchronous replicas, so that no other client waits, and
 * closes the event file. */
dtf_code dtf_supervisor_stop(dtf_supervisor* supervisor);

#ifdef __cplusplus
}
#endif

#endif
