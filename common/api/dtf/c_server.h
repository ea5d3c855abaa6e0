#ifndef DTF_C_SERVER_H
#define DTF_C_SERVER_H

/* A task of a cluster in your own process: `psd --serve` and `workerd --serve` as a library.
 * <dtf/dtf.h> includes it, and has the rules. */

#include "c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- clusters: the addresses of all tasks, equal in every program */

typedef struct dtf_cluster dtf_cluster;

/* Makes a cluster without tasks. */
dtf_code dtf_cluster_new(dtf_cluster** made);
/* Makes a cluster of the text of a cluster file, with its devices, `keys`, `insecure` and
 * `sessions_max`. The rest of the text is checked and has no effect. A relative path in it starts
 * at `folder`; NULL: the working directory. DTF_BAD_CONFIG: the text is wrong, with the lines. */
dtf_code dtf_cluster_parse(const char* text, const char* folder, dtf_cluster** made);
void dtf_cluster_free(dtf_cluster* cluster);
/* Adds the next task of `job`, "ps" or "worker", at `address`, "host:port". "host:auto": the kernel
 * chooses a port, which dtf_server_target() returns. The other tasks don't learn it, so such a
 * task takes no part in the graphs of others: a graph that names it is refused.
 * DTF_BAD_CONFIG: another job, no address, or an address that another task has. */
dtf_code dtf_cluster_add(dtf_cluster* cluster, const char* job, const char* address);
/* Returns the number of tasks of a job; 0 also for an unknown job. */
size_t dtf_cluster_count(const dtf_cluster* cluster, const char* job);
/* Returns "host:port", valid as long as the cluster; NULL if there is no such task. */
const char* dtf_cluster_address(const dtf_cluster* cluster, const char* job, size_t index);

/* ---- servers */

typedef struct dtf_server dtf_server;

/* 0 and NULL stand for the defaults. */
typedef struct dtf_server_options {
  size_t size; /* sizeof(dtf_server_options): later versions have more fields */
  /* A folder made by `dtf-launch keys`, with the keys of this task; NULL: of the cluster's text. */
  const char* keys;
  /* Nonzero: without keys, listens beyond loopback, and accepts every user of this host. */
  int64_t insecure;
  /* "cpu:0,cpu:1,gpu:0"; NULL: of the cluster's text, or one CPU with all threads. */
  const char* devices;
  int64_t threads;   /* that compute; 0: the cores of the host, shared by its workers */
  int64_t bytes_max; /* of all clients' data; 0: a share of three quarters of the host's memory */
  /* Nonzero: SIGTERM and SIGINT of this process end dtf_server_join() as dtf_server_stop() does. A
   * second signal ends the process, also one that follows dtf_server_stop() and another signal. The
   * program's own handlers return with dtf_server_free(). 0: signals are the program's. One server
   * of a process. */
  int64_t handle_signals;
  /* Sessions of clients at once, from 1 to 65536; 0: of the cluster's text, or 512. */
  int64_t sessions_max;
} dtf_server_options;

/* Serves task `task_index` of `job_name` from now on, on threads of its own. `options` may be NULL.
 * DTF_BAD_CONFIG: there is no such job or task; or the address is no address of this host, or one
 * that other hosts reach, without keys and without `insecure`. DTF_UNAVAILABLE: the address is in
 * use, with the process that has it; or the host lacks a GPU. DTF_BAD_DATA, DTF_PERMISSION: the
 * keys. DTF_USAGE: an option. */
dtf_code dtf_server_start(const dtf_cluster* cluster, const char* job_name, int64_t task_index,
                          const dtf_server_options* options, dtf_server** made);
/* Stops, and ends the sessions of its clients, whose steps fail. No other call may be running. */
void dtf_server_free(dtf_server* server);
/* Returns "dtf://host:port/worker/0", a target of sessions; valid as long as the server. */
const char* dtf_server_target(const dtf_server* server);
/* Blocks until the server is stopped, at most `seconds`, or, if negative, without a bound. `reason`
 * receives a sentence with its 0, cut to `room` bytes, and `bytes` its whole size; both may be
 * NULL. `signal`, which may be NULL, receives the number of the signal, else 0. Several threads may
 * wait. DTF_DEADLINE: it still serves. DTF_USAGE: `seconds` is not a number. */
dtf_code dtf_server_join(dtf_server* server, double seconds, char* reason, size_t room,
                         size_t* bytes, int* signal);
/* Makes dtf_server_join() return, with the reason `why`; from any thread, not from a handler of
 * signals. The first call counts. Clients are served until dtf_server_free(). */
dtf_code dtf_server_stop(dtf_server* server, const char* why);
/* Returns the number of open sessions of clients. */
size_t dtf_server_sessions(const dtf_server* server);

#ifdef __cplusplus
}
#endif

#endif
