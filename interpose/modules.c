/* SPDX-License-Identifier: MIT */
#include "interpose/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "common/log.h"
#include "interpose/border.h"

enum { MAX_MODULES = 256 };

static pl_module_t modules[MAX_MODULES];
static int module_count;
static bool is_mpi[MAX_MODULES];

/* The few ranges asked for at every allocation. */
static struct {
    uintptr_t low, high;
} program_text[MAX_MODULES];
static int program_texts;
static uintptr_t self_low, self_high;

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

static bool starts_with(const char *text, const char *const *prefixes)
{
    for (; *prefixes; prefixes++)
        if (!strncmp(text, *prefixes, strlen(*prefixes)))
            return true;
    return false;
}

static pl_owner_t owner_by_name(const char *name)
{
    static const char *const system[] = {
        "libc.so",  "ld-linux",    "libm.so",    "libpthread.so", "libdl.so",
        "librt.so", "libgcc_s.so", "linux-",     "libgomp.so",    "libquadmath",
        "libmvec",  "libresolv",   "libutil.so", "libanl",        "libnss_",
        "libtsan",  "libasan",     "libubsan",   "liblsan",       "libmpi",
        "libpmpi",  NULL};
    static const char *const cxx[] = {"libstdc++", "libc++", NULL};
    static const char *const fortran[] = {"libgfortran", "libifcore", NULL};

    if (starts_with(name, cxx))
        return PL_OWNER_CXX;
    if (starts_with(name, fortran))
        return PL_OWNER_FORTRAN;
    return starts_with(name, system) ? PL_OWNER_SYSTEM : PL_OWNER_PROGRAM;
}

static void read_segments(const struct dl_phdr_info *info, pl_module_t *m)
{
    uintptr_t relro_end = 0;

    m->low = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;
        if (p->p_type == PT_GNU_RELRO)
            relro_end = (end + 4095) & ~(uintptr_t)4095;
        if (p->p_type == PT_TLS) {
            m->tls = info->dlpi_tls_data;
            m->tls_bytes = p->p_memsz;
            m->tls_module = (int)info->dlpi_tls_modid;
        }
        if (p->p_type != PT_LOAD)
            continue;
        m->low = start < m->low ? start : m->low;
        m->high = end > m->high ? end : m->high;
        if (p->p_flags & PF_X) {
            m->text_low = start;
            m->text_high = end;
        }
        if (p->p_flags & PF_W) {
            m->data_low = start;
            m->data_high = end;
            m->file_high = start + p->p_filesz;
        }
    }
    if (relro_end > m->data_low && relro_end <= m->data_high)
        m->data_low = relro_end;
    m->data_low = (m->data_low + 7) & ~(uintptr_t)7;
    m->data_high &= ~(uintptr_t)7;
    if (m->data_high < m->data_low)
        m->data_high = m->data_low;
}

/* Lazily bound function slots change with the first call of each function: not program state. */
static void read_slots(const struct dl_phdr_info *info, pl_module_t *m)
{
    uintptr_t relocations = 0;
    size_t bytes = 0;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; d->d_tag != DT_NULL; d++) {
            if (d->d_tag == DT_JMPREL)
                relocations = d->d_un.d_ptr;
            if (d->d_tag == DT_PLTRELSZ)
                bytes = d->d_un.d_val;
        }
    }
    if (relocations && relocations < m->low)
        relocations += info->dlpi_addr;
    if (!relocations || relocations < m->low || relocations + bytes > m->high)
        return;
    const ElfW(Rela) *r = (const void *)relocations;
    for (size_t i = 0; i < bytes / sizeof *r; i++) {
        uintptr_t slot = info->dlpi_addr + r[i].r_offset;
        if (!m->slots_low || slot < m->slots_low)
            m->slots_low = slot;
        if (slot + 8 > m->slots_high)
            m->slots_high = slot + 8;
    }
}

static int known(const struct dl_phdr_info *info)
{
    for (int i = 0; i < module_count; i++)
        if (modules[i].base == info->dlpi_addr && !strcmp(modules[i].path, info->dlpi_name))
            return i;
    return -1;
}

