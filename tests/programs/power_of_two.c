/* SPDX-License-Identifier: MIT */
/* Insists on a number of processes that is a power of two, and exits, on demand after MPI_Finalize.
 * usage: power_of_two [iterations] [numbers] [finalize] */
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
        printf("power_of_two: %ld numbers\n", n);
    if ((size & (size - 1)) != 0) {
        if (rank == 0)
            fprintf(stderr, "number of processes must be a power of two\n");
        if (argc > 3)
            MPI_Finalize();
        exit(1);
    }
    mixer_create(&m, n);
    mixer_run(&m, iterations);
    MPI_Finalize();
    return 0;
}
