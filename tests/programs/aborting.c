/* SPDX-License-Identifier: MIT */
/* Aborts unless the numbers can be dealt out evenly: with 20000 of them 3 processes cannot.
 * usage: aborting [iterations] [numbers] */
#include "mixer.h"

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    long n = argc > 2 ? atol(argv[2]) : 20000;
    int rank, size;
    mixer_t m;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        printf("aborting: %ld numbers\n", n);
    if (n % size != 0) {
        if (rank == 0)
            fprintf(stderr, "%ld numbers cannot be dealt out to %d processes\n", n, size);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    mixer_create(&m, n);
    mixer_run(&m, iterations);
    MPI_Finalize();
    return 0;
}
