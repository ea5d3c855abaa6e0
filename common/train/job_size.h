#pragma once

// How large a job is: what train::checkJob() counts, and what people are told of it.

#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/spec.h"

namespace dtf::train {

// How often the parameters lie in the memory of all ps together. Value type.
struct PsCopies {
  uint64_t values =
      2;  // the snapshot that is read, and the one that is written; with what is sent of them
  uint64_t slots = 0;       // of the optimizer
  uint64_t durability = 0;  // in /dev/shm, or on the next ps; with the slots
  uint64_t all() const { return values + slots + durability; }
};
PsCopies psCopies(const cluster::JobSpec& job);  // which has a train section (DTF_CHECK)

// What the job will hold. Value type.
struct JobSize {
  uint64_t parameters = 0;
  std::vector<uint64_t> ps_bytes;  // of the parameters alone, by ps task
  uint64_t kept_bytes = 0;         // what a worker keeps of a batch for the gradients, at least
  uint64_t worker_bytes = 0;       // parameters and gradients of a worker, of the one with most
  uint64_t metric_bytes = 0;       // what the chief keeps of an evaluation for its metrics
  uint64_t ps_copies = 0;          // see PsCopies::all()
  uint64_t memory_bytes = 0;  // a bound from below of what the tasks on this host take together
};

// "7850 parameters, 30.7 KiB: 30.6 KiB on ps/0, 40 B on ps/1"
std::string sizeText(const JobSize& size);

}  // namespace dtf::train
