#pragma once

// Core files: they would hold the memory of a process, keys among it.

namespace dtf {

// From now on neither this process nor its children leave a core file, whatever limit they inherit.
// /proc is unchanged: debuggers may still attach. Calls may overlap.
void leaveNoCoreFiles();

}  // namespace dtf
