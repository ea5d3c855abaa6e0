/* The plain C interface: adds to a variable on a parameter server, and prints the new value. Run it
 * twice, or many at once: no addition is lost, and each run continues from the last value.
 * Usage: remote_counter PS AMOUNT [TIMES]     dtf://host:port of a `psd --serve`
 *        remote_counter PS 0 0                first: sets it to 0 */

#include <dtf/dtf.h>
#include <stdio.h>
#include <stdlib.h>

static void check(dtf_code code) {
  if (code == DTF_OK) return;
  fprintf(stderr, "remote_counter: error: %s\n", dtf_error_message());
  exit(code);
}

/* "added" adds the placeholder "amount" to the variable "counter" on ps/0. */
static dtf_graph* make_graph(void) {
  dtf_graph* graph = NULL;
  dtf_node* node = NULL;
  dtf_output counter = {0, 0}, amount = {0, 0};
  int32_t added = 0;
  check(dtf_graph_new(&graph));

  check(dtf_node_new(graph, "Variable", "counter", &node));
  check(dtf_node_shape(node, "shape", NULL, 0));
  dtf_node_text(node, "initializer", "zeros");
  dtf_node_device(node, "/job:ps/task:0");
  check(dtf_node_add(node, &counter.node));

  check(dtf_node_new(graph, "Placeholder", "amount", &node));
  check(dtf_node_dtype(node, "dtype", DTF_FLOAT32));
  check(dtf_node_shape(node, "shape", NULL, 0));
  check(dtf_node_add(node, &amount.node));

  check(dtf_node_new(graph, "AssignAdd", "added", &node));
  dtf_node_input(node, counter);
  dtf_node_input(node, amount);
  check(dtf_node_add(node, &added));
  return graph;
}

int main(int argc, char** argv) {
  dtf_session* session = NULL;
  dtf_tensor *amount = NULL, *value = NULL, *zero = NULL;
  const char* const added = "added";
  dtf_feed feed = {"amount", NULL};
  dtf_graph* graph;
  int times, i;
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: remote_counter dtf://PS AMOUNT [TIMES]\n");
    return DTF_USAGE;
  }
  times = argc == 4 ? atoi(argv[3]) : 1;
  graph = make_graph();
  check(dtf_session_open(graph, (const char* const*)&argv[1], 1, NULL, &session));
  dtf_graph_free(graph);
  check(dtf_tensor_new(DTF_FLOAT32, NULL, 0, &zero));
  if (times == 0) check(dtf_session_set_variable(session, "counter", zero));
  check(dtf_tensor_new(DTF_FLOAT32, NULL, 0, &amount));
  *(float*)dtf_tensor_data(amount) = (float)atof(argv[2]);
  feed.value = amount;
  for (i = 0; i < times; ++i) {
    dtf_tensor_free(value);
    check(dtf_session_run(session, &feed, 1, &added, 1, &value, NULL, 0));
  }
  if (value != NULL) printf("%g\n", *(const float*)dtf_tensor_const_data(value));
  dtf_tensor_free(zero);
  dtf_tensor_free(value);
  dtf_tensor_free(amount);
  dtf_session_free(session);
  return 0;
}
