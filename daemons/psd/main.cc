// psd: a parameter server. See README.md; the life of a ps is in ps_server.h.

#include "daemons/psd/psd_main.h"

int main(int argc, char** argv) {
  return dtf::psd::psdMain(argc, argv);
}
