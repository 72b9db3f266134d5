/* SPDX-License-Identifier: MIT
 * The program's files across trials. This program plays the unmodified one (its calls go through
 * the hooks of the library it is linked with) as well as the engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interpose/files.h"

static char folder[] = "/tmp/pliant-files-XXXXXX";

/* What a file holds on disk, read behind the hooks' back. */
static const char *content(const char *name)
{
    static char text[4096];
    char command[128];
    snprintf(command, sizeof command, "cat %s 2>/dev/null", name);
    FILE *pipe = popen(command, "r");
    size_t bytes = fread(text, 1, sizeof text - 1, pipe);
    text[bytes] = '\0';
    pclose(pipe);
    return text;
}

static void put(const char *name, const char *text)
{
    char command[256];
    snprintf(command, sizeof command, "printf '%s' > %s", text, name);
    assert_int_equal(system(command), 0);
}

static int count_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void begin(void)
{
    assert_int_equal(pl_files_trial_begin(), PL_OK);
}

static void commit(void)
{
    assert_int_equal(pl_files_commit(), PL_OK);
}

static void written_log_goes_on(void **state)
{
    (void)state;
    FILE *old = fopen("log", "w");
    fprintf(old, "head\n");
    fprintf(old, "one\n");
    int before = count_descriptors();
    begin();
    FILE *new = fopen("log", "w");
    fprintf(new, "head\n");
    assert_string_equal(content("log"), "head\none\n");
    commit();
    assert_int_equal(ftell(new), 9);
    fprintf(new, "two\n");
    fclose(new);
    assert_string_equal(content("log"), "head\none\ntwo\n");
    assert_int_equal(count_descriptors(), before - 1);
}

static void appended_log_goes_on(void **state)
{
    (void)state;
    put("a", "earlier\n");
    FILE *old = fopen("a", "a");
    fprintf(old, "one\n");
    begin();
    FILE *new = fopen("a", "a");
    fprintf(new, "one\n");
    fflush(new);
    commit();
    fprintf(new, "two\n");
    assert_int_equal(ftell(new), 16);
    fclose(new);
    assert_string_equal(content("a"), "earlier\none\ntwo\n");
}

static void rollback_leaves_the_log(void **state)
{
    char words[64];
    (void)state;
    FILE *old = fopen("r", "w");
    fprintf(old, "one\n");
    int before = count_descriptors();
    begin();
    FILE *new = fopen("r", "w");
    fprintf(new, "garbage\n");
    remove("r");
    printf("trial line\nnumber of ranks must be even\n\n");
    pl_files_rollback();
    pl_files_last_words(words, sizeof words);
    assert_string_equal(words, "number of ranks must be even");
    fprintf(old, "two\n");
    fclose(old);
    assert_string_equal(content("r"), "one\ntwo\n");
    assert_int_equal(count_descriptors(), before - 1);
}

static void reader_goes_on_where_it_was(void **state)
{
    char line[64];
    (void)state;
    assert_int_equal(system("seq 0 2999 > numbers"), 0);
    FILE *old = fopen("numbers", "r");
    for (int i = 0; i < 1500; i++)
        assert_non_null(fgets(line, sizeof line, old));
    long position = ftell(old);
    begin();
    FILE *new = fopen("numbers", "r");
    assert_non_null(fgets(line, sizeof line, new));
    assert_string_equal(line, "0\n");
    commit();
    assert_int_equal(ftell(new), position);
    for (int i = 1500; i < 3000; i++) {
        assert_non_null(fgets(line, sizeof line, new));
        assert_int_equal(atoi(line), i);
    }
    assert_null(fgets(line, sizeof line, new));
    begin();
    FILE *again = fopen("numbers", "r");
    commit();
    assert_true(feof(again));
    rewind(again);
    assert_non_null(fgets(line, sizeof line, again));
    assert_string_equal(line, "0\n");
    fclose(again);
}

