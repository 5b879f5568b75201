/* The common part of the programs in C and C++: the command line, the clock, the measurements
 * of a reader, and the line that each process prints. The crate `measure` is the same for Rust
 * and explains it. */
#ifndef SPINDLE_PEER_MEASURE_H
#define SPINDLE_PEER_MEASURE_H

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum role { PUBLISHER, SUBSCRIBER, PING, PONG };

struct arguments {
    enum role role;
    size_t size;
    double seconds;
    uint64_t samples; /* 0: `seconds` is the limit */
    double rate;      /* samples per second; 0: as fast as there is room */
    int readers;
    int sum;   /* all bytes are written and summed, not only the first and the last */
    int copy;  /* the reader copies a sample out before it reads its bytes */
    int block; /* the reader sleeps until a sample arrives */
    const char *session;
};

/* Sent in front of the payload. */
struct stamp {
    uint64_t number; /* the highest bit is set in the last sample */
    uint64_t sent_at_ns;
};

#define LAST_BIT (UINT64_C(1) << 63)
#define IDLE_LIMIT_NS UINT64_C(2000000000)
#define READ_CLOCK_EVERY 1024
#define SPINS 200

static inline void fail(const char *what) {
    perror(what);
    exit(1);
}

static inline void misused(const char *what) {
    fprintf(stderr, "%s: not an argument, or its value is invalid\n", what);
    exit(2);
}

static inline int one_of(const char *text, const char *no, const char *yes) {
    if (!strcmp(text, yes)) return 1;
    if (strcmp(text, no)) misused(text);
    return 0;
}

static inline double positive(const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (*end || !(value > 0) || value > 1e12) misused(text);
    return value;
}

static inline struct arguments parse(int argc, char **argv) {
    static const char *roles[] = {"publisher", "subscriber", "ping", "pong"};
    struct arguments it = {PUBLISHER, 128, 1.0, 0, 0, 1, 0, 0, 0, "0"};
    int role = -1;
    for (int i = 0; argc > 1 && i < 4; i++)
        if (!strcmp(argv[1], roles[i])) role = i;
    if (role < 0) misused(argc > 1 ? argv[1] : "role");
    it.role = (enum role)role;
    for (int i = 2; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (!*value) misused(name);
        if (!strcmp(name, "--size")) it.size = (size_t)positive(value);
        else if (!strcmp(name, "--seconds")) it.seconds = positive(value);
        else if (!strcmp(name, "--samples")) it.samples = (uint64_t)positive(value);
        else if (!strcmp(name, "--rate")) it.rate = positive(value);
        else if (!strcmp(name, "--readers")) it.readers = (int)positive(value);
        else if (!strcmp(name, "--read") && !strcmp(value, "copy")) it.copy = 1;
        else if (!strcmp(name, "--read")) it.sum = one_of(value, "touch", "sum");
        else if (!strcmp(name, "--wait")) it.block = one_of(value, "poll", "block");
        else if (!strcmp(name, "--session")) it.session = value;
        else misused(name);
    }
    /* The process ends with its runner, even if the runner is killed. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return it;
}

static inline uint64_t clock_ns(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
static inline uint64_t monotonic_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
static inline uint64_t cpu_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

static inline void sleep_ns(uint64_t ns) {
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

static inline void spin_once(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps until shortly before `due_at_ns`, then spins: the delay of a timer exceeds the latencies
 * that are measured. */
static inline void wait_until(uint64_t due_at_ns) {
    for (;;) {
        uint64_t now = monotonic_ns();
        if (now >= due_at_ns) return;
        if (due_at_ns - now >= 200000) sleep_ns(due_at_ns - now - 100000);
        else spin_once();
    }
}

/* Decides when each sample is sent. */
struct schedule {
    uint64_t started_ns, started_cpu_ns, ends_at_ns, next;
    int over;
};

static inline struct schedule begin(const struct arguments *with) {
    struct schedule it = {monotonic_ns(), cpu_ns(), UINT64_MAX, 0, 0};
    if (!with->samples) it.ends_at_ns = it.started_ns + (uint64_t)(with->seconds * 1e9);
    return it;
}

/* Waits until the next sample is due, and writes its stamp. Returns 0 after the last one. */
static inline int next_stamp(struct schedule *it, const struct arguments *with,
                             struct stamp *stamp) {
    if (it->over) return 0;
    uint64_t number = it->next++;
    stamp->sent_at_ns = 0;
    if (with->rate > 0) {
        wait_until(it->started_ns + (uint64_t)((double)number * (1e9 / with->rate)));
        stamp->sent_at_ns = monotonic_ns();
    }
    int read_clock = with->rate > 0 || number % 64 == 0;
    it->over = (with->samples && number + 1 >= with->samples) ||
               (read_clock && monotonic_ns() >= it->ends_at_ns);
    stamp->number = number | (it->over ? LAST_BIT : 0);
    return 1;
}

static inline void write_payload(unsigned char *bytes, size_t size, uint64_t number, int sum) {
    if (sum) {
        memset(bytes, (int)(number & 0xff), size);
    } else if (size > 0) {
        bytes[0] = (unsigned char)number;
        bytes[size - 1] = (unsigned char)number;
    }
}

#define BUCKETS (64 * 64)

/* The measurements of a reader. */
struct meter {
    const char *role, *kind;
    int sum_all, complete;
    uint64_t warm_up, samples, lost, late, next, started_ns, ended_ns, started_cpu_ns;
    uint64_t timed, buckets[BUCKETS];
    volatile uint64_t sum;
};

static inline void meter_begin(struct meter *it, const struct arguments *with,
                               const char *role, const char *kind) {
    memset(it, 0, sizeof *it);
    it->role = role;
    it->kind = kind;
    it->sum_all = with->sum;
    uint64_t samples = with->samples ? with->samples : (uint64_t)(with->rate * with->seconds);
    it->warm_up = samples / 10;
}

/* Latencies are counted in 64 buckets for each power of two: 1.6 % wide. */
static inline unsigned bucket_of(uint64_t ns) {
    if (ns < 64) return (unsigned)ns;
    unsigned power = 63 - (unsigned)__builtin_clzll(ns);
    return (power - 5) * 64 + (unsigned)((ns >> (power - 6)) & 63);
}
static inline uint64_t value_of(unsigned bucket) {
    if (bucket < 64) return bucket;
    unsigned power = bucket / 64 + 5;
    return (UINT64_C(64) | (bucket & 63)) << (power - 6);
}

/* The sum of all bytes, in blocks whose sum fits into 16 bits, so that the compiler can use vector
 * additions. */
static inline uint64_t sum_of(const unsigned char *bytes, size_t size) {
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at += 256) {
        size_t end = size - at < 256 ? size : at + 256;
        uint16_t block = 0;
        for (size_t i = at; i < end; i++) block = (uint16_t)(block + bytes[i]);
        sum += block;
    }
    return sum;
}

