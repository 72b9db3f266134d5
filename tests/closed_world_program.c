/* SPDX-License-Identifier: MIT
 * An ordinary program that uses one call or more of every class of the table, and prints what came
 * out. Preloaded or not, it must print the same. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5, MAX_RANKS = 16 };

static int rank, size;
static double digest;

static void add(const char *what, const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i] * (i + 1) * (rank + 1);
    MPI_Reduce(rank ? &sum : MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    digest += sum;
    if (rank == 0)
        printf("%-24s %.10g\n", what, sum);
}

static void fill(double *values, int count, int seed)
{
    for (int i = 0; i < count; i++)
        values[i] = (seed + 3 * i + 7 * rank) % 11;
}

static void test_collectives(MPI_Comm comm)
{
    double a[N * MAX_RANKS], b[N * MAX_RANKS];
    int counts[MAX_RANKS], displs[MAX_RANKS], twos[MAX_RANKS], bytes[MAX_RANKS];
    MPI_Datatype types[MAX_RANKS];
    int total = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = 1 + r % 3;
        displs[r] = total;
        total += counts[r];
        twos[r] = 2;
        bytes[r] = 2 * r * (int)sizeof(double);
        types[r] = MPI_DOUBLE;
    }
#define RUN(name, ...)                                                                             \
    do {                                                                                           \
        fill(a, N *MAX_RANKS, __LINE__);                                                           \
        memset(b, 0, sizeof b);                                                                    \
        __VA_ARGS__;                                                                               \
        add(name, b, N *MAX_RANKS);                                                                \
    } while (0)
    int mine = counts[rank];
    RUN("Bcast", MPI_Bcast(a, N, MPI_DOUBLE, size - 1, comm); memcpy(b, a, sizeof b));
    RUN("Allreduce", MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_SUM, comm));
    RUN("Reduce", MPI_Reduce(a, b, N, MPI_DOUBLE, MPI_MAX, 0, comm));
    RUN("Scan", MPI_Scan(a, b, N, MPI_DOUBLE, MPI_SUM, comm));
    RUN("Exscan", MPI_Exscan(a, b, N, MPI_DOUBLE, MPI_SUM, comm); if (!rank) b[0] = 0);
    RUN("Allgather", MPI_Allgather(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, comm));
    RUN("Allgatherv", MPI_Allgatherv(a, mine, MPI_DOUBLE, b, counts, displs, MPI_DOUBLE, comm));
    RUN("Gather", MPI_Gather(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, 0, comm));
    RUN("Gatherv", MPI_Gatherv(a, mine, MPI_DOUBLE, b, counts, displs, MPI_DOUBLE, 0, comm));
    RUN("Scatter", MPI_Scatter(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, 0, comm));
    RUN("Scatterv", MPI_Scatterv(a, counts, displs, MPI_DOUBLE, b, mine, MPI_DOUBLE, 0, comm));
    RUN("Alltoall", MPI_Alltoall(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, comm));
    for (int r = 0; r < size; r++)
        displs[r] = 2 * r;
    RUN("Alltoallv", MPI_Alltoallv(a, twos, displs, MPI_DOUBLE, b, twos, displs, MPI_DOUBLE, comm));
    RUN("Alltoallw", MPI_Alltoallw(a, twos, bytes, types, b, twos, bytes, types, comm));
    RUN("Reduce_scatter", MPI_Reduce_scatter(a, b, twos, MPI_DOUBLE, MPI_SUM, comm));
    RUN("Reduce_scatter_block", MPI_Reduce_scatter_block(a, b, 2, MPI_DOUBLE, MPI_SUM, comm));
    RUN("Bcast_c", MPI_Bcast_c(a, N, MPI_DOUBLE, 0, comm); memcpy(b, a, sizeof b));
    MPI_Request q;
    RUN("Iallreduce", MPI_Iallreduce(a, b, N, MPI_DOUBLE, MPI_SUM, comm, &q);
        MPI_Wait(&q, MPI_STATUS_IGNORE));
    MPI_Barrier(comm);
}

static void test_messages(MPI_Comm comm)
{
    double a[N], b[N];
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Request q[4];
    MPI_Status status[4];
    MPI_Message message;
    int flag = 0, index, indices[4], n;
#define FRESH() (fill(a, N, __LINE__), memset(b, 0, sizeof b))
    FRESH();
    MPI_Sendrecv(a, N, MPI_DOUBLE, next, 1, b, N, MPI_DOUBLE, last, 1, comm, MPI_STATUS_IGNORE);
    add("Sendrecv", b, N);
    FRESH();
    MPI_Sendrecv_replace(a, N, MPI_DOUBLE, next, 1, last, 1, comm, status);
    add("Sendrecv_replace", a, N);
    FRESH();
    MPI_Irecv(b, N, MPI_DOUBLE, last, 2, comm, &q[0]);
    MPI_Send(a, N, MPI_DOUBLE, next, 2, comm);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    add("Irecv Send Wait", b, N);
    FRESH();
    MPI_Isend(a, N, MPI_DOUBLE, next, 3, comm, &q[0]);
    MPI_Probe(MPI_ANY_SOURCE, 3, comm, status);
    MPI_Recv(b, N, MPI_DOUBLE, status->MPI_SOURCE, 3, comm, status);
    MPI_Waitall(1, q, MPI_STATUSES_IGNORE);
    add("Isend Probe Recv", b, N);
    FRESH();
    MPI_Isend(a, N, MPI_DOUBLE, next, 4, comm, &q[0]);
    MPI_Mprobe(last, 4, comm, &message, status);
    MPI_Mrecv(b, N, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Test(&q[0], &flag, MPI_STATUS_IGNORE);
    add("Mprobe Mrecv Test", b, N);
    FRESH();
    MPI_Irecv(b, 2, MPI_DOUBLE, last, 5, comm, &q[0]);
    MPI_Irecv(b + 2, 2, MPI_DOUBLE, last, 6, comm, &q[1]);
    MPI_Issend(a, 2, MPI_DOUBLE, next, 6, comm, &q[2]);
    MPI_Issend(a + 2, 2, MPI_DOUBLE, next, 5, comm, &q[3]);
    MPI_Waitany(4, q, &index, status);
    MPI_Waitsome(4, q, &n, indices, status);
    MPI_Waitall(4, q, status);
    add("Waitany Waitsome Waitall", b, N);
    MPI_Barrier(comm);
}

static void test_special_requests(MPI_Comm comm)
{
    double a[N], b[N];
    int next = (rank + 1) % size, last = (rank + size - 1) % size, flag;
    MPI_Request q[3];
    MPI_Status status[3];
    FRESH();
    MPI_Recv_init(b, N, MPI_DOUBLE, last, 7, comm, &q[0]);
    MPI_Send_init(a, N, MPI_DOUBLE, next, 7, comm, &q[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, q);
        if (i == 1)
            for (flag = 0; !flag;)
                MPI_Testall(2, q, &flag, status);
        else
            MPI_Waitall(2, q, status);
        MPI_Wait(&q[0], status); /* inactive: returns at once */
    }
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
    add("persistent", b, N);
    FRESH();
    MPI_Irecv(b, N, MPI_DOUBLE, last, 8, comm, &q[0]);
    MPI_Irecv(b, N, MPI_DOUBLE, last, 9, comm, &q[1]);
    MPI_Isend(a, N, MPI_DOUBLE, next, 8, comm, &q[2]);
    MPI_Request_free(&q[2]);
    MPI_Cancel(&q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    MPI_Irecv(b, N, MPI_DOUBLE, last, 9, comm, &q[0]);
    MPI_Cancel(&q[0]);
    MPI_Request_free(&q[0]);
    add("Cancel Request_free", b, N);
    MPI_Send(a, N, MPI_DOUBLE, MPI_PROC_NULL, 8, comm);
    MPI_Recv(a, N, MPI_DOUBLE, MPI_PROC_NULL, 8, comm, MPI_STATUS_IGNORE);
    MPI_Isend(a, N, MPI_DOUBLE, MPI_PROC_NULL, 8, comm, &q[0]);
    MPI_Irecv(a, N, MPI_DOUBLE, MPI_PROC_NULL, 8, comm, &q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    MPI_Barrier(comm);
}

static int copies, deletes;
static MPI_Comm seen = MPI_COMM_NULL;

static int copy_attribute(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)keyval;
    copies += *(int *)extra;
    seen = comm;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value;
    deletes += *(int *)extra;
    return MPI_SUCCESS;
}

