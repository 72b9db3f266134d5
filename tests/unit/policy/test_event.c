/* SPDX-License-Identifier: MIT */
#include "folder.h"

#include <jansson.h>

#include "policy/event.h"

static pl_resize_event_t sample(void)
{
    static const char *const words[] = {"frame 1 + 24", "frame 2 + \"8\""};
    static const pl_event_buffer_t buffers[] = {
        {"solve+0x40 \"u\"", "block", "proven", 8000, true},
        {"solve+0x80", "replicated", "plausible", 16, false},
    };

    return (pl_resize_event_t){
        .id = "plan-50",
        .from = 2,
        .to = 4,
        .outcome = "committed",
        .method = "col",
        .site = "cg+0x1234",
        .arrival = 50,
        .line = 7,
        .seconds = {0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.021},
        .bytes_moved = 5000000000,
        .bytes_kept = 3,
        .private_words = 40,
        .private_list = words,
        .private_listed = 2,
        .buffers = buffers,
        .buffer_count = 2,
    };
}

/* Reads line number index of the event file; it must be whole. */
static json_t *read_event(int index)
{
    static char text[200000];
    char path[200];
    int fd;
    ssize_t size;
    char *line = text, *end;
    json_t *root;

    assert_int_equal(pl_event_path(control_path, PL_EVENT_SUFFIX, path, sizeof path), PL_OK);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    size = read(fd, text, sizeof text - 1);
    close(fd);
    assert_true(size > 0);
    text[size] = 0;
    for (; index > 0; index--)
        line = strchr(line, '\n') + 1;
    end = strchr(line, '\n');
    assert_non_null(end);
    root = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    return root;
}

static const char *text_of(const json_t *root, const char *key)
{
    const char *text = json_string_value(json_object_get(root, key));

    if (!text)
        fail_msg("no text '%s'", key);
    return text;
}

static json_int_t number_of(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);

    if (!json_is_integer(value))
        fail_msg("no integer '%s'", key);
    return json_integer_value(value);
}

static void check_time(const char *text)
{
    struct timespec now;
    struct tm time = {0};

    assert_int_equal(strlen(text), 24);
    assert_non_null(strptime(text, "%Y-%m-%dT%H:%M:%S", &time));
    clock_gettime(CLOCK_REALTIME, &now);
    assert_in_range(now.tv_sec - timegm(&time), 0, 10);
}

static void writes_every_field_of_a_resize(void **state)
{
    static const char *const phases[] = {"agree",        "acquire", "capture", "setup",
                                         "redistribute", "inject",  "total"};
    const double values[] = {0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.021};
    pl_resize_event_t event = sample();
    json_t *root, *buffer;

    (void)state;
    assert_int_equal(pl_event_append_resize(control_path, &event), PL_OK);
    root = read_event(0);
    assert_string_equal(text_of(root, "event"), "resize");
    assert_string_equal(text_of(root, "id"), "plan-50");
    assert_int_equal(number_of(root, "from"), 2);
    assert_int_equal(number_of(root, "to"), 4);
    assert_string_equal(text_of(root, "outcome"), "committed");
    assert_string_equal(text_of(root, "reason"), "");
    assert_string_equal(text_of(root, "method"), "col");
    assert_string_equal(text_of(root, "site"), "cg+0x1234");
    assert_int_equal(number_of(root, "arrival"), 50);
    assert_int_equal(number_of(root, "line"), 7);
    assert_int_equal(number_of(root, "bytes_moved"), 5000000000);
    assert_int_equal(number_of(root, "bytes_kept"), 3);
    assert_int_equal(number_of(root, "private_words"), 40);
    check_time(text_of(root, "time"));
    for (int i = 0; i < 7; i++)
        assert_true(json_number_value(
                        json_object_get(json_object_get(root, "seconds"), phases[i])) == values[i]);
    assert_int_equal(json_array_size(json_object_get(root, "private")), 2);
    assert_int_equal(json_array_size(json_object_get(root, "buffers")), 2);
    buffer = json_array_get(json_object_get(root, "buffers"), 0);
    assert_string_equal(text_of(buffer, "name"), "solve+0x40 \"u\"");
    assert_string_equal(text_of(buffer, "kind"), "block");
    assert_string_equal(text_of(buffer, "evidence"), "proven");
    assert_int_equal(number_of(buffer, "bytes"), 8000);
    assert_true(json_is_true(json_object_get(buffer, "moved")));
    assert_null(json_object_get(root, "buffers_omitted"));
    json_decref(root);
}

static void appends_lines(void **state)
{
    pl_resize_event_t event = {.id = "empty"}; /* every text is NULL */
    json_t *root;

    (void)state;
    assert_int_equal(pl_event_append_resize(control_path, &event), PL_OK);
    assert_int_equal(pl_event_append_bad_line(control_path, 3, "x", "bad\nline \x01"), PL_OK);
    root = read_event(0);
    assert_string_equal(text_of(root, "outcome"), "");
    assert_null(json_object_get(root, "line"));
    json_decref(root);
    root = read_event(1);
    assert_string_equal(text_of(root, "event"), "request");
    assert_string_equal(text_of(root, "outcome"), "refused");
    assert_string_equal(text_of(root, "id"), "x");
    assert_int_equal(number_of(root, "line"), 3);
    assert_string_equal(text_of(root, "reason"), "bad\nline \x01");
    check_time(text_of(root, "time"));
    json_decref(root);
}