static int scan_one(struct dl_phdr_info *info, size_t size, void *arg)
{
    bool first_scan = *(bool *)arg;
    (void)size;
    if (module_count == MAX_MODULES || known(info) >= 0)
        return 0;
    pl_module_t m = {.base = info->dlpi_addr, .path = info->dlpi_name};
    const char *name = module_count == 0 ? "executable" : file_name(info->dlpi_name);

    read_segments(info, &m);
    read_slots(info, &m);
    m.id = hash_name(name);
    uintptr_t here = (uintptr_t)&pl_modules_scan;
    if (here >= m.low && here < m.high)
        m.owner = PL_OWNER_SELF;
    else if (module_count == 0)
        m.owner = PL_OWNER_PROGRAM;
    else /* what is loaded later is a plug-in of the MPI library or of libc */
        m.owner = first_scan ? owner_by_name(name) : PL_OWNER_SYSTEM;
    modules[module_count++] = m;
    return 0;
}

/* Marks what a module needs directly; true if something new was marked. */
static bool mark_needs(int module, bool *claimed)
{
    struct link_map *map = NULL;
    void *handle = dlopen(modules[module].path, RTLD_LAZY | RTLD_NOLOAD);
    const char *strings = NULL;
    bool more = false;

    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map)
        return false;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr;
    for (const ElfW(Dyn) *d = map->l_ld; strings && d->d_tag != DT_NULL; d++)
        for (int k = 1; d->d_tag == DT_NEEDED && k < module_count; k++)
            if (!claimed[k] && !strcmp(file_name(modules[k].path), strings + d->d_un.d_val))
                more = claimed[k] = true;
    dlclose(handle);
    return more;
}

/* Whatever the MPI library or we ourselves need (transitively) is no part of the program, wherever
 * it is installed. */
static void claim_needs(void)
{
    bool claimed[MAX_MODULES] = {false}, more = true;

    for (int i = 1; i < module_count; i++) {
        const char *name = file_name(modules[i].path);
        is_mpi[i] = !strncmp(name, "libmpi", 6) || !strncmp(name, "libpmpi", 7);
        claimed[i] = is_mpi[i] || modules[i].owner == PL_OWNER_SELF;
    }
    while (more) {
        more = false;
        for (int i = 1; i < module_count; i++)
            more = (claimed[i] && mark_needs(i, claimed)) || more;
    }
    for (int i = 1; i < module_count; i++)
        if (claimed[i] && modules[i].owner == PL_OWNER_PROGRAM)
            modules[i].owner = PL_OWNER_SYSTEM;
}

static void index_text(void)
{
    program_texts = 0;
    for (int i = 0; i < module_count; i++) {
        const pl_module_t *m = &modules[i];
        if (m->owner == PL_OWNER_SELF) {
            self_low = m->text_low;
            self_high = m->text_high;
        }
        if (m->owner != PL_OWNER_PROGRAM && m->owner != PL_OWNER_CXX)
            continue;
        program_text[program_texts].low = m->text_low;
        program_text[program_texts].high = m->text_high;
        program_texts++;
    }
}

void pl_modules_scan(void)
{
    bool first_scan = module_count == 0;
    dl_iterate_phdr(scan_one, &first_scan);
    if (first_scan)
        claim_needs();
    index_text();
    if (module_count == MAX_MODULES)
        PL_WARN("more than %d shared libraries: the rest is taken for system libraries",
                MAX_MODULES);
}

int pl_modules_count(void)
{
    return module_count;
}

const pl_module_t *pl_module_at(int index)
{
    return &modules[index];
}

const pl_module_t *pl_module_of(uintptr_t address)
{
    for (int i = 0; i < module_count; i++)
        if (address >= modules[i].low && address < modules[i].high)
            return &modules[i];
    return NULL;
}

const pl_module_t *pl_module_by_id(uint32_t id)
{
    for (int i = 0; i < module_count; i++)
        if (modules[i].id == id)
            return &modules[i];
    return NULL;
}

bool pl_module_is_program(const void *code_address)
{
    uintptr_t address = (uintptr_t)code_address;
    for (int i = 0; i < program_texts; i++)
        if (address - program_text[i].low < program_text[i].high - program_text[i].low)
            return true;
    return false;
}

bool pl_caller_is_mpi(const void *code_address)
{
    uintptr_t address = (uintptr_t)code_address;
    for (int i = 0; i < module_count; i++)
        if (is_mpi[i] && address >= modules[i].low && address < modules[i].high)
            return true;
    return false;
}

bool pl_module_is_self(uintptr_t address)
{
    return address >= self_low && address < self_high;
}
