/* SPDX-License-Identifier: MIT */
#include "interpose/snapshot.h"

#include <stdlib.h>
#include <string.h>

uint64_t pl_hash_bytes(const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    uint64_t lane[4] = {1, 2, 3, 4}, word;
    size_t i = 0;

    for (; i + 32 <= count; i += 32)
        for (int k = 0; k < 4; k++) {
            memcpy(&word, p + i + 8 * k, 8);
            lane[k] = (lane[k] ^ word) * 0x9e3779b97f4a7c15u;
            lane[k] ^= lane[k] >> 32;
        }
    for (; i < count; i += 8) {
        word = 0;
        memcpy(&word, p + i, count - i < 8 ? count - i : 8);
        lane[0] = (lane[0] ^ word) * 0x9e3779b97f4a7c15u;
        lane[0] ^= lane[0] >> 32;
    }
    uint64_t hash = count;
    for (int k = 0; k < 4; k++)
        hash = (hash ^ lane[k]) * 0xbf58476d1ce4e5b9u, hash ^= hash >> 29;
    return hash;
}

static int by_chain_then_age(const void *a, const void *b)
{
    const pl_record_t *x = a, *y = b;
    if (x->block.chain != y->block.chain)
        return x->block.chain < y->block.chain ? -1 : 1;
    return x->block.id < y->block.id ? -1 : x->block.id > y->block.id;
}

static pl_status_t list_heap(pl_snapshot_t *s)
{
    int generations[2] = {0, pl_heap_current()};
    int64_t count[2] = {0, 0};

    for (int i = 0; i < 2; i++) {
        if (i == 1 && generations[1] == 0)
            break;
        count[i] = pl_heap_list(generations[i], NULL, 0);
        if (count[i] < 0)
            return (pl_status_t)count[i];
    }
    int64_t total = count[0] + count[1];
    pl_block_t *blocks = malloc((size_t)(total + 1) * sizeof *blocks);
    s->records = calloc((size_t)total + 1, sizeof *s->records);
    if (!blocks || !s->records) {
        free(blocks);
        return PL_ERR_NOMEM;
    }
    pl_heap_list(0, blocks, count[0]);
    if (count[1])
        pl_heap_list(generations[1], blocks + count[0], count[1]);
    for (int64_t i = 0; i < total; i++)
        s->records[i] = (pl_record_t){.block = blocks[i], .permanent = i < count[0]};
    free(blocks);
    s->record_count = total;
    qsort(s->records, (size_t)total, sizeof *s->records, by_chain_then_age);
    for (int64_t i = 0; i < total; i++)
        s->records[i].order = i && s->records[i].block.chain == s->records[i - 1].block.chain
                                  ? s->records[i - 1].order + 1
                                  : 0;
    return PL_OK;
}

static pl_status_t keep_content(pl_record_t *r, pl_snapshot_use_t use)
{
    size_t bytes = (size_t)r->block.size;

    if (use == PL_SNAPSHOT_BASELINE)
        r->hash = pl_hash_bytes(r->block.address, bytes);
    if (use == PL_SNAPSHOT_NOW ? r->permanent : bytes <= PL_COPIED_OBJECT) {
        r->copy = malloc(bytes ? bytes : 1);
        if (!r->copy)
            return PL_ERR_NOMEM;
        memcpy(r->copy, r->block.address, bytes);
    }
    if (use == PL_SNAPSHOT_BASELINE && bytes) {
        pl_view_t view = {.base = r->block.address, .bytes = r->block.size};
        int most = bytes / 4 < PL_SAMPLES ? (int)(bytes / 4) + 1 : PL_SAMPLES;
        r->samples = malloc((size_t)most * sizeof *r->samples);
        if (!r->samples)
            return PL_ERR_NOMEM;
        r->sample_count = pl_sample_take(&view, r->samples, most);
    }
    return PL_OK;
}

static pl_status_t take_stack(pl_snapshot_t *s, const struct pl_frame *frame)
{
    const uint64_t registers[PL_REGISTERS] = {frame->r15, frame->r14, frame->r13,
                                              frame->r12, frame->rbx, frame->rbp};
    memcpy(s->registers, registers, sizeof registers);
    s->stack = (uintptr_t)(frame + 1);
    s->stack_bytes = pl_chain_top - s->stack;
    s->frame_bytes = pl_chain_floor - (uintptr_t)frame;
    s->frame_copy = malloc(s->frame_bytes);
    if (!s->frame_copy)
        return PL_ERR_NOMEM;
    memcpy(s->frame_copy, frame, s->frame_bytes);
    s->stack_copy = s->frame_copy + sizeof *frame;
    return PL_OK;
}

pl_status_t pl_snapshot_take(const pl_chain_t *chain, const struct pl_frame *frame,
                             pl_snapshot_use_t use, pl_snapshot_t **out)
{
    pl_snapshot_t *s = calloc(1, sizeof *s);
    if (!s)
        return PL_ERR_NOMEM;
    s->chain = chain;
    pl_status_t status = take_stack(s, frame);
    if (!status)
        status = pl_image_save(&s->image);
    if (!status)
        status = list_heap(s);
    for (int64_t i = 0; i < s->record_count && !status; i++)
        status = keep_content(&s->records[i], use);
    if (status) {
        pl_snapshot_free(s);
        return status;
    }
    *out = s;
    return PL_OK;
}

void pl_snapshot_free(pl_snapshot_t *s)
{
    if (!s)
        return;
    for (int64_t i = 0; i < s->record_count; i++) {
        free(s->records[i].copy);
        free(s->records[i].samples);
    }
    free(s->records);
    free(s->frame_copy);
    pl_image_free(&s->image);
    free(s);
}
