#define _GNU_SOURCE
#include "preload_environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char *const libraries[] = {"libstallwatch-preload.so", "libstallwatch-blocking.so", "libstallwatch-dispatch.so"};

static const char *value_of(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool is_set(const char *name) {
    const char *value = value_of(name);
    return value && strcmp(value, "0") != 0;
}

static const char *copy_of(const char *name) {
    const char *value = value_of(name);
    return value ? strdup(value) : NULL;
}

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_library(const char *path, size_t length) {
    const char *slash = memrchr(path, '/', length), *name = slash ? slash + 1 : path;
    const size_t rest = length - (size_t)(name - path);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        if (rest == strlen(libraries[i]) && memcmp(name, libraries[i], rest) == 0) return true;
    }
    return false;
}

// LD_PRELOAD without these objects; the others stay, in their order. The linker accepts spaces and colons between them.
static void leave_preload(void) {
    const char *all = getenv("LD_PRELOAD");
    if (!all) return;
    char *rest = malloc(strlen(all) + 1), *end = rest;
    if (!rest) return;
    while (*all) {
        const char *entry = all;
        const size_t length = strcspn(entry, " :");
        all += length + (entry[length] != 0);
        if (length == 0 || is_library(entry, length)) continue;
        if (end > rest) *end++ = ':';
        end = mempcpy(end, entry, length);
    }
    *end = 0;
    if (end == rest) unsetenv("LD_PRELOAD"); else setenv("LD_PRELOAD", rest, 1);
    free(rest);
}

// STALLWATCH_RUN lists the variables that `stallctl run` added; those of the user's own stay.
static void remove_variables(void) {
    char *list = (char *)copy_of("STALLWATCH_RUN"), *rest = list;
    for (char *name; list && (name = strsep(&rest, " "));) {
        if (strncmp(name, "STALLWATCH_", 11) == 0) unsetenv(name);
    }
    free(list);
    unsetenv("STALLWATCH_RUN");
    unsetenv("STALLWATCH_RUN_PID");
    leave_preload();
}

// `env` in the first line of a script, nice, nohup: they only execute the program that is meant, in the same process.
static bool passes_on(void) {
    const char *count = value_of("STALLWATCH_RUN_EXECS");
    if (!count) return false;
    const int left = atoi(count);
    if (left <= 0) return false;
    char text[16];
    snprintf(text, sizeof text, "%d", left - 1);
    setenv("STALLWATCH_RUN_EXECS", text, 1);
    return true;
}

static bool is_shell(void) {
    static const char *const names[] = {"sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "busybox", "fish", "env"};
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return false;
    path[length] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(file_name(path), names[i]) == 0) return true;
    }
    return false;
}

// A shell may execute the program that is meant in its own process, as version managers do for python3 or node, by scripts that
// env starts. Its children are not meant. STALLWATCH_RUN_PID is the shell's.
typedef enum { IS_PROGRAM, IS_SHELL, IS_CHILD_OF_SHELL } place_in_run;

static place_in_run find_place(void) {
    const char *shell = value_of("STALLWATCH_RUN_PID");
    if (shell && atol(shell) != getpid()) return IS_CHILD_OF_SHELL;
    if (!is_shell()) return IS_PROGRAM;
    char text[16];
    snprintf(text, sizeof text, "%d", getpid());
    return setenv("STALLWATCH_RUN_PID", text, 1) == 0 ? IS_SHELL : IS_PROGRAM;
}

static const char *program_name(void) {
    const char *path = (const char *)getauxval(AT_EXECFN);
    const bool is_number = !path || strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/", 6) == 0;
    const char *name = is_number ? program_invocation_short_name : file_name(path);
    return name && *name ? name : "program";
}

// The agent may start after the program has changed its directory.
static const char *store_path(void) {
    const char *path = value_of("STALLWATCH_STORE"), *state = value_of("STATE_DIRECTORY");
    char *joined = NULL;
    if (path && *path == '/') return strdup(path);
    if (!path && state && *state == '/') {
        return asprintf(&joined, "%.*s/stalls.sqlite", (int)strcspn(state, ":"), state) < 0 ? NULL : joined;
    }
    char *here = getcwd(NULL, 0);
    if (!here) return NULL;
    if (asprintf(&joined, "%s/%s", here, path ? path : "stalls.sqlite") < 0) joined = NULL;
    free(here);
    return joined;
}

preload_environment preload_read_environment(void) {
    preload_environment read = {.follows_children = is_set("STALLWATCH_FOLLOW_CHILDREN")};
    if (passes_on()) return read;
    const place_in_run place = read.follows_children ? IS_PROGRAM : find_place();
    if (place == IS_CHILD_OF_SHELL) remove_variables();
    if (place != IS_PROGRAM) return read;
    const char *app = copy_of("STALLWATCH_APP"), *threshold = value_of("STALLWATCH_THRESHOLD_MS"),
               *threads = value_of("STALLWATCH_THREADS");
    const long milliseconds = threshold ? strtol(threshold, NULL, 10) : 0;
    read.settings = (stall_preload_settings){
        .app = app ? app : program_name(),
        .version = copy_of("STALLWATCH_APP_VERSION"),
        .store = store_path(),
        .settings = copy_of("STALLWATCH_SETTINGS"),
        .threshold_ms = milliseconds >= 20 && milliseconds <= 86400000 ? (uint32_t)milliseconds : 0,
        .allowed = copy_of("STALLWATCH_ALLOW_BLOCKING"),
        .records_all_threads = threads && strcmp(threads, "all") == 0,
        .logs = is_set("STALLWATCH_LOG"),
    };
    read.forbids_blocking = is_set("STALLWATCH_FORBID_BLOCKING");
    read.is_wanted = read.settings.store && !is_set("STALLWATCH_DISABLED");
    if (!read.follows_children) remove_variables();
    return read;
}
