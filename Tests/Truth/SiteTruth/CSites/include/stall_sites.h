// What the sites need of C: calls that Swift cannot make well, and sites that are written in C and C++ themselves.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*_Nonnull site_body)(void);

// The CPU time of the thread that works, in nanoseconds, as another thread read it a moment ago. A thread under a quota
// that reads its own clock in a loop is stopped in that call, where the kernel notices that the quota is used up: every
// sample would show the loop and none the work.
extern volatile int64_t site_worked;
extern void *volatile _Nullable site_worker;
/// The calling thread begins, or ends, to work: its CPU time so far.
int64_t site_work_begin(void);
int64_t site_work_end(void);
int64_t site_own_cpu(void);
__attribute__((always_inline)) static inline int64_t site_cpu(void) {
    return __builtin_thread_pointer() == site_worker ? site_worked : site_own_cpu();
}

// Helpers.
int site_timer_in(uint32_t microseconds);
void site_timer_set(int timer, uint32_t microseconds);
int site_select(int file);
int site_epoll_of(int file);
int site_epoll_wait(int set);
int site_splice(int from, int to);
int site_eventfd(void);
void site_eventfd_give(int file);
pid_t site_thread(void);
int site_message_queue(void);
int site_message_receive(int queue);
void site_message_send(int queue);
void site_message_remove(int queue);
int site_semaphore_set(void);
int site_semaphore_take(int set);
void site_semaphore_give(int set);
void site_semaphore_remove(int set);
void site_tcp_pair(int *_Nonnull ends);
int site_unix_listener(const char *_Nonnull path);
int site_unix_connect(const char *_Nonnull path);
int site_tcp_listener(uint16_t *_Nonnull port, int backlog);
int site_full_listener(uint16_t *_Nonnull port);
void site_make_room(int listener);
int site_connect(uint16_t port);
int site_udp_socket(uint16_t *_Nonnull port);
void site_udp_send(uint16_t port);
bool site_silent_nameserver(void);
int site_getaddrinfo(const char *_Nonnull name);
int site_gethostbyname(const char *_Nonnull name);
int site_system(const char *_Nonnull command);
pid_t site_spawn_sleep(const char *_Nonnull seconds);

/// A child that holds a write lock on a range of the file; NULL if it could not be locked.
typedef struct site_child site_child;
site_child *_Nullable site_child_locking(const char *_Nonnull path, long start, long length);
void site_child_end(site_child *_Nonnull child);

// Waits that look like file I/O: waits.c.
bool site_terminal(int *_Nonnull ends);  ///< the master and the slave, raw
int site_inotify(const char *_Nonnull folder);
int site_fanotify(const char *_Nonnull path, bool asks);  ///< -1 without the right; asks: an open waits for the answer
void site_fanotify_answer(int file);
int site_signalfd(int number);  ///< the signal is blocked in the caller
void site_signal_thread(pid_t thread, int number);
int site_pidfd(pid_t process);
int site_epoll_empty(void);
int site_epoll_for(int set, int milliseconds);
void site_linger(int file);  ///< a close of the socket will wait until its peer has read everything
int site_replace(int from, int to);
typedef struct site_ring site_ring;
site_ring *_Nullable site_ring_new(void);
int site_ring_wait(site_ring *_Nonnull ring, int operation, int file);
void site_ring_free(site_ring *_Nonnull ring);

// Sites.
void c_read_once(site_body body);
void c_read_pthread_once(site_body body);
void c_nap(unsigned microseconds);
int dispatch_order(unsigned microseconds);
int swift_parse_mt103(unsigned microseconds);
int uuid_generate_batch(unsigned microseconds);
int CFGLoadSettings(unsigned microseconds);
int voucher_print(unsigned microseconds);
int objc_export(unsigned microseconds);
int icu_admit(unsigned microseconds);
int c_call_sync(unsigned microseconds);
int c_call_transmit(unsigned microseconds);
int c_sort(int64_t end);
int c_call_pointer(int64_t end);
int c_variadic(int count, ...);
int c_recurse(int depth, unsigned microseconds);
int c_mutex(void *_Nonnull mutex);
void *_Nonnull c_new_mutex(void);
void c_mutex_unlock(void *_Nonnull mutex);
int c_switch(int64_t end);
int c_longjmp(int64_t end);
int c_strings(int64_t end);
int c_nap_in_macro(unsigned microseconds);

