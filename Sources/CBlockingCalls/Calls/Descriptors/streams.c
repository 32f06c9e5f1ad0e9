// stdio: a call may block only if it needs a system call, that is, if the buffer is empty, or full.
//
// printf and scanf are not interposed: the length of their data is not known before the call.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#ifndef __NO_INLINE__
#define __NO_INLINE__  // <bits/stdio.h> would define getline inline
#endif
#include <features.h>
#ifdef __GLIBC__
#include <stdio.h>

#include "../interpose.h"

extern size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
extern char *__fgets_chk(char *, size_t, int, FILE *);
extern ssize_t __getdelim(char **, size_t *, int, FILE *);

INTERPOSE(fread)
INTERPOSE(fgets)
INTERPOSE(fgetc)
INTERPOSE(getc)
INTERPOSE(getline)
INTERPOSE(getdelim)
INTERPOSE(__fread_chk)
INTERPOSE(__fgets_chk)
INTERPOSE(__getdelim)
INTERPOSE(fwrite)
INTERPOSE(fputs)
INTERPOSE(puts)
INTERPOSE(fputc)
INTERPOSE(putc)
INTERPOSE(fflush)
INTERPOSE(fclose)

// libio.h: these values are part of glibc's ABI, as are the fields of FILE.
enum { IS_UNBUFFERED = 0x2, IS_AT_END = 0x10, IS_LINE_BUFFERED = 0x200, IS_WIDE = 1, DEFAULT_SIZE = 4096 };

// Another thread may hold the stream, and change its pointers: then the call waits for that thread.
static bool is_known(FILE *stream) { return stream->_mode < IS_WIDE && ftrylockfile(stream) == 0; }

// Whether fewer than `count` bytes are buffered, and `end` (a character, or -1) is not among them.
static stall_blocking_kind kind_of_reading(FILE *stream, size_t count, int end) {
    if (count == 0) return 0;
    if (is_known(stream)) {
        const char *at = stream->_IO_read_ptr;
        const size_t buffered = at < stream->_IO_read_end ? (size_t)(stream->_IO_read_end - at) : 0;
        const bool is_buffered = count <= buffered || (buffered == 0 && stream->_flags & IS_AT_END)
            || (end >= 0 && buffered > 0 && memchr(at, end, buffered));
        funlockfile(stream);
        if (is_buffered) return 0;
    }
    return blocking_kind_of_descriptor(stream->_fileno, false);
}

// Whether writing the bytes empties the buffer: they do not fit, and it holds others or is smaller than they are.
static stall_blocking_kind kind_of_writing(FILE *stream, const char *bytes, size_t count, bool adds_newline) {
    if (count == 0) return 0;
    if (is_known(stream)) {
        const size_t size = stream->_IO_buf_base ? (size_t)(stream->_IO_buf_end - stream->_IO_buf_base) : DEFAULT_SIZE;
        const size_t pending = (size_t)(stream->_IO_write_ptr - stream->_IO_write_base);
        const bool is_by_line = stream->_flags & IS_LINE_BUFFERED;
        const char *end = is_by_line ? stream->_IO_buf_end : stream->_IO_write_end;
        const size_t room = stream->_IO_write_ptr < end ? (size_t)(end - stream->_IO_write_ptr) : 0;
        bool fits = count <= room || (pending == 0 && count < size);
        if (is_by_line && (adds_newline || memchr(bytes, '\n', count))) fits = false;
        if (stream->_flags & IS_UNBUFFERED) fits = false;
        funlockfile(stream);
        if (fits) return 0;
    }
    return blocking_kind_of_descriptor(stream->_fileno, true);
}

static stall_blocking_kind kind_of_flushing(FILE *stream) {
    if (is_known(stream)) {
        const bool is_pending = stream->_IO_write_ptr > stream->_IO_write_base;
        funlockfile(stream);
        if (!is_pending) return 0;
    }
    return blocking_kind_of_descriptor(stream->_fileno, true);
}

// MARK: Reading

#define COUNT(size, number) (SIZE_MAX / ((size) ? (size) : 1) < (number) ? SIZE_MAX : (size) * (number))
#define LINE_COUNT(count) ((count) > 1 ? (size_t)(count) - 1 : 0)

size_t fread(void *buffer, size_t size, size_t number, FILE *stream) {
    RETURN_CALL(fread, kind_of_reading(stream, COUNT(size, number), -1), (buffer, size, number, stream));
}

char *fgets(char *buffer, int count, FILE *stream) {
    RETURN_CALL(fgets, kind_of_reading(stream, LINE_COUNT(count), '\n'), (buffer, count, stream));
}

int fgetc(FILE *stream) { RETURN_CALL(fgetc, kind_of_reading(stream, 1, -1), (stream)); }

#undef getc
int getc(FILE *stream) { RETURN_CALL(getc, kind_of_reading(stream, 1, -1), (stream)); }

ssize_t getline(char **line, size_t *size, FILE *stream) {
    RETURN_CALL(getline, kind_of_reading(stream, SIZE_MAX, '\n'), (line, size, stream));
}

ssize_t getdelim(char **line, size_t *size, int end, FILE *stream) {
    RETURN_CALL(getdelim, kind_of_reading(stream, SIZE_MAX, (unsigned char)end), (line, size, end, stream));
}

// The inline getline of <bits/stdio.h> calls this.
ssize_t __getdelim(char **line, size_t *size, int end, FILE *stream) {
    RETURN_CALL_AS(
        "getdelim", __getdelim, kind_of_reading(stream, SIZE_MAX, (unsigned char)end), (line, size, end, stream));
}

// Programs that are compiled with _FORTIFY_SOURCE call these where the size of their buffer is known.
size_t __fread_chk(void *buffer, size_t limit, size_t size, size_t number, FILE *stream) {
    RETURN_CALL_AS(
        "fread", __fread_chk, kind_of_reading(stream, COUNT(size, number), -1), (buffer, limit, size, number, stream));
}

char *__fgets_chk(char *buffer, size_t limit, int count, FILE *stream) {
    RETURN_CALL_AS(
        "fgets", __fgets_chk, kind_of_reading(stream, LINE_COUNT(count), '\n'), (buffer, limit, count, stream));
}

// MARK: Writing

size_t fwrite(const void *bytes, size_t size, size_t number, FILE *stream) {
    RETURN_CALL(fwrite, kind_of_writing(stream, bytes, COUNT(size, number), false), (bytes, size, number, stream));
}

int fputs(const char *text, FILE *stream) {
    RETURN_CALL(fputs, kind_of_writing(stream, text, strlen(text), false), (text, stream));
}

int puts(const char *text) { RETURN_CALL(puts, kind_of_writing(stdout, text, strlen(text) + 1, true), (text)); }

int fputc(int character, FILE *stream) {
    const char byte = (char)character;
    RETURN_CALL(fputc, kind_of_writing(stream, &byte, 1, false), (character, stream));
}

#undef putc
int putc(int character, FILE *stream) {
    const char byte = (char)character;
    RETURN_CALL(putc, kind_of_writing(stream, &byte, 1, false), (character, stream));
}

// A flush of all streams is judged by the standard output.
int fflush(FILE *stream) { RETURN_CALL(fflush, kind_of_flushing(stream ? stream : stdout), (stream)); }

int fclose(FILE *stream) { RETURN_CALL(fclose, kind_of_flushing(stream), (stream)); }
#endif
