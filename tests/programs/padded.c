/* SPDX-License-Identifier: MIT */
/* Blocks of ceil(n/size) elements on every rank, the last ones partly or wholly unused, so that a
 * plain Allgather can be used: a rumour spreads over a generated graph.
 * usage: padded [rounds] [members] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int used_elements(int n, int block, int rank)
{
    int left = n - rank * block;

    return left < 0 ? 0 : left > block ? block : left;
}

static double spread(double *opinion, const double *trust, const double *everyone, int first,
                     int used, int n, int round)
{
    double change = 0.0;

    for (int i = 0; i < used; i++) {
        int me = first + i;
        double heard = everyone[(me * 7 + round) % n] + everyone[(me + n - 1) % n] +
                       everyone[(me * 3 + 11) % n];
        double step = trust[i] * (heard / 3.0 - everyone[me]);

        opinion[i] = everyone[me] + step;
        change += step * step;
    }
    return change;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    int n = argc > 2 ? atoi(argv[2]) : 5003;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int block = (n + size - 1) / size;
    int first = rank * block, used = used_elements(n, block, rank);
    double *opinion = calloc(block, sizeof *opinion);
    double *trust = calloc(block, sizeof *trust);
    double *everyone = malloc((size_t)block * size * sizeof *everyone);
    for (int i = 0; i < used; i++) {
        opinion[i] = ((first + i) * 43) % 101;
        trust[i] = 0.1 + 0.002 * ((first + i) % 120);
    }
    if (rank == 0)
        printf("padded: %d members\n", n);
    double change = 0.0, part;
    for (int round = 1; round <= rounds; round++) {
        MPI_Allgather(opinion, block, MPI_DOUBLE, everyone, block, MPI_DOUBLE, MPI_COMM_WORLD);
        part = spread(opinion, trust, everyone, first, used, n, round);
        for (int i = 0; i < used; i++)
            trust[i] *= 0.999;
        MPI_Allreduce(&part, &change, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0 && round % 20 == 0)
            printf("round %d change %.8e\n", round, change);
    }
    double sums[2] = {0.0, 0.0}, totals[2];
    for (int i = 0; i < used; i++) {
        sums[0] += opinion[i] * (1 + (first + i) % 59);
        sums[1] += trust[i] * (1 + (first + i) % 47);
    }
    MPI_Reduce(sums, totals, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("result change %.8e opinions %.10e trust %.10e\n", change, totals[0], totals[1]);
    MPI_Finalize();
    return 0;
}
