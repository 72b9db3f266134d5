/* SPDX-License-Identifier: MIT
 * Generations of handles: as many as the argument says are made and freed behind the program's
 * back, the other generation stays, delete functions are silent, and nothing runs out. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "interpose/handles.h"
#include "interpose/quiescence.h"

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);               \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

int MPI_Abort(MPI_Comm comm, int code)
{
    return PMPI_Abort(comm, code);
}

static int deletes;

static int delete_attribute(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    deletes++;
    return MPI_SUCCESS;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void make_all(void)
{
    static int memory[4];
    MPI_Comm dup, split;
    MPI_Datatype type, again;
    MPI_Group group;
    MPI_Op op;
    MPI_Info info;
    MPI_Win win;
    MPI_Request request;
    int keyval, in = 1, out = 0, size;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(dup, 0, 0, &split);
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_dup(type, &again);
    MPI_Comm_group(split, &group);
    MPI_Op_create(add, 1, &op);
    MPI_Info_create(&info);
    MPI_Win_create(memory, sizeof memory, 1, info, dup, &win);
    MPI_Send_init(memory, 1, MPI_INT, MPI_PROC_NULL, 0, split, &request);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &keyval, NULL);
    MPI_Comm_set_attr(split, keyval, memory);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, memory);
    MPI_Comm_free_keyval(&keyval);
    MPI_Allreduce(&in, &out, 1, MPI_INT, op, split);
    MPI_Comm_size(split, &size);
    EXPECT(out == size);
}

static int count_all(int generation)
{
    int n = 0;
    for (int kind = 0; kind < PL_HANDLE_KINDS; kind++)
        n += pl_handles_list((pl_handle_kind_t)kind, generation, NULL, 0);
    return n;
}

static void test_order_and_lists(void)
{
    MPI_Datatype made[3];
    int listed[2] = {0};
    pl_handles_begin(7);
    for (int i = 0; i < 3; i++)
        MPI_Type_contiguous(i + 1, MPI_INT, &made[i]);
    EXPECT(pl_handles_list(PL_HANDLE_TYPE, 7, listed, 2) == 3);
    EXPECT(listed[0] == made[2] && listed[1] == made[1]);
    MPI_Datatype copy = made[1];
    MPI_Type_free(&copy);
    EXPECT(!pl_handle_find(PL_HANDLE_TYPE, made[1]));
    EXPECT(pl_handles_list(PL_HANDLE_TYPE, 7, listed, 2) == 2);
    EXPECT(listed[0] == made[2] && listed[1] == made[0]);
    EXPECT(!pl_handle_made(PL_HANDLE_TYPE, MPI_INT));
    EXPECT(!pl_handle_made(PL_HANDLE_COMM, MPI_COMM_NULL));
    EXPECT(pl_handles_free(7, true) == 0 && count_all(7) == 0);
}

static void test_persistent_counts(void)
{
    MPI_Request request;
    int rank, in = 3, out = 0;
    pl_quiet_t quiet;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Recv_init(&out, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &request);
    pl_quiescence_get(&quiet);
    EXPECT(quiet.requests == 0);
    MPI_Start(&request);
    EXPECT(pl_quiet.requests == 1 && pl_quiet.received == quiet.received + 1);
    MPI_Send(&in, 1, MPI_INT, rank, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(pl_quiet.requests == 0 && out == 3);
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(pl_quiet.requests == 0 && pl_quiet.received == quiet.received + 1);
    MPI_Request_free(&request);
}

static void test_orphans(void)
{
    MPI_Request request;
    int rank, in = 3, out = 0;
    pl_quiet_t quiet;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(&out, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    EXPECT(request == MPI_REQUEST_NULL);
    pl_quiescence_get(&quiet);
    EXPECT(quiet.requests == 1);
    MPI_Send(&in, 1, MPI_INT, rank, 5, MPI_COMM_WORLD);
    for (int i = 0; i < 1000000 && quiet.requests; i++)
        pl_quiescence_get(&quiet);
    EXPECT(quiet.requests == 0 && out == 3);
}

static void test_windows_are_counted(void)
{
    int memory[2] = {0}, one = 1, rank;
    MPI_Win first, second;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &first);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &second);
    MPI_Win_fence(0, first);
    MPI_Win_fence(0, second);
    MPI_Put(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, first);
    MPI_Put(&one, 1, MPI_INT, rank, 1, 1, MPI_INT, second);
    EXPECT(pl_quiet.rma == 2);
    MPI_Win_fence(0, first);
    EXPECT(pl_quiet.rma == 1);
    MPI_Win_fence(0, second);
    EXPECT(pl_quiet.rma == 0);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, first);
    EXPECT(pl_quiet.locks == 1);
    MPI_Win_unlock(rank, first);
    EXPECT(pl_quiet.locks == 0);
    MPI_Win_free(&second);
    MPI_Win_free(&first);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT(argc == 2 && atoi(argv[1]) > 0);
    test_order_and_lists();
    pl_handles_begin(1);
    test_persistent_counts();
    test_orphans();
    test_windows_are_counted();
    make_all();
    int kept = count_all(1);
    EXPECT(kept >= 9);
    for (int generation = 2; generation < 2 + atoi(argv[1]); generation++) {
        pl_handles_begin(generation);
        make_all();
        EXPECT(count_all(generation) == kept);
        EXPECT(pl_handles_free(generation, true) == 0);
        EXPECT(count_all(generation) == 0 && count_all(1) == kept);
    }
    EXPECT(deletes == 0);
    return MPI_Finalize();
}
