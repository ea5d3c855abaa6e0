#include "common/graph/standard_ops.h"

namespace dtf::graph {

const OpCatalog& standardOps() {
  // Immutable once built, and built thread-safely: a catalogue is data without shared state.
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
    addTrainingOps(all);
    addQueueOps(all);
    addSyncOps(all);
    return all;
  }();
  return catalog;
}

}  // namespace dtf::graph
