/* SPDX-License-Identifier: MIT */
/* Writes through a null pointer while it sets up with exactly 3 processes.
 * usage: crash_setup [iterations] [numbers] */
#include "mixer.h"

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    long n = argc > 2 ? atol(argv[2]) : 20011;
    int rank, size;
    mixer_t m;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        printf("crash_setup: %ld numbers\n", n);
    volatile int *nowhere = size == 3 ? NULL : &size;
    *nowhere = size;
    mixer_create(&m, n);
    mixer_run(&m, iterations);
    MPI_Finalize();
    return 0;
}