void cxx_static_local(site_body body);
void cxx_call_once(site_body body);
int cxx_exceptions(int64_t end);
int cxx_catch(unsigned microseconds);
int cxx_template(int64_t end);
int cxx_lambda(int64_t end);
int cxx_virtual(int64_t end);
int cxx_functor(int64_t end);
int cxx_sort(int64_t end);
int cxx_regex(int64_t end);
int cxx_map(int64_t end);
int cxx_stream(int64_t end);
int cxx_destructor(unsigned microseconds);
int cxx_sleep(unsigned microseconds);
int cxx_send(unsigned microseconds);
int cxx_swift_namespace(unsigned microseconds);
int cxx_function(int64_t end);
void *_Nonnull cxx_new_locks(void);
void cxx_hold_mutex(void *_Nonnull locks, site_body body);
void cxx_hold_recursive(void *_Nonnull locks, site_body body);
void cxx_hold_shared(void *_Nonnull locks, site_body body);
void cxx_notify(void *_Nonnull locks);
void cxx_promise(void *_Nonnull locks);
int cxx_take_mutex(void *_Nonnull locks);
int cxx_take_recursive(void *_Nonnull locks);
int cxx_take_shared(void *_Nonnull locks);
int cxx_await_condition(void *_Nonnull locks);
int cxx_await_future(void *_Nonnull locks);
int cxx_directory(const char *_Nonnull path, int64_t end);

// Sites that wait in calls that look like file I/O, and others of the second reading.
int read_master(int file);
int read_terminal(int file);
int read_notifications(int file);
int read_marked_files(int file);
int read_signals(int file);
int read_log(int file);
int read_timer(int file);
int read_fifo_of_others(int file);
int poll_master(int file);
int poll_fifo(int file);
int poll_notifications(int file);
int poll_signals(int file);
int poll_process(int file);
int poll_queue(int file);
int poll_timer(int file);
int epoll_process(int file);
int epoll_notifications(int file);
int epoll_signals(int file);
int open_to_write(const char *_Nonnull path);
int open_link(const char *_Nonnull path);
int open_leased(const char *_Nonnull path);
int open_read_leased(const char *_Nonnull path);
int open_permitted(const char *_Nonnull path);
int epoll_nothing(int set);
int truncate_leased(const char *_Nonnull path);
int write_terminal(int file);
int readv_terminal(int file);
int open_stream(const char *_Nonnull path);
int lock_description(int file);
int lock_description_to_read(int file);
bool site_lock_description(int file);
int lock_region(int file);
int lock_folder(int file);
int lock_shared(int file);
int close_lingering(int file);
int replace_lingering(int from, int to);
int ring_read(site_ring *_Nonnull ring, int file);
int ring_receive(site_ring *_Nonnull ring, int file);
int ring_accept(site_ring *_Nonnull ring, int file);
int await_signal(int number);
int await_process(int file);
int site_queue(const char *_Nonnull name);
int receive_queued(int queue);
int send_queued(int queue);
int send_file(int to, int from);
int splice_file(int from, int to);
int raise_event(int file);
int receive_message(int file);
int receive_in_time(int file);
void site_fill_backlog(const char *_Nonnull path);  ///< the connections stay open
int connect_local(const char *_Nonnull path);
int compute_deaf(int64_t end);
int look_up_users(int64_t end);
int run_generated(volatile int *_Nonnull flag);

#ifdef __cplusplus
}
#endif
