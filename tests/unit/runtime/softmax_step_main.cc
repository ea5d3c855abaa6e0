// Runs the table `softmax-step` alone. No test: meson only builds it, to be run by hand.

#include <string_view>

#include "tests/bench/softmax_step.h"

int main(int argc, char** argv) {
  return dtf::bench::benchSoftmaxStep(argc > 1 && std::string_view(argv[1]) == "--json");
}
