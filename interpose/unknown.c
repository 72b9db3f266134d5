/* SPDX-License-Identifier: MIT */
#include "interpose/unknown.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "interpose/border.h"
#include "interpose/calls/names.h"
#include "interpose/modules.h"

/* MPI_UNWEIGHTED and the like are variables. */
static bool is_function(const char *name)
{
    for (; *name; name++)
        if (*name >= 'a' && *name <= 'z')
            return true;
    return false;
}

/* Names bound through a relocation of one module. */
static void look_at(const ElfW(Rela) * r, size_t bytes, const ElfW(Sym) * symbols,
                    const char *strings)
{
    static char reason[160];

    for (size_t i = 0; i < bytes / sizeof *r; i++) {
        unsigned long index = ELF64_R_SYM(r[i].r_info);
        const char *name = strings + symbols[index].st_name;
        if (!index || symbols[index].st_shndx != SHN_UNDEF)
            continue;
        if (name[0] == 'P')
            name++;
        if (strncmp(name, "MPI_", 4) || !is_function(name) || pl_call_known(name) || reason[0])
            continue;
        snprintf(reason, sizeof reason, "it uses %s, which this version of Pliant does not know",
                 name);
        pl_not_resizable(reason);
    }
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    const ElfW(Dyn) *d = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const ElfW(Rela) * tables[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    (void)size;
    (void)arg;

    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (!d)
        return 0;
    const pl_module_t *m = pl_module_of((uintptr_t)d);
    if (!m || m->owner != PL_OWNER_PROGRAM)
        return 0;
    for (; d->d_tag != DT_NULL; d++) {
        uintptr_t p =
            d->d_un.d_ptr; /* the loader has made addresses of these, except in the vdso */
        if (d->d_tag == DT_SYMTAB)
            symbols = (const void *)p;
        if (d->d_tag == DT_STRTAB)
            strings = (const void *)p;
        if (d->d_tag == DT_JMPREL)
            tables[0] = (const void *)p;
        if (d->d_tag == DT_PLTRELSZ)
            bytes[0] = d->d_un.d_val;
        if (d->d_tag == DT_RELA)
            tables[1] = (const void *)p;
        if (d->d_tag == DT_RELASZ)
            bytes[1] = d->d_un.d_val;
    }
    for (int k = 0; k < 2 && symbols && strings; k++)
        if (tables[k])
            look_at(tables[k], bytes[k], symbols, strings);
    return 0;
}

void pl_unknown_look(void)
{
    dl_iterate_phdr(look_at_module, NULL);
}
