"""One rank of an all-reduce by an MPI with MPICH's binary interface (MPICH, Intel MPI): a reference for
compare_collectives.py. Rank 0 prints one line of JSON: {bytes: median seconds}.

mpiexec -n 2 python mpi_rank.py --library LIBMPI --sizes BYTES:STEPS ...
"""
import argparse
import ctypes
import json
import statistics
import time

import numpy as np

# mpi.h of MPICH, since 3.1 the same for all that share its interface.
WORLD, FLOAT, SUM, IN_PLACE = 0x44000000, 0x4C00040A, 0x58000003, ctypes.c_void_p(-1)


def median_of(mpi, size, steps):
    values = np.zeros(size // 4, np.float32)
    sums = np.zeros_like(values)
    seconds = []
    for i in range(steps + 1):
        start = time.perf_counter()
        failed = mpi.MPI_Allreduce(values.ctypes.data_as(ctypes.c_void_p), sums.ctypes.data_as(ctypes.c_void_p),
                                   ctypes.c_int(values.size), ctypes.c_int(FLOAT), ctypes.c_int(SUM),
                                   ctypes.c_int(WORLD))
        if failed:
            raise SystemExit(f"MPI_Allreduce: error {failed}")
        if i > 0:
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--sizes", nargs="+", required=True)
    args = parser.parse_args()
    mpi = ctypes.CDLL(args.library, mode=ctypes.RTLD_GLOBAL)
    mpi.MPI_Init(None, None)
    rank = ctypes.c_int()
    mpi.MPI_Comm_rank(ctypes.c_int(WORLD), ctypes.byref(rank))
    found = {}
    for size, steps in (map(int, text.split(":")) for text in args.sizes):
        found[size] = median_of(mpi, size, steps)
    if rank.value == 0:
        print(json.dumps(found), flush=True)
    mpi.MPI_Finalize()


if __name__ == "__main__":
    main()
