/* SPDX-License-Identifier: MIT */
/* One allocation, two layouts: weights that all processes have alike, before or behind a block of
 * own values. Its sizes are those of a halo, but what is beside the block is nobody's ghost. usage:
 * prefix_block [steps] [before|behind] [weights] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1201 };

/* Own values follow the weights; the weights become means of what they moved. */
static double step(double *own, double *weight, int k, int first, int mine)
{
    double change = 0.0;

    for (int i = 0; i < mine; i++) {
        own[i] += 0.01 * weight[(first + i) % k];
        change += 0.01 * weight[(first + i) % k];
    }
    for (int j = 0; j < k; j++)
        weight[j] = 0.0;
    for (int i = 0; i < mine; i++)
        weight[(first + i) % k] += own[i] / N;
    return change;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 100, behind = argc > 2 && !strcmp(argv[2], "behind");
    int rank, size, k = argc > 3 ? atoi(argv[3]) : 8;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int first = (int)((long)N * rank / size), mine = (int)((long)N * (rank + 1) / size) - first;
    double *all = malloc((k + mine) * sizeof *all);
    double *weight = behind ? all + mine : all, *own = behind ? all : all + k;
    for (int i = 0; i < mine; i++)
        own[i] = (first + i) * 0.5 + (first + i) * (first + i) % 11;
    for (int j = 0; j < k; j++)
        weight[j] = 1 + j;
    if (rank == 0)
        printf("prefix_block: %d weights\n", k);
    for (int it = 1; it <= steps; it++) {
        double change = step(own, weight, k, first, mine);

        MPI_Allreduce(MPI_IN_PLACE, weight, k, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0 && it % 10 == 0)
            printf("step %d change %.8e\n", it, change);
    }
    double sum = 0.0, total = 0.0;
    for (int i = 0; i < mine; i++)
        sum += (first + i + 1) * own[i];
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("result %.8e\n", total);
    free(all);
    MPI_Finalize();
    return 0;
}
