/* SPDX-License-Identifier: MIT */
/* Rank 0 reads its parameters from standard input during set-up and, every 5 steps, one more line
 * of a file that stays open; a second file is written through a descriptor without buffering.
 * usage: input_stream [steps] [forcing file] [output file] < parameters */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void give_up(const char *what)
{
    fprintf(stderr, "input_stream: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void read_parameters(long *n, long *factor)
{
    char line[128];

    if (fgets(line, sizeof line, stdin) == NULL || sscanf(line, "numbers %ld", n) != 1)
        give_up("first line of standard input is not \"numbers N\"");
    if (fgets(line, sizeof line, stdin) == NULL || sscanf(line, "factor %ld", factor) != 1)
        give_up("second line of standard input is not \"factor F\"");
}

static long read_forcing(FILE *in)
{
    long value = 0;

    if (fscanf(in, "%ld", &value) != 1)
        give_up("forcing file too short");
    return value;
}

static void record(int descriptor, int step, long total)
{
    char line[80];
    int length = snprintf(line, sizeof line, "%d %ld\n", step, total);

    if (write(descriptor, line, length) != length)
        give_up("cannot write");
}

static long step_block(long *value, long first, long mine, long factor, long force, long total)
{
    long sum = 0;

    for (long i = 0; i < mine; i++) {
        value[i] = (value[i] * factor + force + total % 977 + first + i) % 10007;
        sum += value[i] * (1 + (first + i) % 103);
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 150;
    int rank, size, out = -1;
    long parameters[2] = {0, 0}, force = 0, total = 0;
    FILE *in = NULL;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        read_parameters(&parameters[0], &parameters[1]);
        in = fopen(argc > 2 ? argv[2] : "forcing.txt", "r");
        out = open(argc > 3 ? argv[3] : "input_stream.out", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (in == NULL || out < 0)
            give_up("cannot open a file");
        printf("input_stream: %ld numbers, factor %ld\n", parameters[0], parameters[1]);
    }
    MPI_Bcast(parameters, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    long n = parameters[0], first = n * rank / size, mine = n * (rank + 1) / size - first;
    long *value = malloc((mine + 1) * sizeof *value);
    for (long i = 0; i < mine; i++)
        value[i] = (first + i) * 7919 % 10007;
    for (int step = 1; step <= steps; step++) {
        if (step % 5 == 1) {
            if (rank == 0)
                force = read_forcing(in);
            MPI_Bcast(&force, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        }
        total = step_block(value, first, mine, parameters[1], force, total);
        if (rank == 0 && step % 3 == 0)
            record(out, step, total);
        if (rank == 0 && step % 25 == 0)
            printf("step %d force %ld total %ld\n", step, force, total);
    }
    if (rank == 0)
        printf("result %ld\n", total);
    MPI_Finalize();
    return 0;
}
