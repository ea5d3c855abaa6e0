#pragma once

// Core files, which would have what a process keeps in its memory, keys among it.

namespace dtf {

// From here on neither this process nor one that it starts leaves a core file, whatever limit it
// was started with. /proc stays as it was: who may look at this process may do so still. Calls may
// overlap.
void leaveNoCoreFiles();

}  // namespace dtf
