/* SPDX-License-Identifier: MIT */
#include "control_fixture.h"

#include <sys/wait.h>

static void reads_what_echo_writes(void **state)
{
    (void)state;
    expect_nothing(); /* no file */
    put_text(control_path, O_TRUNC, "");
    expect_nothing();
    put_text(control_path, O_TRUNC, "resize 4\n");
    expect_sizes(4, 0);
    assert_int_equal(requests[0].line, 1);
    assert_string_equal(requests[0].id, "request-1");
    expect_nothing();
    put_text(control_path, O_TRUNC, "resize 2\n");
    expect_sizes(2, 0);
    assert_string_equal(requests[0].id, "request-2");
}

static void reads_only_what_was_appended(void **state)
{
    (void)state;
    put_text(control_path, O_TRUNC, "# mine\n\nresize 4 id=a\n");
    expect_sizes(4, 0);
    assert_int_equal(requests[0].line, 3);
    put_text(control_path, O_APPEND, "resize 2\nresize 3\n");
    expect_sizes(2, 3);
    assert_int_equal(requests[0].line, 4);
    assert_int_equal(requests[1].line, 5);
    put_text(control_path, O_APPEND, "cancel\n");
    assert_int_equal(poll_once(), PL_OK);
    assert_int_equal(requests[0].kind, PL_REQUEST_CANCEL);
    assert_int_equal(requests[0].line, 6);
    put_text(control_path, O_APPEND, "# nothing\n");
    expect_nothing();
}

static void reads_a_file_replaced_by_rename(void **state)
{
    (void)state;
    replace("resize 4\n");
    expect_sizes(4, 0);
    replace("resize 4\n"); /* the same text again is the same wish again */
    expect_sizes(4, 0);
    expect_nothing();
    replace("resize 4\nresize 1\n"); /* what an editor does to append */
    expect_sizes(1, 0);
    replace("resize 2\nresize 1\n");
    expect_sizes(2, 1);
}

static void the_same_text_written_again_is_asked_again(void **state)
{
    (void)state;
    put_text(control_path, O_TRUNC, "resize 4\n");
    expect_sizes(4, 0);
    sleep_ms(20); /* another time stamp */
    put_text(control_path, O_TRUNC, "resize 4\n");
    expect_sizes_later(4, 0);
    sleep_ms(60);
    expect_nothing();
    expect_nothing();
}

/* An append of which only the time stamp can be seen yet must not repeat what was there. */
static void a_time_stamp_alone_repeats_nothing_at_once(void **state)
{
    struct timespec now[2];

    (void)state;
    put_text(control_path, O_TRUNC, "resize 4\n");
    expect_sizes(4, 0);
    clock_gettime(CLOCK_REALTIME, &now[0]);
    now[0].tv_sec -= 100;
    now[1] = now[0];
    assert_int_equal(utimensat(AT_FDCWD, control_path, now, 0), 0);
    expect_nothing();
    put_text(control_path, O_APPEND, "resize 3\n");
    sleep_ms(30);
    expect_sizes(3, 0);
    expect_nothing();
}

static void an_unfinished_line_is_taken_when_it_stays(void **state)
{
    (void)state;
    put_text(control_path, O_TRUNC, "resize 4");
    expect_sizes_later(4, 0);
    assert_int_equal(requests[0].line, 1);
    put_text(control_path, O_APPEND, "\nresize 2\n"); /* the newline alone is nothing new */
    expect_sizes(2, 0);
    assert_int_equal(requests[0].line, 2);
}

static void a_line_being_written_is_not_taken_half(void **state)
{
    (void)state;
    put_text(control_path, O_TRUNC, "resize 3\nresi");
    expect_sizes(3, 0);
    sleep_ms(30);
    put_text(control_path, O_APPEND, "ze 1");
    expect_nothing();
    put_text(control_path, O_APPEND, "2");
    expect_nothing();
    sleep_ms(30);
    put_text(control_path, O_APPEND, "0\n");
    expect_sizes(120, 0);
    assert_int_equal(requests[0].line, 2);
}

