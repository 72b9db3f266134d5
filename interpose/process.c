/* SPDX-License-Identifier: MIT */
#include "interpose/process.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

extern char **environ;

static int program_argc;
static char **program_argv;
static uint64_t signals_of_pliant;
static bool captured_before;

/* Where restored environments live whose array the C library may have freed since. */
static char **own_environment;
static int own_environment_room;

void pl_process_setup(int argc, char **argv, uint64_t own_signals)
{
    program_argc = argc;
    program_argv = argv;
    signals_of_pliant = own_signals;
}

/* --- strings ----------------------------------------------------------------------------- */

static void strings_release(pl_strings_t *s)
{
    free(s->pointers);
    free(s->text);
    *s = (pl_strings_t){0};
}

static pl_status_t strings_capture(char **array, int count, pl_strings_t *out)
{
    pl_strings_t s = {.array = array, .count = count};
    size_t bytes = 1;

    for (int i = 0; i < count; i++)
        bytes += array[i] ? strlen(array[i]) + 1 : 0;
    s.pointers = calloc((size_t)count + 1, sizeof *s.pointers);
    s.text = malloc(bytes);
    if (!s.pointers || !s.text) {
        strings_release(&s);
        return PL_ERR_NOMEM;
    }
    char *to = s.text;
    for (int i = 0; i < count; i++) {
        s.pointers[i] = array[i];
        if (array[i])
            to = stpcpy(to, array[i]) + 1;
    }
    *out = s;
    return PL_OK;
}

/* Contents are written only where they differ: they may lie in read-only memory. */
static void strings_put_contents(const pl_strings_t *s)
{
    const char *from = s->text;
    for (int i = 0; i < s->count; i++) {
        if (!s->pointers[i])
            continue;
        size_t bytes = strlen(from) + 1;
        if (memcmp(s->pointers[i], from, bytes) != 0)
            memcpy(s->pointers[i], from, bytes);
        from += bytes;
    }
}

static void strings_put_pointers(const pl_strings_t *s, char **array)
{
    size_t bytes = ((size_t)s->count + 1) * sizeof *array;
    if (memcmp(array, s->pointers, bytes) != 0)
        memcpy(array, s->pointers, bytes);
}

static int environment_count(void)
{
    int count = 0;
    while (environ && environ[count])
        count++;
    return count;
}

/* setenv moves the array, and may free the one a state remembers: only the first one, which lies on
 * the stack above main, is sure to be there. */
static void environment_put(const pl_process_state_t *state)
{
    const pl_strings_t *s = &state->environment;
    bool same = environ == s->array && environment_count() == s->count &&
                memcmp(environ, s->pointers, (size_t)s->count * sizeof *environ) == 0;
    if (state->pristine && s->array) {
        strings_put_pointers(s, s->array);
        environ = s->array;
    } else if (!same) {
        if (own_environment_room < s->count + 1) {
            char **larger = malloc(((size_t)s->count + 1) * sizeof *larger);
            if (!larger) {
                PL_WARN("out of memory: environment not put back");
                return;
            }
            /* The old one is not freed: the program may hold its address. */
            own_environment = larger;
            own_environment_room = s->count + 1;
        }
        memcpy(own_environment, s->pointers, ((size_t)s->count + 1) * sizeof *own_environment);
        environ = own_environment;
    }
    strings_put_contents(s);
}

/* --- signals and timers --------------------------------------------------------------------- */

static bool is_programs_signal(int number)
{
    bool internal = number == 32 || number == 33; /* the C library's own */
    bool fixed = number == SIGKILL || number == SIGSTOP;
    return !internal && !fixed && !(signals_of_pliant >> (number - 1) & 1);
}

static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags &&
           memcmp(&a->sa_mask, &b->sa_mask, 8) == 0;
}

static void signals_capture(pl_process_state_t *state)
{
    for (int number = 1; number <= 64; number++)
        if (is_programs_signal(number))
            sigaction(number, NULL, &state->action[number]);
    pthread_sigmask(SIG_SETMASK, NULL, &state->blocked);
    for (int i = 0; i < 3; i++)
        getitimer((__itimer_which_t)i, &state->timer[i]);
}

