// A library that is no plug-in, for tests of the error that reports it.

extern "C" __attribute__((visibility("default"))) int dtfIsNoPlugin() {
  return 1;
}
