/* What a stand-in library knows of its boards: lines "key value" in the file that JOULIE_STANDIN names.
 *
 * The last line with a key counts, so both the test and the library change the world by appending. The file is read at
 * every call: a test plays a board that is lost, or a driver that is loaded anew, while the library is in use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void state_text(const char *key, char *value, size_t size) {
    char line[512];
    size_t length = strlen(key);
    FILE *file = fopen(getenv("JOULIE_STANDIN"), "r");
    value[0] = '\0';
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            line[strcspn(line, "\n")] = '\0';
            snprintf(value, size, "%s", line + length + 1);
        }
    }
    if (file) fclose(file);
}

static long long state_number(const char *key, long long otherwise) {
    char value[256];
    state_text(key, value, sizeof value);
    return value[0] ? atoll(value) : otherwise;
}

static void state_append(const char *key, long long value) {
    FILE *file = fopen(getenv("JOULIE_STANDIN"), "a");
    fprintf(file, "%s %lld\n", key, value);
    fclose(file);
}

/* Keys of one board: "0.limit", "1.limit" and so on. */
static const char *board_key(int board, const char *name) {
    static _Thread_local char key[128];
    snprintf(key, sizeof key, "%d.%s", board, name);
    return key;
}

static long long board_number(int board, const char *name, long long otherwise) {
    return state_number(board_key(board, name), otherwise);
}

/* A call named in the state fails with that status: for all boards ("fails.limit 4") or for one ("0.fails.limit 4").
 * "hangs.limit 1" lets it hang until the line is taken back. */
static int state_status(int board, const char *call) {
    char key[128];
    snprintf(key, sizeof key, "hangs.%s", call);
    while (state_number(key, 0)) usleep(20000);
    snprintf(key, sizeof key, "fails.%s", call);
    long long status = state_number(key, 0);
    return (int)(board < 0 ? status : board_number(board, key, status));
}