static inline void meter_sample(struct meter *it, struct stamp stamp,
                                const unsigned char *bytes, size_t size) {
    uint64_t number = stamp.number & ~LAST_BIT;
    if (it->sum_all) it->sum += sum_of(bytes, size);
    else if (size > 0) it->sum += (uint64_t)bytes[0] + bytes[size - 1];
    if (number < it->next) {
        it->late++;
        if (it->lost > 0) it->lost--;
    } else {
        it->lost += number - it->next;
        it->next = number + 1;
    }
    int last = (stamp.number & LAST_BIT) != 0;
    if (stamp.sent_at_ns || last || it->samples % READ_CLOCK_EVERY == 0) {
        uint64_t now = monotonic_ns();
        if (it->samples == 0) {
            it->started_ns = now;
            it->started_cpu_ns = cpu_ns();
        }
        it->ended_ns = now;
        if (stamp.sent_at_ns && number >= it->warm_up) {
            it->buckets[bucket_of(now > stamp.sent_at_ns ? now - stamp.sent_at_ns : 0)]++;
            it->timed++;
        }
    }
    it->samples++;
    it->complete |= last;
}

static inline uint64_t quantile(const struct meter *it, double q) {
    uint64_t seen = 0, wanted = (uint64_t)(q * (double)it->timed);
    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += it->buckets[i];
        if (seen > wanted) return value_of(i);
    }
    return 0;
}

static inline void report(const char *role, uint64_t samples, uint64_t elapsed_ns,
                          uint64_t lost, uint64_t late, int complete, uint64_t used_ns,
                          const struct meter *timed) {
    printf("{\"role\":\"%s\",\"samples\":%llu,\"seconds\":%.9f,\"lost\":%llu,\"late\":%llu,"
           "\"complete\":%s,\"cpu_seconds\":%.9f",
           role, (unsigned long long)samples, (double)elapsed_ns / 1e9,
           (unsigned long long)lost, (unsigned long long)late, complete ? "true" : "false",
           (double)used_ns / 1e9);
    if (timed && timed->timed)
        printf(",\"latency\":{\"kind\":\"%s\",\"samples\":%llu,\"p50_ns\":%llu,\"p99_ns\":%llu}",
               timed->kind, (unsigned long long)timed->timed,
               (unsigned long long)quantile(timed, 0.5),
               (unsigned long long)quantile(timed, 0.99));
    printf("}\n");
    fflush(stdout);
}

static inline void meter_report(const struct meter *it) {
    uint64_t used = it->samples ? cpu_ns() - it->started_cpu_ns : 0;
    report(it->role, it->samples, it->ended_ns - it->started_ns, it->lost, it->late,
           it->complete, used, it);
}

static inline void schedule_report(const struct schedule *it) {
    report("publisher", it->next, monotonic_ns() - it->started_ns, 0, 0, 1,
           cpu_ns() - it->started_cpu_ns, NULL);
}

/* How a reader waits while no sample arrives. */
struct patience {
    unsigned idle;
    uint64_t since_ns;
};

/* Returns 0 if no sample has arrived for IDLE_LIMIT_NS after the first one. */
static inline int go_on(struct patience *it, const struct arguments *with, int came,
                        uint64_t samples) {
    if (came) {
        it->idle = 0;
        it->since_ns = 0;
        return 1;
    }
    it->idle++;
    if (!with->block) {
        if (it->idle <= SPINS) {
            spin_once();
            return 1;
        }
        /* There may be more readers than processors. */
        sched_yield();
    }
    uint64_t now = monotonic_ns();
    if (!it->since_ns) it->since_ns = now;
    return samples == 0 || now - it->since_ns < IDLE_LIMIT_NS;
}

#endif
