/* SPDX-License-Identifier: MIT */
/* Ends in the way it is told, with status 3, after some iterations.
 * usage: exit_status return|after|before|abort|one|quiet|kill [iterations] */
#include "mixer.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";
    int iterations = argc > 2 ? atoi(argv[2]) : 20, rank;
    mixer_t m;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mixer_create(&m, 1009);
    mixer_run(&m, iterations);
    fflush(stdout);
    usleep(100000); /* mpiexec drops what it has not read yet when it ends a job early */
    if (strcmp(how, "before") == 0)
        exit(3);
    if (strcmp(how, "abort") == 0 && rank == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(how, "kill") == 0 && rank == 0)
        raise(SIGKILL);
    if (strcmp(how, "quiet") == 0) /* success, but MPI_Finalize is forgotten */
        exit(0);
    MPI_Finalize();
    if (strcmp(how, "after") == 0)
        exit(3);
    if (strcmp(how, "one") == 0)
        return rank == 0 ? 3 : 0;
    return strcmp(how, "return") == 0 ? 3 : 0;
}
