// A library that is no plug-in, for tests of what is said about it.

extern "C" __attribute__((visibility("default"))) int dtfIsNoPlugin() {
  return 1;
}
