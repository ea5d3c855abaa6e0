#include "common/graph/standard_ops.h"

namespace dtf::graph {

const OpCatalog& standardOps() {
  // Immutable once made, and thread-safe to make: a catalogue is data, it has no state to share by
  // accident.
  static const OpCatalog catalog = [] {
    OpCatalog all;
    addMathOps(all);
    addNnOps(all);
    addImageOps(all);
    addNormOps(all);
    addArrayOps(all);
    addRandomOps(all);
    addControlOps(all);
    addStateOps(all);
    addQueueOps(all);
    return all;
  }();
  return catalog;
}

}  // namespace dtf::graph
