#pragma once

// Ports for tasks that are started by hand, below the range that the kernel gives to clients. A
// test leaves them unbound for seconds while other test processes look for ports too, so each
// process first locks a block of them.

#include <vector>

namespace dtf::testing {

// `count` ports of localhost that are free, and that no other test process and no earlier call
// gets. Thread-compatible.
// Errors: std::runtime_error when every block is locked.
std::vector<int> freePorts(int count);

// Whether `port` came from freePorts() in this process: its listener is a process of this test.
bool isGiven(int port);

// Whether localhost's `port` has a listener.
bool somebodyListens(int port);

// The block of ports that starts with `port`, for tests of this file: true when another process
// may lock it.
bool TEST_blockIsFree(int port);

}  // namespace dtf::testing
