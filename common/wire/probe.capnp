@0xc5d0f1b7a2984e63;
# What two hosts say to each other to find out what is between them: `dtf-launch check --network`,
# before a job starts. The connection is made as that of a task (preamble, TLS where the job has
# keys), and the bytes travel as gradients do; whoever takes them drops them.
#
#   hello()                     is it the host that was meant?
#   take("")                    round trips, one after the other
#   take(bytes)                 some at once, for less than a second

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("dtf::schema");

interface NetworkProbe {
  hello @0 () -> (identity :Text);
  # Of this process alone, as whoever started it knows: an address like 172.17.0.1 is that of
  # another machine on each host.

  take @1 (bytes :Data) -> ();
  # At most 1 MiB. Errors: unavailable once this connection has brought more than a measurement
  # needs.
}