static void signals_put(const pl_process_state_t *state)
{
    for (int i = 0; i < 3; i++) {
        struct itimerval now = {0};
        const struct itimerval *then = &state->timer[i];
        getitimer((__itimer_which_t)i, &now);
        bool was_on = then->it_value.tv_sec || then->it_value.tv_usec;
        bool is_on = now.it_value.tv_sec || now.it_value.tv_usec;
        if (was_on || is_on)
            setitimer((__itimer_which_t)i, then, NULL);
    }
    for (int number = 1; number <= 64; number++) {
        struct sigaction now = {0};
        if (is_programs_signal(number) && sigaction(number, NULL, &now) == 0 &&
            !same_action(&now, &state->action[number]))
            sigaction(number, &state->action[number], NULL);
    }
    pthread_sigmask(SIG_SETMASK, &state->blocked, NULL);
}

/* --- getopt, locale, floating point --------------------------------------------------------- */

static void getopt_put(const pl_process_state_t *state)
{
    /* 0 makes glibc begin anew, also within a group of letters. */
    optind = state->pristine && state->optind_ == 1 ? 0 : state->optind_;
    opterr = state->opterr_;
    optopt = state->optopt_;
    optarg = state->optarg_;
}

static void locale_put(const pl_process_state_t *state)
{
    const char *now = setlocale(LC_ALL, NULL);
    if (!now || strcmp(now, state->locale) != 0)
        setlocale(LC_ALL, state->locale);
}

static void float_capture(pl_process_state_t *state)
{
    state->mxcsr = __builtin_ia32_stmxcsr();
    __asm__ volatile("fnstcw %0" : "=m"(state->x87));
}

static void float_put(const pl_process_state_t *state)
{
    __builtin_ia32_ldmxcsr(state->mxcsr);
    __asm__ volatile("fldcw %0" : : "m"(state->x87));
}

/* --- all of it ------------------------------------------------------------------------------ */

static pl_status_t directory_capture(pl_process_state_t *state)
{
    int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        PL_WARN("cannot keep the working directory: %m");
        return PL_ERR_IO;
    }
    /* Out of the way of the numbers the program gets. */
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
    state->directory = high < 0 ? fd : high;
    if (high >= 0)
        close(fd);
    return PL_OK;
}

pl_status_t pl_process_capture(pl_process_state_t *out)
{
    pl_process_state_t state = {.pristine = !captured_before, .directory = -1};
    const char *locale = setlocale(LC_ALL, NULL);
    pl_status_t status = strings_capture(environ, environment_count(), &state.environment);

    if (status == PL_OK)
        status = strings_capture(program_argv, program_argc, &state.arguments);
    if (status == PL_OK && !(state.locale = strdup(locale ? locale : "C")))
        status = PL_ERR_NOMEM;
    if (status == PL_OK)
        status = directory_capture(&state);
    if (status != PL_OK) {
        pl_process_release(&state);
        return status;
    }
    state.mask = umask(0);
    umask(state.mask);
    signals_capture(&state);
    state.optind_ = optind;
    state.opterr_ = opterr;
    state.optopt_ = optopt;
    state.optarg_ = optarg;
    float_capture(&state);
    state.random_array = pl_random_array();
    pl_random_get(&state.random);
    captured_before = true;
    *out = state;
    return PL_OK;
}

void pl_process_restore(const pl_process_state_t *state)
{
    int saved_errno = errno;

    if (fchdir(state->directory) != 0)
        PL_WARN("cannot go back to the working directory: %m");
    umask(state->mask);
    environment_put(state);
    if (state->arguments.array) {
        strings_put_pointers(&state->arguments, state->arguments.array);
        strings_put_contents(&state->arguments);
    }
    getopt_put(state);
    locale_put(state);
    float_put(state);
    pl_random_use(state->random_array, &state->random);
    signals_put(state);
    errno = saved_errno;
}

void pl_process_release(pl_process_state_t *state)
{
    strings_release(&state->environment);
    strings_release(&state->arguments);
    free(state->locale);
    state->locale = NULL;
    if (state->directory >= 0)
        close(state->directory);
    state->directory = -1;
}
