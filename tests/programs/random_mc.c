/* SPDX-License-Identifier: MIT */
/* Monte Carlo on a chain of spins: every rank draws the same numbers from rand() and so takes the
 * same decisions. All values are whole numbers: results do not depend on the order of summation.
 * usage: random_mc [sweeps] [spins] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct chain {
    int n, first, mine;
    int *spin, *trial, *field;
} chain_t;

/* Proposes new spins; returns the change of the own part of the energy. */
static long propose(chain_t *c, int shift, int stride)
{
    long change = 0;

    for (int i = 0; i < c->mine; i++) {
        int global = c->first + i;

        c->trial[i] = c->spin[i];
        if ((global + shift) % stride == 0)
            c->trial[i] = (c->spin[i] + global % 5 + 1) % 16;
        change += (long)(c->trial[i] - c->spin[i]) * c->field[i];
    }
    return change;
}

static void accept(chain_t *c)
{
    int *swap = c->spin;

    c->spin = c->trial;
    c->trial = swap;
}

static long checksum(const chain_t *c)
{
    long sum = 0, total;

    for (int i = 0; i < c->mine; i++)
        sum += (c->first + i + 1L) * (c->spin[i] + 1);
    MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv)
{
    int sweeps = argc > 1 ? atoi(argv[1]) : 200;
    int rank, size, accepted = 0;
    long energy = 0;
    chain_t c = {.n = argc > 2 ? atoi(argv[2]) : 40009};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    c.mine = c.n / size + (rank < c.n % size);
    c.first = rank * (c.n / size) + (rank < c.n % size ? rank : c.n % size);
    c.spin = malloc(c.mine * sizeof *c.spin);
    c.trial = malloc(c.mine * sizeof *c.trial);
    c.field = malloc(c.mine * sizeof *c.field);
    for (int i = 0; i < c.mine; i++) {
        c.spin[i] = c.trial[i] = ((c.first + i) * 31) % 16;
        c.field[i] = ((c.first + i) * 57) % 23 - 11;
    }
    srand(7);
    if (rank == 0)
        printf("random_mc: %d spins, first checksum %ld\n", c.n, checksum(&c));
    else
        checksum(&c);
    for (int sweep = 1; sweep <= sweeps; sweep++) {
        long change = propose(&c, rand() % 1000, 3 + rand() % 40);
        int limit = rand() % 4000;

        MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (change < limit) {
            accept(&c);
            energy += change;
            accepted++;
        }
        if (rank == 0 && sweep % 20 == 0)
            printf("sweep %d energy %ld accepted %d\n", sweep, energy, accepted);
    }
    long total = checksum(&c);
    if (rank == 0)
        printf("result energy %ld accepted %d checksum %ld\n", energy, accepted, total);
    MPI_Finalize();
    return 0;
}
