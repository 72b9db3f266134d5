/* SPDX-License-Identifier: MIT */
/* With 3 or more processes the last one gives up in set-up while the others already wait for it.
 * usage: one_rank_fails [iterations] [collective|receive|split|dup|window|finalize] [exit|abort] */
#include "mixer.h"
#include <string.h>

static void wait_for_all(const char *where, int rank, int size)
{
    int value = rank, got = 0;
    MPI_Comm made;
    MPI_Win window;

    if (strcmp(where, "collective") == 0) {
        MPI_Bcast(&value, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    } else if (strcmp(where, "receive") == 0) {
        if (rank == size - 1)
            for (int r = 0; r < size - 1; r++)
                MPI_Send(&value, 1, MPI_INT, r, 3, MPI_COMM_WORLD);
        else
            MPI_Recv(&got, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(where, "split") == 0) {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &made);
        MPI_Comm_free(&made);
    } else if (strcmp(where, "dup") == 0) {
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
        MPI_Comm_free(&made);
    } else if (strcmp(where, "window") == 0) {
        MPI_Win_create(&got, sizeof got, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_free(&window);
    } else if (strcmp(where, "finalize") == 0 && size >= 3) {
        MPI_Finalize();
        exit(5);
    }
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    const char *where = argc > 2 ? argv[2] : "collective";
    const char *how = argc > 3 ? argv[3] : "exit";
    int rank, size;
    mixer_t m;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        printf("one_rank_fails: in %s\n", where);
    if (size >= 3 && rank == size - 1) {
        fprintf(stderr, "rank %d gives up\n", rank);
        if (strcmp(how, "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 5);
        exit(5);
    }
    wait_for_all(where, rank, size);
    mixer_create(&m, 20011);
    mixer_run(&m, iterations);
    MPI_Finalize();
    return 0;
}
