/* SPDX-License-Identifier: MIT */
/* Communicators of every kind in use in the loop: a duplicate, halves of a split, the halves'
 * leaders made from a group, a periodic Cartesian ring; MPI_TAG_UB and an attribute of its own.
 * usage: derived_comms [iterations] [numbers] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct comms {
    MPI_Comm all, half, leaders, ring;
    int left, right, weight_key;
} comms_t;

typedef struct block {
    long first, mine;
    long *value; /* one ghost in front */
} block_t;

static void comms_create(comms_t *c, long *weight)
{
    int rank, size, periodic = 1;
    MPI_Group world, group;

    MPI_Comm_dup(MPI_COMM_WORLD, &c->all);
    MPI_Comm_rank(c->all, &rank);
    MPI_Comm_size(c->all, &size);
    MPI_Comm_split(c->all, rank < (size + 1) / 2 ? 0 : 1, rank, &c->half);
    int leaders[2] = {0, (size + 1) / 2};
    MPI_Comm_group(c->all, &world);
    MPI_Group_incl(world, size > 1 ? 2 : 1, leaders, &group);
    MPI_Comm_create(c->all, group, &c->leaders);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Cart_create(c->all, 1, &size, &periodic, 0, &c->ring);
    MPI_Cart_shift(c->ring, 0, 1, &c->left, &c->right);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &c->weight_key, NULL);
    MPI_Comm_set_attr(c->ring, c->weight_key, weight);
}

static void comms_free(comms_t *c)
{
    MPI_Comm_free(&c->ring);
    if (c->leaders != MPI_COMM_NULL)
        MPI_Comm_free(&c->leaders);
    MPI_Comm_free(&c->half);
    MPI_Comm_free(&c->all);
    MPI_Comm_free_keyval(&c->weight_key);
}

/* The sum over all, by way of the halves and their leaders. */
static long sum_by_halves(const comms_t *c, long part)
{
    long half = 0, total = 0;

    MPI_Reduce(&part, &half, 1, MPI_LONG, MPI_SUM, 0, c->half);
    if (c->leaders != MPI_COMM_NULL)
        MPI_Allreduce(&half, &total, 1, MPI_LONG, MPI_SUM, c->leaders);
    MPI_Bcast(&total, 1, MPI_LONG, 0, c->half);
    return total;
}

static void shift(const comms_t *c, block_t *b, int it)
{
    int found;
    int *tag_ub;

    MPI_Comm_get_attr(c->ring, MPI_TAG_UB, &tag_ub, &found);
    int tag = found ? *tag_ub - it % 5 : 0;
    MPI_Sendrecv(&b->value[b->mine], 1, MPI_LONG, c->right, tag, &b->value[0], 1, MPI_LONG, c->left,
                 tag, c->ring, MPI_STATUS_IGNORE);
}

static long mix(const comms_t *c, block_t *b, long total)
{
    long *weight, sum = 0;
    int found;

    MPI_Comm_get_attr(c->ring, c->weight_key, &weight, &found);
    for (long i = b->mine; i >= 1; i--) {
        b->value[i] = (b->value[i] * 31 + b->value[i - 1] * 7 + *weight + total % 977) % 10007;
        sum += b->value[i] * (1 + (b->first + i) % 103);
    }
    *weight = (*weight * 5 + 3) % 1009;
    return sum;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 150;
    long n = argc > 2 ? atol(argv[2]) : 20011;
    int rank, size;
    long check = 0, total = 0, *weight = malloc(sizeof *weight);
    comms_t c;
    block_t b;

    MPI_Init(&argc, &argv);
    *weight = 17;
    comms_create(&c, weight);
    MPI_Comm_rank(c.ring, &rank);
    MPI_Comm_size(c.ring, &size);
    b.first = n * rank / size;
    b.mine = n * (rank + 1) / size - b.first;
    b.value = malloc((b.mine + 1) * sizeof *b.value);
    for (long i = 0; i <= b.mine; i++)
        b.value[i] = (b.first + i) * 7919 % 10007;
    if (rank == 0)
        printf("derived_comms: %ld numbers\n", n);
    for (int it = 1; it <= iterations; it++) {
        shift(&c, &b, it);
        long part = mix(&c, &b, total);
        total = sum_by_halves(&c, part);
        MPI_Allreduce(&part, &check, 1, MPI_LONG, MPI_SUM, c.all);
        if (check != total)
            MPI_Abort(c.all, 6);
        if (rank == 0 && it % 15 == 0)
            printf("iteration %d total %ld weight %ld\n", it, total, *weight);
    }
    if (rank == 0)
        printf("result %ld weight %ld\n", total, *weight);
    comms_free(&c);
    free(b.value);
    free(weight);
    MPI_Finalize();
    return 0;
}
