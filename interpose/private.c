/* SPDX-License-Identifier: MIT */
#include "interpose/private.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "interpose/liveness.h"
#include "interpose/modules.h"

enum { WORD = 8 };

bool pl_words_private(const pl_words_t *words, const pl_segment_t *segment, int64_t word)
{
    const pl_verdict_t *v = &words->verdict[segment->first + word];
    bool pointer = v->flags & PL_FLAG_POINTER;
    if (v->changed && (v->flags & PL_FLAG_NATURE))
        return true;
    return pointer ? v->changed && v->differs : (v->changed & v->differs) != 0;
}

static bool excused(const pl_verdict_t *v)
{
    return (v->flags & (PL_FLAG_FOREIGN | PL_FLAG_DANGLING)) ||
           (!v->changed_beyond_root && !(v->flags & PL_FLAG_NATURE));
}

void pl_words_describe(const pl_segment_t *s, const pl_match_t *match, int64_t word, char *text,
                       size_t size)
{
    static const char *const names[PL_REGISTERS] = {"r15", "r14", "r13", "r12", "rbx", "rbp"};
    const pl_region_t *regions;

    switch (s->kind) {
    case PL_SEGMENT_FRAME:
        snprintf(text, size, "stack of frame %d at -0x%lx", s->index,
                 (unsigned long)(s->bytes - word * WORD));
        return;
    case PL_SEGMENT_REGISTERS:
        snprintf(text, size, "register %s", names[word]);
        return;
    case PL_SEGMENT_IMAGE: {
        pl_image_regions(&regions);
        const pl_region_t *r = &regions[s->index];
        const pl_module_t *m = pl_module_by_id(r->module);
        uintptr_t at = r->low + s->page * PL_PAGE + (uintptr_t)word * WORD;
        Dl_info info;
        if (r->thread_local_part)
            snprintf(text, size, "thread-local data +0x%lx", (unsigned long)(at - r->low));
        else if (dladdr((void *)at, &info) && info.dli_sname)
            snprintf(text, size, "variable %s+0x%lx", info.dli_sname,
                     (unsigned long)(at - (uintptr_t)info.dli_saddr));
        else
            snprintf(text, size, "data of %s +0x%lx", m && m->path[0] ? m->path : "the executable",
                     (unsigned long)(at - (m ? m->base : 0)));
        return;
    }
    case PL_SEGMENT_OBJECT:
        snprintf(text, size, "heap object %016lx/%u (%ld bytes) +0x%lx",
                 (unsigned long)match->objects[s->index].chain, match->objects[s->index].order,
                 (long)s->bytes, (unsigned long)(word * WORD));
    }
}

/* The bytes of a word that are private, as a range. */
static void private_range(const pl_verdict_t *v, int *first, int *bytes)
{
    uint8_t mask = v->flags & (PL_FLAG_POINTER | PL_FLAG_NATURE) ? 0xff : v->changed & v->differs;

    *first = __builtin_ctz(mask);
    *bytes = 32 - __builtin_clz(mask) - *first;
}

static void count_stack_word(const pl_words_t *words, const pl_segment_t *s, int64_t word,
                             const pl_match_t *match, const pl_chain_t *chain,
                             pl_private_count_t *out)
{
    enum { ENOUGH = 16 };
    char why[120] = "not looked at";
    int first, bytes;
    pl_life_t life = PL_LIFE_UNKNOWN;

    private_range(&words->verdict[s->first + word], &first, &bytes);
    if (out->stack < ENOUGH)
        life = s->kind == PL_SEGMENT_REGISTERS
                   ? pl_life_of_register(chain, (int)word, why, sizeof why)
                   : pl_life_of_stack(chain, s->index, s->bytes - word * WORD - first, bytes, why,
                                      sizeof why);
    int64_t k = s->first + word;
    if (out->stack + out->dead < ENOUGH)
        PL_DEBUG("private: frame %d -0x%lx: was %lx, is %lx, rank 0 has %lx: %s", s->index,
                 (unsigned long)(s->bytes - word * WORD), (unsigned long)words->base[k].value,
                 (unsigned long)words->now[k].value, (unsigned long)words->lead_now[k], why);
    if (life == PL_LIFE_DEAD) {
        out->dead++;
        return;
    }
    if (out->stack++ == 0) {
        char place[100];
        pl_words_describe(s, match, word, place, sizeof place);
        snprintf(out->stack_example, sizeof out->stack_example, "%s: %s", place, why);
    }
}

static void count_data_word(const pl_words_t *words, const pl_segment_t *s, int64_t word,
                            const pl_match_t *match, pl_private_count_t *out)
{
    if (excused(&words->verdict[s->first + word]) || out->data++)
        return;
    pl_words_describe(s, match, word, out->example, sizeof out->example);
    out->example_object = s->kind == PL_SEGMENT_OBJECT;
}

void pl_words_count(const pl_words_t *words, const pl_match_t *match, const pl_chain_t *chain,
                    pl_private_count_t *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < words->segment_count; i++) {
        const pl_segment_t *s = &words->segments[i];
        bool stack = s->kind == PL_SEGMENT_FRAME || s->kind == PL_SEGMENT_REGISTERS;
        int before = out->data;
        for (int64_t k = 0; k < (s->bytes + WORD - 1) / WORD; k++) {
            if (!pl_words_private(words, s, k))
                continue;
            if (stack)
                count_stack_word(words, s, k, match, chain, out);
            else
                count_data_word(words, s, k, match, out);
        }
        out->data_places += s->kind == PL_SEGMENT_OBJECT ? out->data > before : out->data - before;
    }
}
