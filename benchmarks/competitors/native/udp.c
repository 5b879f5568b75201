/* A limit: plain datagrams over the loopback interface, 64 per system call. A middleware that uses
 * UDP cannot be faster unless it packs samples together. Datagrams without room are lost, and
 * counted. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "measure.h"

#define BATCH 64
#define DATAGRAM_MAX 65000
#define PORT_FIRST 7411
#define BUFFER_BYTES (64 << 20)
/* The number in the stamp of a greeting. */
#define HELLO UINT64_MAX

/* Each session has its own address: all of 127.0.0.0/8 is this host. */
static struct sockaddr_in address_of(const struct arguments *with, int end) {
    uint32_t hash = 2166136261u;
    for (const char *it = with->session; *it; it++) hash = (hash ^ (unsigned char)*it) * 16777619u;
    struct sockaddr_in it;
    memset(&it, 0, sizeof it);
    it.sin_family = AF_INET;
    it.sin_port = htons((uint16_t)(PORT_FIRST + end));
    it.sin_addr.s_addr = htonl(0x7f000000u | (hash & 0xfffffeu) | 2u);
    return it;
}

/* Opens an end, 0 or 1, that is connected to the other end. */
static int open_end(const struct arguments *with, int end) {
    int it = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in mine = address_of(with, end), theirs = address_of(with, !end);
    struct timeval limit = {0, 500000};
    int bytes = BUFFER_BYTES;
    if (it < 0) fail("socket");
    if (bind(it, (struct sockaddr *)&mine, sizeof mine)) fail("bind");
    if (connect(it, (struct sockaddr *)&theirs, sizeof theirs)) fail("connect");
    if (setsockopt(it, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit)) fail("SO_RCVTIMEO");
    /* Only root may exceed the limit of the system. */
    if (setsockopt(it, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) &&
        setsockopt(it, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes))
        fail("SO_RCVBUF");
    return it;
}

struct batch {
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH][2];
    struct stamp stamps[BATCH];
    unsigned char *bytes;
    size_t size;
};

static struct batch *new_batch(size_t size) {
    struct batch *it = calloc(1, sizeof *it);
    if (!it || !(it->bytes = calloc(BATCH, size ? size : 1))) fail("calloc");
    it->size = size;
    for (int i = 0; i < BATCH; i++) {
        it->parts[i][0] = (struct iovec){&it->stamps[i], sizeof it->stamps[i]};
        it->parts[i][1] = (struct iovec){it->bytes + (size_t)i * size, size};
        it->messages[i].msg_hdr.msg_iov = it->parts[i];
        it->messages[i].msg_hdr.msg_iovlen = 2;
    }
    return it;
}

/* A refused datagram is expected during the handshake and at the end of a run. */
static int is_quiet(int error) {
    return error == EAGAIN || error == EINTR || error == ECONNREFUSED;
}

static void send_batch(int socket, struct batch *batch, unsigned count) {
    for (unsigned sent = 0; sent < count;) {
        int some = sendmmsg(socket, batch->messages + sent, count - sent, 0);
        if (some < 0 && errno != ENOBUFS && !is_quiet(errno)) fail("sendmmsg");
        if (some > 0) sent += (unsigned)some;
    }
}

static int receive_batch(int socket, struct batch *batch, int block) {
    int came = recvmmsg(socket, batch->messages, BATCH, block ? MSG_WAITFORONE : MSG_DONTWAIT, NULL);
    if (came < 0 && !is_quiet(errno)) fail("recvmmsg");
    return came < 0 ? 0 : came;
}

/* Sends greetings until the other end answers. */
static void greet(int socket) {
    struct stamp stamp = {HELLO, 0};
    do {
        if (send(socket, &stamp, sizeof stamp, 0) < 0 && !is_quiet(errno)) fail("send");
        sleep_ns(2000000);
    } while (recv(socket, &stamp, sizeof stamp, MSG_DONTWAIT) < 0);
}

static void answer(int socket) {
    struct stamp stamp = {HELLO, 0};
    if (send(socket, &stamp, sizeof stamp, 0) < 0 && !is_quiet(errno)) fail("send");
}