static void test_communicators(void)
{
    MPI_Comm dup, half, cart, sub, inter, merged, made;
    MPI_Group world, part;
    int extra = 1, value = 5, keyval, result, flag, dims[1] = {size}, periods[1] = {1},
        keep[1] = {1};
    int *found = NULL, coords[1], source, dest, zero = 0, translated;
    char name[MPI_MAX_OBJECT_NAME];
    double out[16] = {0};
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &result);
    out[0] = strcmp(name, "MPI_COMM_WORLD") == 0;
    MPI_Comm_create_keyval(copy_attribute, delete_attribute, &keyval, &extra);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &value);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_get_attr(dup, keyval, &found, &flag);
    out[1] = flag && *found == 5 && seen == MPI_COMM_WORLD && copies == 1;
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
    out[2] = result == MPI_IDENT;
    MPI_Comm_compare(MPI_COMM_WORLD, dup, &result);
    out[3] = result == MPI_CONGRUENT;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart);
    MPI_Cart_shift(cart, 0, 1, &source, &dest);
    MPI_Cart_coords(cart, rank, 1, coords);
    MPI_Cart_sub(cart, keep, &sub);
    out[4] = source + 10 * dest + 100 * coords[0];
    if (size > 1) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 77, &inter);
        MPI_Comm_remote_size(inter, &result);
        out[5] = result;
        MPI_Barrier(inter);
        MPI_Intercomm_merge(inter, rank % 2, &merged);
        MPI_Comm_rank(merged, &result);
        out[6] = result;
        MPI_Comm_free(&merged);
        MPI_Comm_free(&inter);
    }
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &zero, &part);
    MPI_Group_translate_ranks(part, 1, &zero, world, &translated);
    MPI_Comm_create(MPI_COMM_WORLD, part, &made);
    out[7] = (made != MPI_COMM_NULL) == (rank == 0) && translated == 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &found, &flag);
    out[8] = flag && *found > 32766;
    MPI_Comm_delete_attr(dup, keyval);
    out[9] = deletes;
    MPI_Comm_free(&dup);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    MPI_Comm_free_keyval(&keyval);
    out[10] = deletes;
    MPI_Group_free(&part);
    MPI_Group_free(&world);
    MPI_Comm_free(&sub);
    /* half, cart and made are left to MPI_Finalize, as many programs do */
    add("communicators", out, 16);
}

