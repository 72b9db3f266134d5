/* SPDX-License-Identifier: MIT */
/* Never ends its set-up with exactly 3 processes.
 * usage: endless_setup [iterations] [numbers] */
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
        printf("endless_setup: %ld numbers\n", n);
    for (volatile int waiting = size == 3; waiting;)
        continue;
    mixer_create(&m, n);
    mixer_run(&m, iterations);
    MPI_Finalize();
    return 0;
}