static void publish(const struct arguments *with) {
    int socket = open_end(with, 0);
    struct batch *batch = new_batch(with->size);
    greet(socket);
    struct schedule schedule = begin(with);
    unsigned count = 0, most = with->rate > 0 ? 1 : BATCH;
    for (struct stamp stamp; next_stamp(&schedule, with, &stamp);) {
        batch->stamps[count] = stamp;
        write_payload(batch->bytes + count * with->size, with->size, stamp.number, with->sum);
        if (++count == most || schedule.over) {
            send_batch(socket, batch, count);
            if (!schedule.over) count = 0;
        }
    }
    schedule_report(&schedule);
    /* Repeats the last sample: the reader must receive it, while others may be lost. */
    batch->messages[0] = batch->messages[count - 1];
    for (int again = 0; again < 20; again++) {
        sleep_ns(5000000);
        send_batch(socket, batch, 1);
    }
}

static void subscribe(const struct arguments *with) {
    static struct meter meter;
    int socket = open_end(with, 1);
    struct batch *batch = new_batch(with->size);
    struct patience patience = {0, 0};
    meter_begin(&meter, with, "subscriber", "one_way");
    while (!meter.complete) {
        int came = receive_batch(socket, batch, with->block);
        for (int i = 0; i < came && !meter.complete; i++) {
            if (batch->stamps[i].number == HELLO) answer(socket);
            else meter_sample(&meter, batch->stamps[i], batch->bytes + (size_t)i * with->size,
                              with->size);
        }
        if (!go_on(&patience, with, came, meter.samples)) break;
    }
    meter_report(&meter);
}

static void ping(const struct arguments *with) {
    static struct meter meter;
    int socket = open_end(with, 0);
    struct batch *out = new_batch(with->size), *in = new_batch(with->size);
    struct patience patience = {0, 0};
    meter_begin(&meter, with, "ping", "round_trip");
    greet(socket);
    struct schedule schedule = begin(with);
    for (struct stamp stamp; next_stamp(&schedule, with, &stamp);) {
        stamp.sent_at_ns = monotonic_ns();
        out->stamps[0] = stamp;
        write_payload(out->bytes, with->size, stamp.number, with->sum);
        send_batch(socket, out, 1);
        for (int echoed = 0; !echoed;) {
            int came = receive_batch(socket, in, with->block);
            for (int i = 0; i < came; i++) {
                if (in->stamps[i].number == HELLO) continue;
                meter_sample(&meter, in->stamps[i], in->bytes + (size_t)i * with->size, with->size);
                echoed = 1;
            }
            if (!go_on(&patience, with, came, meter.samples)) misused("no echo");
        }
    }
    meter_report(&meter);
}

static void pong(const struct arguments *with) {
    int socket = open_end(with, 1), over = 0;
    struct batch *in = new_batch(with->size), *out = new_batch(with->size);
    struct patience patience = {0, 0};
    uint64_t samples = 0;
    while (!over) {
        int came = receive_batch(socket, in, with->block);
        for (int i = 0; i < came; i++) {
            if (in->stamps[i].number == HELLO) {
                answer(socket);
                continue;
            }
            out->stamps[0] = in->stamps[i];
            write_payload(out->bytes, with->size, in->stamps[i].number, with->sum);
            send_batch(socket, out, 1);
            samples++;
            over |= (in->stamps[i].number & LAST_BIT) != 0;
        }
        if (!go_on(&patience, with, came, samples)) misused("no ping");
    }
}

int main(int argc, char **argv) {
    struct arguments with = parse(argc, argv);
    if (with.size > DATAGRAM_MAX) misused("--size: more than a datagram holds");
    if (with.readers != 1) misused("--readers: a datagram has one reader");
    if (with.copy) misused("--read copy: the kernel has copied the sample already");
    switch (with.role) {
    case PUBLISHER: publish(&with); break;
    case SUBSCRIBER: subscribe(&with); break;
    case PING: ping(&with); break;
    case PONG: pong(&with); break;
    }
    return 0;
}
