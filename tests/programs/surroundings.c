/* SPDX-License-Identifier: MIT */
/* Prints what a process can see of its surroundings: arguments, environment, working directory,
 * standard input (rank 0), what MPI says of the world. Rank after rank.
 * usage: surroundings [anything] < text */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_environment(void)
{
    int count = 0;

    while (environ[count] != NULL)
        count++;
    char **sorted = malloc(count * sizeof *sorted);
    memcpy(sorted, environ, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    for (int i = 0; i < count; i++)
        printf("env %s\n", sorted[i]);
    free(sorted);
}

static void print_input(void)
{
    char line[256];

    while (fgets(line, sizeof line, stdin) != NULL)
        printf("input %s", line);
}

static void print_world(int rank, int size)
{
    int *value, found, level, result, length;
    char name[MPI_MAX_OBJECT_NAME];

    MPI_Query_thread(&level);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &result);
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    printf("world rank %d size %d thread level %d like self %d name %s\n", rank, size, level,
           result == MPI_CONGRUENT, name);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    printf("tag_ub %d %d\n", found, found ? *value : 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &found);
    printf("universe %d %d\n", found, found ? *value : 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &found);
    printf("appnum %d %d\n", found, found ? *value : 0);
}

int main(int argc, char **argv)
{
    char directory[4096];
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int r = 0; r < size; r++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (r != rank)
            continue;
        printf("rank %d\n", rank);
        for (int i = 0; i < argc; i++)
            printf("arg %d %s\n", i, argv[i]);
        print_world(rank, size);
        print_environment();
        if (getcwd(directory, sizeof directory) != NULL)
            printf("directory %s\n", directory);
        if (rank == 0)
            print_input();
        fflush(stdout);
        usleep(20000); /* so that mpiexec keeps the order */
    }
    MPI_Finalize();
    return 0;
}