static void a_long_list_is_cut_and_counted(void **state)
{
    enum { COUNT = 2000 };
    pl_event_buffer_t *buffers = calloc(COUNT, sizeof *buffers);
    pl_resize_event_t event = sample();
    json_int_t written;
    json_t *root;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        memset(buffers[i].name, 1, sizeof buffers[i].name - 1); /* six bytes each when escaped */
        buffers[i].kind = "block";
    }
    event.buffers = buffers;
    for (event.buffer_count = 55; event.buffer_count <= COUNT;
         event.buffer_count += event.buffer_count < 65 ? 1 : 645) {
        char path[200];

        assert_int_equal(pl_event_append_resize(control_path, &event), PL_OK);
        root = read_event(0);
        written = (json_int_t)json_array_size(json_object_get(root, "buffers"));
        assert_in_range(written, 30, 65);
        if (written < event.buffer_count)
            assert_int_equal(number_of(root, "buffers_omitted"), event.buffer_count - written);
        json_decref(root);
        assert_int_equal(pl_event_path(control_path, PL_EVENT_SUFFIX, path, sizeof path), PL_OK);
        unlink(path);
    }
    free(buffers);
}

static void will_not_write_through_what_is_no_file_of_ours(void **state)
{
    pl_resize_event_t event = sample();
    char path[200], victim[200];
    struct stat file;

    (void)state;
    assert_int_equal(pl_event_path(control_path, PL_EVENT_SUFFIX, path, sizeof path), PL_OK);
    snprintf(victim, sizeof victim, "%s/victim", folder);
    put_text(victim, O_TRUNC, "");
    assert_int_equal(symlink(victim, path), 0);
    assert_int_equal(pl_event_append_resize(control_path, &event), PL_ERR_REFUSED);
    assert_int_equal(stat(victim, &file), 0);
    assert_int_equal(file.st_size, 0);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pl_event_append_resize(control_path, &event), PL_ERR_REFUSED);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(pl_event_append_resize(control_path, &event), PL_ERR_REFUSED);
    assert_int_equal(pl_event_append_resize("/nowhere/control", &event), PL_ERR_IO);
}

static json_t *read_status(void)
{
    char path[200];
    json_t *root;
    struct stat file;

    assert_int_equal(pl_event_path(control_path, PL_STATUS_SUFFIX, path, sizeof path), PL_OK);
    root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    return root;
}

static void replaces_the_status(void **state)
{
    pl_status_info_t info = {.state = "running", .size = 2, .pool = 4, .pid = 42};
    char path[200];
    json_t *root;

    (void)state;
    /* Left by a job that was killed in the middle. */
    snprintf(path, sizeof path, "%s" PL_STATUS_SUFFIX ".tmp", control_path);
    put_text(path, O_TRUNC, "{");
    assert_int_equal(pl_status_write(control_path, &info), PL_OK);
    assert_int_equal(access(path, F_OK), -1);
    info.size = 4;
    info.resizes_committed = 3;
    info.resizes_refused = 2;
    info.resizes_rolled_back = 1;
    info.last_id = "a";
    info.last_outcome = "refused";
    info.last_reason = "already 4 processes";
    info.cap_reason = "no spawn";
    assert_int_equal(pl_status_write(control_path, &info), PL_OK);
    root = read_status();
    assert_string_equal(text_of(root, "state"), "running");
    assert_int_equal(number_of(root, "size"), 4);
    assert_int_equal(number_of(root, "pool"), 4);
    assert_int_equal(number_of(root, "pid"), 42);
    assert_int_equal(number_of(root, "resizes_committed"), 3);
    assert_int_equal(number_of(root, "resizes_refused"), 2);
    assert_int_equal(number_of(root, "resizes_rolled_back"), 1);
    assert_string_equal(text_of(root, "last_id"), "a");
    assert_string_equal(text_of(root, "last_outcome"), "refused");
    assert_string_equal(text_of(root, "last_reason"), "already 4 processes");
    assert_string_equal(text_of(root, "growth_capped"), "no spawn");
    check_time(text_of(root, "time"));
    json_decref(root);
    assert_int_equal(pl_status_write("/nowhere/control", &info), PL_ERR_IO);
}

static void paths_are_bounded(void **state)
{
    pl_resize_event_t event = sample();
    char path[20], longer[5000];

    (void)state;
    assert_int_equal(pl_event_path("/tmp/c", ".status.json", path, 18), PL_ERR_LIMIT);
    assert_int_equal(pl_event_path("/tmp/c", ".status.json", path, 19), PL_OK);
    assert_string_equal(path, "/tmp/c.status.json");
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(pl_event_append_resize(longer, &event), PL_ERR_LIMIT);
    assert_int_equal(pl_status_write(longer, &(pl_status_info_t){.state = ""}), PL_ERR_LIMIT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writes_every_field_of_a_resize),
        TEST(appends_lines),
        TEST(a_long_list_is_cut_and_counted),
        TEST(will_not_write_through_what_is_no_file_of_ours),
        TEST(replaces_the_status),
        TEST(paths_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