static void an_editor_that_empties_the_file_first_repeats_nothing(void **state)
{
    (void)state;
    put_text(control_path, O_TRUNC, "resize 4\n");
    expect_sizes(4, 0);
    put_text(control_path, O_TRUNC, "");
    expect_nothing();
    put_text(control_path, O_TRUNC, "resize 4\nresize 3\n");
    expect_sizes(3, 0);
}

/* Two writes within one tick of the clock leave the same size and the same time stamp. */
static void a_write_within_the_same_tick_is_seen(void **state)
{
    struct stat first;
    struct timespec times[2];

    (void)state;
    put_text(control_path, O_TRUNC, "resize 4\n");
    expect_sizes(4, 0);
    assert_int_equal(stat(control_path, &first), 0);
    put_text(control_path, O_TRUNC, "resize 2\n");
    times[0] = first.st_atim;
    times[1] = first.st_mtim;
    assert_int_equal(utimensat(AT_FDCWD, control_path, times, 0), 0);
    assert_int_equal(stat(control_path, &control.seen), 0); /* as if nothing had changed */
    expect_sizes(2, 0);
}

static void hands_over_in_parts(void **state)
{
    char text[1000] = "";

    (void)state;
    for (int i = 1; i <= 20; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "resize %d\n", i);
    put_text(control_path, O_TRUNC, text);
    sleep_ms(60); /* it does not look again because the file is fresh */
    for (int from = 1; from <= 20; from += MAX) {
        assert_int_equal(poll_once(), PL_OK);
        assert_int_equal(count, from + MAX <= 21 ? MAX : 21 - from);
        for (int i = 0; i < count; i++) {
            assert_int_equal(requests[i].size, from + i);
            assert_int_equal(requests[i].line, from + i);
        }
    }
    expect_nothing();
}

static void older_content_is_stale(void **state)
{
    struct timespec start;

    (void)state;
    put_text(control_path, O_TRUNC, "resize 4\n");
    clock_gettime(CLOCK_REALTIME, &start);
    start.tv_sec += 1;
    assert_int_equal(pl_control_open(control_path, &start, &control), PL_OK);
    assert_int_equal(poll_once(), PL_OK);
    assert_int_equal(count, 0);
    assert_int_equal(reports, 1);
    assert_int_equal(last.level, PL_LOG_INFO);
    assert_contains(last_text, "before the program started is ignored");
    expect_nothing();
    put_text(control_path, O_APPEND, "resize 3\n");
    expect_sizes(3, 0);

    put_text(control_path, O_TRUNC, "# only a comment\n"); /* nothing to tell */
    assert_int_equal(pl_control_open(control_path, &start, &control), PL_OK);
    expect_nothing();
    /* A file put there later is meant for this program, however old. */
    assert_int_equal(unlink(control_path), 0);
    assert_int_equal(pl_control_open(control_path, &start, &control), PL_OK);
    expect_nothing();
    put_text(control_path, O_TRUNC, "resize 2\n");
    expect_sizes(2, 0);
}

static void a_vanished_file_is_no_matter(void **state)
{
    (void)state;
    put_text(control_path, O_TRUNC, "resize 4\n");
    expect_sizes(4, 0);
    unlink(control_path);
    expect_nothing();
    put_text(control_path, O_TRUNC, "resize 4\n"); /* made again: asked again */
    expect_sizes(4, 0);
    assert_int_equal(remove_folder(state), 0); /* even the folder */
    expect_nothing();
}

static void the_path_stays_when_the_program_changes_its_directory(void **state)
{
    struct timespec start = {.tv_sec = 1};

    (void)state;
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(pl_control_open("control", &start, &control), PL_OK);
    assert_string_equal(control.path, control_path);
    assert_int_equal(chdir("/"), 0);
    put_text(control_path, O_TRUNC, "resize 4\n");
    expect_sizes(4, 0);
    assert_int_equal(pl_control_open("", &start, &control), PL_ERR_INVALID);
}