static void test_errors(void)
{
    MPI_Errhandler before, now;
    double out[2];
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    out[0] = before == MPI_ERRORS_ARE_FATAL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
    out[1] = now == MPI_ERRORS_RETURN;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&now);
    add("errors", out, 2);
}

static void test_windows(void)
{
    double memory[N] = {0}, one = rank + 1;
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&one, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % size, 0, win);
    MPI_Accumulate(&one, 1, MPI_DOUBLE, (rank + 1) % size, 1, 1, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_unlock((rank + 1) % size, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Get(&one, 1, MPI_DOUBLE, rank, 1, 1, MPI_DOUBLE, win);
    MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);
    MPI_Win_fence(0, win);
    memory[2] = one;
    MPI_Win_free(&win);
    add("windows", memory, N);
}

static void test_types(void)
{
    MPI_Datatype vector, resized;
    double a[N * 4], b[N * 4] = {0};
    fill(a, N * 4, 3);
    MPI_Type_vector(N, 1, 4, MPI_DOUBLE, &vector);
    MPI_Type_create_resized(vector, 0, sizeof(double), &resized);
    MPI_Type_commit(&resized);
    MPI_Type_free(&vector);
    MPI_Sendrecv(a, 2, resized, (rank + 1) % size, 1, b, 2, resized, (rank + size - 1) % size, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(b, 2, resized, (rank + 1) % size, 1, (rank + size - 1) % size, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    add("types", b, N * 4); /* resized is left to MPI_Finalize */
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MAX_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    test_collectives(MPI_COMM_WORLD);
    test_messages(MPI_COMM_WORLD);
    test_special_requests(MPI_COMM_WORLD);
    test_communicators();
    test_errors();
    test_windows();
    test_types();
    if (rank == 0)
        printf("digest %.10g\n", digest);
    return MPI_Finalize();
}
