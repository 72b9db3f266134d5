/* SPDX-License-Identifier: MIT */
/* N-body in three dimensions: all positions on every rank, gathered in place; velocities in blocks;
 * two position buffers that change roles by an index.
 * usage: nbody [steps] [bodies] */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct vec {
    double x, y, z;
} vec_t;

static vec_t *position[2];
static double *mass;
static int cur;

static vec_t pull(const vec_t *at, int i, int n)
{
    vec_t a = {0, 0, 0};

    for (int j = 0; j < n; j++) {
        double dx = at[j].x - at[i].x, dy = at[j].y - at[i].y, dz = at[j].z - at[i].z;
        double d2 = dx * dx + dy * dy + dz * dz + 0.05;
        double f = mass[j] / (d2 * sqrt(d2));

        a.x += f * dx;
        a.y += f * dy;
        a.z += f * dz;
    }
    return a;
}

static void step_bodies(vec_t *velocity, int first, int count, int n, double dt)
{
    const vec_t *at = position[cur];
    vec_t *to = position[1 - cur];

    for (int i = 0; i < count; i++) {
        vec_t a = pull(at, first + i, n);

        velocity[i].x += dt * a.x;
        velocity[i].y += dt * a.y;
        velocity[i].z += dt * a.z;
        to[first + i].x = at[first + i].x + dt * velocity[i].x;
        to[first + i].y = at[first + i].y + dt * velocity[i].y;
        to[first + i].z = at[first + i].z + dt * velocity[i].z;
    }
}

static double momentum(const vec_t *velocity, int first, int count)
{
    double sum = 0.0, total;

    for (int i = 0; i < count; i++)
        sum += (1 + (first + i) % 53) * (velocity[i].x + 2 * velocity[i].y + 3 * velocity[i].z);
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

static void start(vec_t *velocity, int first, int count, int n)
{
    for (int i = 0; i < n; i++) {
        position[0][i] = (vec_t){cos(i * 0.7) * (3 + i % 5), sin(i * 0.7) * (3 + i % 5), i % 9 - 4};
        position[1][i] = position[0][i];
        mass[i] = 0.02 * (1 + i % 3);
    }
    for (int i = 0; i < count; i++)
        velocity[i] = (vec_t){-0.1 * sin((first + i) * 0.7), 0.1 * cos((first + i) * 0.7), 0};
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 250;
    int n = argc > 2 ? atoi(argv[2]) : 163;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *counts = malloc(size * sizeof *counts), *displs = malloc(size * sizeof *displs);
    for (int r = 0, at = 0; r < size; at += counts[r++]) {
        displs[r] = at;
        counts[r] = n / size + (r >= size - n % size);
    }
    MPI_Datatype body;
    MPI_Type_contiguous(3, MPI_DOUBLE, &body);
    MPI_Type_commit(&body);
    position[0] = malloc(n * sizeof **position);
    position[1] = malloc(n * sizeof **position);
    mass = malloc(n * sizeof *mass);
    vec_t *velocity = malloc(counts[rank] * sizeof *velocity);
    start(velocity, displs[rank], counts[rank], n);
    if (rank == 0)
        printf("nbody: %d bodies\n", n);
    for (int step = 1; step <= steps; step++) {
        step_bodies(velocity, displs[rank], counts[rank], n, 0.002);
        cur = 1 - cur;
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, position[cur], counts, displs, body,
                       MPI_COMM_WORLD);
        if (rank == 0 && step % 20 == 0)
            printf("step %d body 0 at %.14e %.14e\n", step, position[cur][0].x, position[cur][0].y);
    }
    double sum = 0.0, p = momentum(velocity, displs[rank], counts[rank]);
    for (int i = 0; i < n; i++)
        sum +=
            (1 + i % 31) * (position[cur][i].x + 2 * position[cur][i].y + 3 * position[cur][i].z);
    if (rank == 0)
        printf("result positions %.14e velocities %.10e\n", sum, p);
    MPI_Type_free(&body);
    MPI_Finalize();
    return 0;
}
