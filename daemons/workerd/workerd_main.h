#pragma once

namespace dtf::workerd {

// All of the program workerd: from its arguments to its exit code.
int workerdMain(int argc, char** argv);

}  // namespace dtf::workerd
