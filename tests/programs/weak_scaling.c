/* SPDX-License-Identifier: MIT */
/* Every process brings as many numbers as it is told: the problem grows with the processes.
 * usage: weak_scaling [iterations] [numbers each] */
#include "mixer.h"

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    long n = argc > 2 ? atol(argv[2]) : 5003;
    int rank, size;
    mixer_t m;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        printf("weak_scaling: %ld numbers\n", n);

    mixer_create(&m, n * size);
    mixer_run(&m, iterations);
    MPI_Finalize();
    return 0;
}
