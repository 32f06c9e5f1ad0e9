// Plants of stdio: the buffer is empty, or has something to be written.
#define _GNU_SOURCE
#include <string.h>

#include "planting.h"

static FILE *stream;
static char *line;
static size_t line_size;
static char bytes[1 << 16];

static void close_stream(void) {
    if (stream) fclose(stream);
    stream = NULL;
}

static void open_to_read(void) {
    close_stream();
    NEED(stream = fopen(plants_path("file"), "re"));
}

static void open_to_write(void) {
    close_stream();
    NEED(stream = fopen(plants_path("stream"), "we"));
}

static void write_some(void) {
    open_to_write();
    NEED(fputs("text", stream) >= 0);
}

PLANT(fread) { NEED(fread(bytes, 1, 100, stream) == 100); }
PLANT(fgets) { NEED(fgets(bytes, sizeof bytes, stream)); }
PLANT(fgetc) { NEED(fgetc(stream) != EOF); }
PLANT(getline) { NEED(getline(&line, &line_size, stream) > 0); }
PLANT(getdelim) { NEED(getdelim(&line, &line_size, '\n', stream) > 0); }
PLANT(fwrite) { NEED(fwrite(bytes, 1, sizeof bytes, stream) == sizeof bytes); }
PLANT(fflush) { NEED(fflush(stream) == 0); }
PLANT(fclose) {
    NEED(fclose(stream) == 0);
    stream = NULL;
}
PLANT(fopen_to_write) { NEED(stream = fopen(plants_path("stream"), "we")); }

static const plant plants[] = {
    {"fread", STALL_BLOCKING_DISK, open_to_read, plant_fread},
    {"fgets", STALL_BLOCKING_DISK, open_to_read, plant_fgets},
    {"fgetc", STALL_BLOCKING_DISK, open_to_read, plant_fgetc},
    {"getline", STALL_BLOCKING_DISK, open_to_read, plant_getline},
    {"getdelim", STALL_BLOCKING_DISK, open_to_read, plant_getdelim},
    {"fwrite", STALL_BLOCKING_DISK, open_to_write, plant_fwrite},
    {"fflush", STALL_BLOCKING_DISK, write_some, plant_fflush},
    {"fclose", STALL_BLOCKING_DISK, write_some, plant_fclose},
    {"fopen_to_write", STALL_BLOCKING_DISK, close_stream, plant_fopen_to_write},
};
const plant_family stream_family = {plants, COUNT_OF(plants)};