static void updated_file_is_not_read_from_the_scratch(void **state)
{
    char line[8] = "";
    (void)state;
    put("data", "abcdefgh");
    FILE *old = fopen("data", "r+");
    fwrite("XY", 1, 2, old);
    begin();
    FILE *new = fopen("data", "r+");
    assert_int_equal(fread(line, 1, 4, new), 4);
    assert_memory_equal(line, "XYcd", 4);
    fseek(new, 4, SEEK_SET);
    fwrite("??", 1, 2, new);
    rewind(new);
    assert_int_equal(fread(line, 1, 8, new), 8);
    assert_memory_equal(line, "XYcd??gh", 8);
    commit();
    assert_int_equal(ftell(new), 2);
    assert_int_equal(fread(line, 1, 6, new), 6);
    assert_memory_equal(line, "cdefgh", 6);
    fclose(new);
    assert_string_equal(content("data"), "XYcdefgh");
}

static void descriptors_and_duplicates(void **state)
{
    (void)state;
    int old = open("fd", O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(old >= 0);
    int twin = dup(old);
    assert_int_equal(write(old, "one", 3), 3);
    int before = count_descriptors();
    begin();
    int new = open("fd", O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(new >= 0);
    int new_twin = dup(new);
    assert_int_equal(write(new_twin, "zero", 4), 4);
    assert_int_equal(open("fd", O_WRONLY | O_CREAT | O_EXCL, 0600), -1);
    assert_int_equal(errno, EEXIST);
    commit();
    assert_int_equal(fcntl(old, F_GETFD), -1);
    assert_int_equal(fcntl(twin, F_GETFD), -1);
    assert_int_equal(write(new, "two", 3), 3);
    assert_int_equal(write(new_twin, "three", 5), 5);
    assert_int_equal(count_descriptors(), before);
    close(new);
    close(new_twin);
    assert_string_equal(content("fd"), "onetwothree");
}

static void foreign_file_is_refused_as_outside_of_a_trial(void **state)
{
    (void)state;
    put("foreign", "x");
    assert_int_equal(mkdir("closed", 0500), 0);
    begin();
    assert_int_equal(open("foreign", O_WRONLY | O_CREAT | O_EXCL, 0600), -1);
    assert_int_equal(errno, EEXIST);
    assert_null(fopen("foreign", "wx"));
    assert_int_equal(open("absent", O_WRONLY), -1);
    assert_int_equal(errno, ENOENT);
    assert_null(fopen("no/such/folder", "w"));
    pl_files_rollback();
    assert_string_equal(content("foreign"), "x");
}

static void new_files_are_made_at_commit(void **state)
{
    char back[16] = "";
    (void)state;
    put("shared", "others\n");
    put("common.log", "start\n");
    begin();
    assert_int_equal(mkdir("out", 0700), 0);
    FILE *log = fopen("out/rank3.log", "w");
    fprintf(log, "rank 3\n");
    FILE *config = fopen("config3", "w");
    fprintf(config, "n = 5\n");
    fclose(config);
    config = fopen("config3", "r");
    assert_non_null(fgets(back, sizeof back, config));
    assert_string_equal(back, "n = 5\n");
    FILE *shared = fopen("shared", "w");
    FILE *common = fopen("common.log", "a");
    fprintf(common, "rank 3 joins\n");
    assert_string_equal(content("config3"), "");
    commit();
    fprintf(log, "more\n");
    fprintf(shared, "mine\n");
    fprintf(common, "rank 3 works\n");
    assert_null(fgets(back, sizeof back, config));
    fclose(log);
    fclose(shared);
    fclose(common);
    fclose(config);
    assert_string_equal(content("out/rank3.log"), "rank 3\nmore\n");
    assert_string_equal(content("config3"), "n = 5\n");
    assert_string_equal(content("shared"), "others\nmine\n");
    assert_string_equal(content("common.log"), "start\nrank 3 joins\nrank 3 works\n");
}

static void files_of_the_loop_stay_and_closed_ones_close(void **state)
{
    (void)state;
    FILE *setup = fopen("setup", "w");
    fprintf(setup, "x");
    fclose(setup);
    FILE *loop = fopen("loop", "w");
    fprintf(loop, "one ");
    begin();
    FILE *again = fopen("setup", "w");
    int number = fileno(again);
    fprintf(again, "y");
    commit();
    assert_int_equal(fcntl(number, F_GETFD), -1);
    fprintf(loop, "two");
    fclose(loop);
    assert_string_equal(content("setup"), "x");
    assert_string_equal(content("loop"), "one two");
}

static void trial_only_pretends_changes(void **state)
{
    (void)state;
    put("keep", "k");
    begin();
    assert_int_equal(unlink("keep"), 0);
    assert_int_equal(rename("keep", "gone"), 0);
    assert_int_equal(truncate("keep", 0), 0);
    assert_int_equal(mkdir("made", 0700), 0);
    assert_int_equal(rmdir("out"), 0);
    pl_files_rollback();
    assert_string_equal(content("keep"), "k");
    assert_int_equal(access("made", F_OK), -1);
    assert_int_equal(access("out", F_OK), 0);
    assert_int_equal(unlink("keep"), 0);
    assert_int_equal(access("keep", F_OK), -1);
}

/* In a child, since it changes the standard streams. */
static void redirected(void (*body)(void), const char *expected)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int out = open("stdout.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(out, 1);
        close(out);
        body();
        fflush(NULL);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(content("stdout.txt"), expected);
}

static void print_around_trials(void)
{
    printf("before\n");
    pl_files_trial_begin();
    printf("first trial\n");
    pl_files_rollback();
    printf("between\n");
    pl_files_trial_begin();
    printf("second trial\n");
    int copy = dup(1);
    pl_files_commit();
    printf("after\n");
    fflush(stdout);
    if (write(copy, "copy\n", 5) != 5)
        _exit(1);
}

static void reopen_output(void)
{
    printf("to the terminal\n");
    if (!freopen("reopened", "w", stdout))
        _exit(1);
    printf("one\n");
    pl_files_trial_begin();
    if (!freopen("reopened", "w", stdout))
        _exit(1);
    printf("again\n");
    pl_files_commit();
    printf("two\n");
    pl_files_trial_begin();
    printf("third\n");
    pl_files_rollback();
    printf("three\n");
}

static char first_buffer[4096];

static void give_buffer(void)
{
    char *buffer = malloc(4096);
    setvbuf(stdout, first_buffer, _IOFBF, sizeof first_buffer);
    printf("one\n");
    pl_files_trial_begin();
    setvbuf(stdout, buffer, _IOFBF, 4096);
    printf("trial\n");
    pl_files_rollback();
    memset(buffer, '#', 4096);
    printf("two\n");
    fflush(stdout);
    if (memcmp(first_buffer, "two\n", 4) != 0)
        printf("wrong buffer\n");
    for (int i = 0; i < 4096; i++)
        if (buffer[i] != '#')
            _exit(1);
}

static void give_buffer_in_the_trial_only(void)
{
    char *buffer = malloc(4096);
    printf("one\n");
    pl_files_trial_begin();
    setvbuf(stdout, buffer, _IOFBF, 4096);
    printf("trial\n");
    pl_files_rollback();
    memset(buffer, '#', 4096);
    printf("two\n");
    fflush(stdout);
    for (int i = 0; i < 4096; i++)
        if (buffer[i] != '#')
            _exit(1);
}

static void output_of_trials_is_dropped(void **state)
{
    (void)state;
    redirected(print_around_trials, "before\nbetween\nafter\ncopy\n");
    redirected(give_buffer, "one\ntwo\n");
    redirected(give_buffer_in_the_trial_only, "one\ntwo\n");
    redirected(reopen_output, "to the terminal\n");
    assert_string_equal(content("reopened"), "one\ntwo\nthree\n");
}

static void read_input(void)
{
    int a = 0, b = 0, c = 0;
    if (scanf("%d", &a) != 1)
        _exit(1);
    pl_files_trial_begin();
    if (scanf("%d %d", &b, &c) != 2 || b != 11 || c != 22)
        _exit(1);
    pl_files_rollback();
    int next = 0;
    if (scanf("%d", &next) == 1)
        printf("%d %d", a, next);
}

static void input_is_where_it_was(void **state)
{
    (void)state;
    redirected(read_input, "11 22");
}

static void retire_with_a_buffer(void)
{
    char *buffer = malloc(4096);
    setvbuf(stdout, buffer, _IOFBF, 4096);
    printf("one\n");
    pl_files_retire();
    memset(buffer, '#', 4096);
    free(buffer);
    printf("two\n");
    fflush(stdout);
    if (stdout->_IO_buf_base == buffer)
        _exit(1);
}

static void retired_process_closes_its_files(void **state)
{
    (void)state;
    redirected(retire_with_a_buffer, "one\ntwo\n");
    FILE *log = fopen("retired", "w");
    fprintf(log, "rank 2\n");
    int number = fileno(log);
    pl_files_retire();
    assert_int_equal(fcntl(number, F_GETFD), -1);
    assert_string_equal(content("retired"), "rank 2\n");
    begin();
    log = fopen("retired", "w");
    fprintf(log, "rank 2\n");
    commit();
    fprintf(log, "back\n");
    fclose(log);
    assert_string_equal(content("retired"), "rank 2\nback\n");
    log = fopen("appended", "a");
    fprintf(log, "rank 2\n");
    pl_files_retire();
    begin();
    log = fopen("appended", "a");
    fprintf(log, "rank 2\n");
    commit();
    fprintf(log, "back\n");
    fclose(log);
    assert_string_equal(content("appended"), "rank 2\nback\n");
}

static void many_resizes_leave_no_descriptor(void **state)
{
    (void)state;
    FILE *log = fopen("many", "w");
    int before = count_descriptors();
    for (int i = 0; i < 300; i++) {
        begin();
        FILE *new = fopen("many", "w");
        fprintf(new, "set-up\n");
        if (i % 3 == 0) {
            pl_files_rollback();
        } else {
            commit();
            log = new;
        }
        fputc('x', log);
    }
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(ftell(log), 300);
    fclose(log);
    assert_int_equal(strspn(content("many"), "x"), 300);
}

static int clean_up(void **state)
{
    char command[64];
    (void)state;
    if (chdir("/") != 0)
        return -1;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_log_goes_on),
        cmocka_unit_test(appended_log_goes_on),
        cmocka_unit_test(rollback_leaves_the_log),
        cmocka_unit_test(reader_goes_on_where_it_was),
        cmocka_unit_test(updated_file_is_not_read_from_the_scratch),
        cmocka_unit_test(descriptors_and_duplicates),
        cmocka_unit_test(foreign_file_is_refused_as_outside_of_a_trial),
        cmocka_unit_test(new_files_are_made_at_commit),
        cmocka_unit_test(files_of_the_loop_stay_and_closed_ones_close),
        cmocka_unit_test(trial_only_pretends_changes),
        cmocka_unit_test(output_of_trials_is_dropped),
        cmocka_unit_test(input_is_where_it_was),
        cmocka_unit_test(retired_process_closes_its_files),
        cmocka_unit_test(many_resizes_leave_no_descriptor),
    };
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    int input = open("input.txt", O_RDWR | O_CREAT, 0600);
    if (write(input, "11 22 33\n", 9) != 9 || lseek(input, 0, SEEK_SET) != 0)
        return 1;
    dup2(input, 0);
    close(input);
    pl_files_start();
    return cmocka_run_group_tests(tests, NULL, clean_up);
}
