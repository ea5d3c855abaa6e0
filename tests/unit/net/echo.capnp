@0xd4c5f0a1b2e39687;
# A small interface for the tests and the benchmark of common/net.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("dtf::net::testing");

interface Echo {
  ping  @0 ();
  echo  @1 (text :Text) -> (text :Text);
  pull  @2 (offset :UInt64, bytes :UInt64) -> (data :Data);   # from the server's store, by reference
  push  @3 (data :Data, pin :Bool) -> (checksum :UInt64);     # pin: the server keeps the bytes after the call
  never @4 ();                                                # returns only when cancelled
  fail  @5 (code :Int32, message :Text);                      # throws dtf::Error
  pinnedChecksum @6 () -> (checksum :UInt64);                 # of the bytes that the last push pinned
}
