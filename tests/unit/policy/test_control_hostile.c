/* SPDX-License-Identifier: MIT */
#include "control_fixture.h"

static void bad_lines_are_reported_and_the_rest_is_read(void **state)
{
    static const struct {
        const char *line, *part;
    } cases[] = {
        {"resize 0", "from 1 to 1000000"},
        {"resize -1", "from 1 to 1000000"},
        {"resize abc", "not a number"},
        {"resize 99999999999", "from 1 to 1000000"},
        {"shrink 2", "unknown word"},
        {"resize 2 method=warp", "unknown method"},
        {"resize 2 id=a id=b", "id= is given twice"},
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "resize 3\n%s\nresize 4\n", cases[i].line);
        replace(text);
        assert_int_equal(poll_once(), PL_OK);
        assert_int_equal(count, 2);
        assert_int_equal(requests[1].size, 4);
        assert_int_equal(reports, 1);
        assert_int_equal(last.level, PL_LOG_WARN);
        assert_int_equal(last.line, 2);
        assert_contains(last_text, cases[i].part);
        expect_nothing();
    }
    put_text(control_path, O_TRUNC, "resize 0 id=mine\n");
    assert_int_equal(poll_once(), PL_OK);
    assert_string_equal(last_id, "mine");
}

static void a_long_line_is_reported(void **state)
{
    char text[400];

    (void)state;
    memset(text, 'x', sizeof text);
    text[299] = '\n';
    memcpy(text + 300, "resize 4\n", 9);
    put_bytes(control_path, O_TRUNC, text, 309);
    assert_int_equal(poll_once(), PL_OK);
    assert_int_equal(reports, 1);
    assert_int_equal(last.line, 1);
    assert_contains(last_text, "299 bytes, at most 256");
    assert_int_equal(count, 1);
    assert_int_equal(requests[0].size, 4);
}

static void binary_data_is_refused(void **state)
{
    char bytes[256];

    (void)state;
    put_bytes(control_path, O_TRUNC, "resize 4\n\0\n", 11);
    expect_refusal("binary data");
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    put_bytes(control_path, O_TRUNC, bytes, sizeof bytes);
    expect_refusal("binary data");
    put_text(control_path, O_TRUNC, "# höchstens\nresize 4\n"); /* UTF-8 is text */
    expect_sizes(4, 0);
}

static void a_large_file_is_refused_once(void **state)
{
    char *text = malloc(PL_CONTROL_BYTES_MAX + 1);
    int fd;

    (void)state;
    memset(text, '\n', PL_CONTROL_BYTES_MAX + 1);
    put_bytes(control_path, O_TRUNC, text, PL_CONTROL_BYTES_MAX);
    expect_nothing();
    put_text(control_path, O_APPEND, "resize 4\n");
    expect_refusal("larger than 64 KiB");
    put_text(control_path, O_APPEND, "resize 4\n"); /* still growing: said already */
    expect_nothing();
    fd = open(control_path, O_WRONLY);
    assert_int_equal(ftruncate(fd, 10 << 20), 0);
    close(fd);
    expect_nothing();
    put_text(control_path, O_TRUNC, "resize 3\n");
    expect_sizes(3, 0);
    free(text);
}

static void what_is_no_file_is_refused(void **state)
{
    char other[140];

    (void)state;
    assert_int_equal(mkdir(control_path, 0700), 0);
    expect_refusal("a directory, not a regular file");
    snprintf(other, sizeof other, "%s/inside", control_path);
    put_text(other, O_TRUNC, "");
    expect_nothing(); /* a directory in use has a new time stamp all the time */
    unlink(other);
    assert_int_equal(rmdir(control_path), 0);
    expect_nothing();
    assert_int_equal(mkfifo(control_path, 0600), 0);
    expect_refusal("a device, pipe or socket"); /* and does not block */
    unlink(control_path);
    put_text(control_path, O_TRUNC, "resize 4\n");
    expect_sizes(4, 0);
}

static void symbolic_links_are_refused(void **state)
{
    char target[140];

    (void)state;
    snprintf(target, sizeof target, "%s/target", folder);
    put_text(target, O_TRUNC, "resize 4\n");
    assert_int_equal(symlink(target, control_path), 0);
    expect_refusal("a symbolic link");
    unlink(control_path);
    assert_int_equal(symlink("/nowhere", control_path), 0);
    expect_refusal("a symbolic link");
    unlink(control_path);
    assert_int_equal(symlink("/dev/zero", control_path), 0);
    expect_refusal("a symbolic link");
}

static void others_may_not_write(void **state)
{
    static const mode_t modes[] = {0620, 0602, 0666};

    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        put_text(control_path, O_TRUNC, "resize 4\n");
        assert_int_equal(chmod(control_path, modes[i]), 0);
        expect_refusal("others may write to it (mode 06");
        assert_int_equal(chmod(control_path, 0644), 0);
        assert_int_equal(poll_once(), PL_OK); /* as soon as it is put right */
        assert_int_equal(count, 1);
        unlink(control_path);
        expect_nothing();
    }
}

static void another_owner_is_refused(void **state)
{
    (void)state;
    put_text(control_path, O_TRUNC, "resize 4\n");
    if (geteuid() == 0)
        assert_int_equal(chown(control_path, 12345, 0), 0);
    else
        control.owner = geteuid() + 1;
    expect_refusal("belongs to user");
    control.owner = geteuid();
    assert_int_equal(chown(control_path, geteuid(), (gid_t)-1), 0);
    assert_int_equal(chmod(control_path, 0600), 0);
    control.known = false;
    expect_sizes(4, 0);
}

static void root_may_own_it(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    put_text(control_path, O_TRUNC, "resize 4\n");
    control.owner = 12345;
    expect_sizes(4, 0);
}

static void an_unreadable_file_is_refused(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip();
    put_text(control_path, O_TRUNC, "resize 4\n");
    assert_int_equal(chmod(control_path, 0), 0);
    expect_refusal("cannot be read: Permission denied");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bad_lines_are_reported_and_the_rest_is_read),
        TEST(a_long_line_is_reported),
        TEST(binary_data_is_refused),
        TEST(a_large_file_is_refused_once),
        TEST(what_is_no_file_is_refused),
        TEST(symbolic_links_are_refused),
        TEST(others_may_not_write),
        TEST(another_owner_is_refused),
        TEST(root_may_own_it),
        TEST(an_unreadable_file_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