static void too_long_a_path_is_an_error(void **state)
{
    struct timespec start = {.tv_sec = 1};
    char path[PL_CONTROL_PATH_MAX + 1];

    (void)state;
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    assert_int_equal(pl_control_open(path, &start, &control), PL_ERR_INVALID);
    path[0] = '/';
    assert_int_equal(pl_control_open(path, &start, &control), PL_ERR_INVALID);
    path[PL_CONTROL_PATH_MAX - 1] = 0;
    assert_int_equal(pl_control_open(path, &start, &control), PL_OK);
    assert_int_equal(poll_once(), PL_OK); /* name too long */
    assert_contains(last_text, "cannot be read");
    expect_nothing();
}

static void leaves_no_descriptors(void **state)
{
    int before = dup(0), after;

    (void)state;
    close(before);
    for (int i = 0; i < 50; i++) {
        put_text(control_path, O_TRUNC, i % 2 ? "resize 4\n" : "\x01");
        poll_once();
    }
    after = dup(0);
    close(after);
    assert_int_equal(after, before);
}

/* Polls while another process writes; returns when it has ended and nothing more comes. */
static int poll_while_written(void (*write_all)(void), int *sizes, int max)
{
    pid_t child = fork();
    int seen = 0;
    int64_t quiet = 0;

    assert_true(child >= 0);
    if (child == 0) {
        write_all();
        _exit(0);
    }
    while (quiet < 200) {
        if (poll_once() == PL_OK) {
            assert_int_equal(reports, 0);
            for (int i = 0; i < count && seen < max; i++)
                sizes[seen++] = requests[i].size;
            quiet = 0;
        } else if (child == 0 || waitpid(child, NULL, WNOHANG) == child) {
            child = 0;
            quiet++;
            sleep_ms(1);
        }
    }
    return seen;
}

enum { LINES = 500 };

static void append_many(void)
{
    for (int i = 1; i <= LINES; i++) {
        char line[40];

        snprintf(line, sizeof line, "resize %d\n", i);
        put_text(control_path, O_APPEND, line);
    }
}

static void no_line_is_lost_or_repeated_while_lines_are_appended(void **state)
{
    static int sizes[2 * LINES];
    int seen = poll_while_written(append_many, sizes, 2 * LINES);

    (void)state;
    for (int i = 0; i < seen; i++)
        assert_int_equal(sizes[i], i + 1);
    assert_int_equal(seen, LINES);
}

static void overwrite_many(void)
{
    for (int i = 1; i <= LINES; i++)
        put_text(control_path, O_TRUNC, i % 2 ? "resize 11\n" : "resize 22\n");
}

static void the_last_of_many_writings_is_seen(void **state)
{
    static int sizes[2 * LINES];
    int seen = poll_while_written(overwrite_many, sizes, 2 * LINES);

    (void)state;
    assert_in_range(seen, 1, LINES);
    assert_int_equal(sizes[seen - 1], LINES % 2 ? 11 : 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reads_what_echo_writes),
        TEST(reads_only_what_was_appended),
        TEST(reads_a_file_replaced_by_rename),
        TEST(the_same_text_written_again_is_asked_again),
        TEST(a_time_stamp_alone_repeats_nothing_at_once),
        TEST(an_unfinished_line_is_taken_when_it_stays),
        TEST(a_line_being_written_is_not_taken_half),
        TEST(an_editor_that_empties_the_file_first_repeats_nothing),
        TEST(a_write_within_the_same_tick_is_seen),
        TEST(hands_over_in_parts),
        TEST(older_content_is_stale),
        TEST(a_vanished_file_is_no_matter),
        TEST(the_path_stays_when_the_program_changes_its_directory),
        TEST(too_long_a_path_is_an_error),
        TEST(leaves_no_descriptors),
        TEST(no_line_is_lost_or_repeated_while_lines_are_appended),
        TEST(the_last_of_many_writings_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
