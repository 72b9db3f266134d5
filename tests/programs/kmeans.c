/* SPDX-License-Identifier: MIT */
/* K-means over points that drift: their coordinates are whole numbers, so that sums are exact.
 * usage: kmeans [iterations] [points] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CENTRES = 7, DIM = 3, SIDE = 4096 };

typedef struct model {
    double centre[CENTRES][DIM];
    double sum[CENTRES][DIM];
    long members[CENTRES];
} model_t;

static model_t model;

static int nearest(const double *point)
{
    int best = 0;
    double least = 0.0;

    for (int c = 0; c < CENTRES; c++) {
        double distance = 0.0;

        for (int d = 0; d < DIM; d++)
            distance += (point[d] - model.centre[c][d]) * (point[d] - model.centre[c][d]);
        if (c == 0 || distance < least) {
            least = distance;
            best = c;
        }
    }
    return best;
}

/* Sorts the points into clusters and lets each drift with its cluster; returns how many moved. */
static long assign(double (*points)[DIM], int *cluster, int n)
{
    long moved = 0;

    memset(model.sum, 0, sizeof model.sum);
    memset(model.members, 0, sizeof model.members);
    for (int i = 0; i < n; i++) {
        int c = nearest(points[i]);

        moved += c != cluster[i];
        cluster[i] = c;
        model.members[c]++;
        for (int d = 0; d < DIM; d++) {
            model.sum[c][d] += points[i][d];
            points[i][d] += (c * 5 + d * 3) % 11;
            if (points[i][d] >= SIDE)
                points[i][d] -= SIDE;
        }
    }
    return moved;
}

static void move_centres(void)
{
    for (int c = 0; c < CENTRES; c++)
        for (int d = 0; d < DIM && model.members[c] > 0; d++)
            model.centre[c][d] = model.sum[c][d] / (double)model.members[c];
}

static void start(double (*points)[DIM], int *cluster, int first, int n)
{
    for (int i = 0; i < n; i++) {
        unsigned key = (unsigned)(first + i) * 2654435761u;

        cluster[i] = -1;
        for (int d = 0; d < DIM; d++)
            points[i][d] = (key >> (d * 9)) % SIDE;
    }
    for (int c = 0; c < CENTRES; c++)
        for (int d = 0; d < DIM; d++)
            model.centre[c][d] = (c * 977 + d * 1231) % SIDE;
}

static long long checksum(double (*points)[DIM], const int *cluster, int first, int n)
{
    long long sum = 0, total = 0;

    for (int i = 0; i < n; i++)
        sum += (first + i + 1LL) * (cluster[i] + 1) +
               (long long)(points[i][0] + 2 * points[i][1] + 3 * points[i][2]) * ((first + i) % 97);
    MPI_Reduce(&sum, &total, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    int n = argc > 2 ? atoi(argv[2]) : 5003;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int first = (int)((long)n * rank / size);
    int mine = (int)((long)n * (rank + 1) / size) - first;
    double(*points)[DIM] = malloc(mine * sizeof *points);
    int *cluster = malloc(mine * sizeof *cluster);
    start(points, cluster, first, mine);
    if (rank == 0)
        printf("kmeans: %d points, %d centres\n", n, CENTRES);
    long all_moves = 0;
    for (int it = 1; it <= iterations; it++) {
        long moved = assign(points, cluster, mine);

        MPI_Allreduce(MPI_IN_PLACE, model.sum, CENTRES * DIM, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, model.members, CENTRES, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &moved, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        all_moves += moved;
        move_centres();
        if (rank == 0 && it % 10 == 0)
            printf("iteration %d: %ld moved, centre 0 at %.12e\n", it, moved, model.centre[0][0]);
    }
    long long sum = checksum(points, cluster, first, mine);
    if (rank == 0) {
        for (int c = 0; c < CENTRES; c++)
            printf("centre %d: %.12e %.12e %.12e, %ld members\n", c, model.centre[c][0],
                   model.centre[c][1], model.centre[c][2], model.members[c]);
        printf("result: %ld moves, checksum %lld\n", all_moves, sum);
    }
    free(points);
    free(cluster);
    MPI_Finalize();
    return 0;
}
