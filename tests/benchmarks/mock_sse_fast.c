/* The mock server of tests/fakes/mock_sse.py for speed alone: one kind of answer, true send times logged.
 *
 *   cc -O2 -o mock_sse_fast mock_sse_fast.c && ./mock_sse_fast TTFT_MS GAP_MS CHUNKS GROUP
 *
 * Prints its port. Every POST is answered by a chat stream of CHUNKS content chunks, GROUP of them in a write, on
 * kept-alive connections. A request with continuous_usage_stats gets a running usage in each chunk and one with
 * return_spec_tokens_details the engine's counts at the end, as SGLang does it; others get neither. The numbers at the end
 * differ from answer to answer, as they do in life: who remembers what it has read gains nothing by that. GET /truth: {"ttft": [p50, p99], "itl": ..., "tpot": ...} in ms; other GETs: {}. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_FD 8192
#define IN_BYTES 65536
#define HEAD "data: {\"id\":\"84ec04f79122433093cf65521686d5c3\",\"object\":\"chat.completion.chunk\"," \
             "\"created\":1796002660,\"model\":\"default\","

typedef struct {
    char in[IN_BYTES];
    int in_len, active, part, counted, exact;
    char *tail; /* the end of this answer */
    size_t written; /* bytes of the current write that are out */
    double received;
    double *sent; /* when each content write went out */
} conn;

typedef struct { double at; int fd; } due_t;

static conn *conns[MAX_FD];
static due_t heap[MAX_FD * 2];
static int heap_len, chunks, group, writes, epoll_fd;
static double ttft, gap;
static char *first_write, *full_write, *last_write, *tails[2];
static size_t first_len, full_len, last_len, tail_lens[2], tail_numbers[2][3];
static unsigned answers;
static char *counted_writes; /* all content with the running usage, one write after the other */
static size_t *counted_at;   /* where each begins, and where the last one ends */
static double *truth_ttft, *truth_itl, *truth_tpot;
static size_t ttft_n, itl_n, tpot_n, ttft_cap, itl_cap, tpot_cap;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void push(double at, int fd) {
    int i = heap_len++;
    while (i && heap[(i - 1) / 2].at > at) { heap[i] = heap[(i - 1) / 2]; i = (i - 1) / 2; }
    heap[i] = (due_t){at, fd};
}

static due_t pop(void) {
    due_t top = heap[0], last = heap[--heap_len];
    int i = 0, c;
    while ((c = 2 * i + 1) < heap_len) {
        if (c + 1 < heap_len && heap[c + 1].at < heap[c].at) c++;
        if (heap[c].at >= last.at) break;
        heap[i] = heap[c];
        i = c;
    }
    heap[i] = last;
    return top;
}

static void note(double **list, size_t *n, size_t *cap, double value) {
    if (*n == *cap) *list = realloc(*list, (*cap = *cap ? *cap * 2 : 4096) * sizeof(double));
    (*list)[(*n)++] = value;
}

/* A framed event; `usage` is JSON. */
static size_t frame(char *out, const char *delta, const char *finish, const char *usage) {
    char one[1400];
    int n = snprintf(one, sizeof one,
        HEAD "\"choices\":[{\"index\":0,\"delta\":%s,\"logprobs\":null,"
        "\"finish_reason\":%s,\"matched_stop\":null}],\"usage\":%s}\n\n", delta, finish, usage);
    return sprintf(out, "%x\r\n%s\r\n", n, one);
}

static char *event(const char *delta, const char *finish, int times, size_t *len) {
    char framed[1500];
    size_t m = frame(framed, delta, finish, "null");
    char *out = malloc(m * (times ? times : 1) + 1);
    for (int i = 0; i < times; i++) memcpy(out + i * m, framed, m);
    *len = m * times;
    return out;
}

static void build_counted(const char *content) {
    char usage[300];
    size_t at = 0;
    counted_writes = malloc((size_t)chunks * 700);
    counted_at = malloc(sizeof(size_t) * (writes + 1));
    for (int i = 0; i < chunks; i++) {
        if (i % group == 0) counted_at[i / group] = at;
        snprintf(usage, sizeof usage,
            "{\"prompt_tokens\":16,\"total_tokens\":%d,\"completion_tokens\":%d,\"prompt_tokens_details\":null,"
            "\"reasoning_tokens\":0}", i + 17, i + 1);
        at += frame(counted_writes + at, content, "null", usage);
    }
    counted_at[writes] = at;
}

static size_t last_event(char *out, const char *rest) {
    char one[700];
    int n = snprintf(one, sizeof one,
        HEAD "\"choices\":[],%s}\n\n", rest);
    return sprintf(out, "%x\r\n%s\r\n", n, one);
}

/* The end of an answer, with the engine's counts or without; where its numbers of four digits stand. */
static void build_tail(const char *finish, size_t finish_len, int exact) {
    char rest[500];
    char *out = tails[exact] = malloc(finish_len + 2000);
    memcpy(out, finish, finish_len);
    size_t at = finish_len;
    if (exact) {
        snprintf(rest, sizeof rest,
            "\"sglext\":{\"spec_tokens_details\":{\"spec_accept_length\":1.0,\"spec_verify_ct\":%d,"
            "\"spec_num_correct_drafts\":0,\"spec_num_proposed_drafts\":1000,\"spec_correct_drafts_histogram\":[%d]}}",
            chunks, chunks);
        at += last_event(out + at, rest);
    }
    snprintf(rest, sizeof rest, "\"usage\":{\"prompt_tokens\":1000,\"total_tokens\":1000,\"completion_tokens\":%d}",
        chunks);
    at += last_event(out + at, rest);
    const char *names[] = {"\"prompt_tokens\":", "\"total_tokens\":", "\"spec_num_proposed_drafts\":"};
    for (int i = 0; i < 2 + exact; i++) tail_numbers[exact][i] = strstr(out, names[i]) + strlen(names[i]) - out;
    at += sprintf(out + at, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    tail_lens[exact] = at;
}

static void build(void) {
    const char *content = "{\"role\":null,\"content\":\"tok \",\"reasoning_content\":null,\"tool_calls\":null}";
    size_t head_len, role_len, finish_len;
    const char *head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n";
    char *role = event("{\"role\":\"assistant\",\"content\":\"\"}", "null", 1, &role_len);
    char *finish = event("{\"content\":null}", "\"stop\"", 1, &finish_len);
    head_len = strlen(head);
    first_write = malloc(first_len = head_len + role_len);
    memcpy(first_write, head, head_len);
    memcpy(first_write + head_len, role, role_len);
    writes = (chunks + group - 1) / group;
    full_write = event(content, "null", group, &full_len);
    last_write = event(content, "null", chunks - (writes - 1) * group, &last_len);
    build_counted(content);
    build_tail(finish, finish_len, 0);
    build_tail(finish, finish_len, 1);
}

static void drop(int fd) {
    conns[fd]->active = 0;
    conns[fd]->in_len = -1;
    close(fd);
}

/* Part 0: head and role chunk at once; 1..writes: content; writes + 1: the end. */
static const char *part_of(const conn *c, size_t *len) {
    int part = c->part;
    if (part == 0) return *len = first_len, first_write;
    if (part > writes) return *len = tail_lens[c->exact], c->tail;
    if (c->counted) return *len = counted_at[part] - counted_at[part - 1], counted_writes + counted_at[part - 1];
    return part == writes ? (*len = last_len, last_write) : (*len = full_len, full_write);
}

static void number_tail(conn *c) {
    char digits[8];
    int exact = c->exact;
    snprintf(digits, sizeof digits, "%04u", 1000 + answers++ % 9000);
    memcpy(c->tail, tails[exact], tail_lens[exact]);
    for (int i = 0; i < 2 + exact; i++) memcpy(c->tail + tail_numbers[exact][i], digits, 4);
}

static void finished(conn *c) {
    note(&truth_ttft, &ttft_n, &ttft_cap, c->sent[0] - c->received);
    for (int i = 1; i < writes; i++) {
        note(&truth_itl, &itl_n, &itl_cap, c->sent[i] - c->sent[i - 1]);
        if (group > 1) for (int k = 1; k < group; k++) note(&truth_itl, &itl_n, &itl_cap, 0.0);
    }
    if (chunks > 1) note(&truth_tpot, &tpot_n, &tpot_cap, (c->sent[writes - 1] - c->sent[0]) / (chunks - 1));
    c->active = 0;
}

/* Send from the current part on for as long as parts are due and the socket takes them. */
static void advance(int fd) {
    conn *c = conns[fd];
    while (c->active) {
        size_t len;
        const char *data = part_of(c, &len);
        double now = now_s();
        if (c->part >= 1 && c->part <= writes && !c->written) {
            double at = c->received + ttft + gap * (c->part - 1);
            if (at > now) { push(at, fd); return; }
            c->sent[c->part - 1] = now;
        }
        ssize_t n = send(fd, data + c->written, len - c->written, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN) { drop(fd); return; }
            n = 0;
        }
        c->written += n;
        if (c->written < len) {
            struct epoll_event e = {.events = EPOLLIN | EPOLLOUT, .data.fd = fd};
            epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &e);
            return;
        }
        c->written = 0;
        if (c->part++ > writes) finished(c);
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int print_pair(char *out, const char *name, double *list, size_t n) {
    if (!n) return sprintf(out, "\"%s\": [0, 0], ", name);
    qsort(list, n, sizeof(double), compare);
    return sprintf(out, "\"%s\": [%.6f, %.6f], ", name, list[n / 2] * 1e3, list[(size_t)(n * 0.99)] * 1e3);
}

static void answer_get(int fd, int is_truth) {
    char body[512] = "{}", out[1024];
    if (is_truth) {
        int n = sprintf(body, "{");
        n += print_pair(body + n, "ttft", truth_ttft, ttft_n);
        n += print_pair(body + n, "itl", truth_itl, itl_n);
        n += print_pair(body + n, "tpot", truth_tpot, tpot_n);
        sprintf(body + n, "\"requests\": %zu}", ttft_n);
    }
    int n = sprintf(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                    strlen(body), body);
    if (send(fd, out, n, MSG_NOSIGNAL) < 0) drop(fd);
}

static void take(int fd) {
    conn *c = conns[fd];
    ssize_t n = recv(fd, c->in + c->in_len, IN_BYTES - 1 - c->in_len, 0);
    if (n <= 0) { if (n == 0 || errno != EAGAIN) drop(fd); return; }
    c->in_len += n;
    c->in[c->in_len] = 0;
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end) return;
    char *field = strcasestr(c->in, "content-length:");
    long size = field && field < end ? atol(field + 15) : 0;
    if (c->in_len < end + 4 - c->in + size) return;
    c->in_len = 0;
    if (!strncmp(c->in, "GET", 3)) { answer_get(fd, !!strstr(c->in, "/truth")); return; }
    c->received = now_s();
    c->counted = !!strstr(end, "\"continuous_usage_stats\":true");
    c->exact = !!strstr(end, "\"return_spec_tokens_details\":true");
    c->part = 0;
    c->written = 0;
    c->active = 1;
    if (!c->sent) c->sent = malloc(sizeof(double) * writes);
    if (!c->tail) c->tail = malloc(tail_lens[1] + tail_lens[0]);
    number_tail(c);
    advance(fd);
}

static void accept_all(int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        int one = 1;
        if (fd >= MAX_FD) { close(fd); continue; }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (!conns[fd]) conns[fd] = calloc(1, sizeof(conn));
        conns[fd]->in_len = 0;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
    }
}

static void wait_for(double seconds, int *timeout_ms) {
    *timeout_ms = seconds < 0 ? 0 : (int)(seconds * 1000);
    if (seconds > 0 && seconds < 0.001) {
        fd_set set;
        struct timeval t = {0, (long)(seconds * 1e6)};
        FD_ZERO(&set);
        FD_SET(epoll_fd, &set);
        select(epoll_fd + 1, &set, NULL, NULL, &t);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    ttft = atof(argv[1]) / 1e3;
    gap = atof(argv[2]) / 1e3;
    chunks = atoi(argv[3]);
    group = atoi(argv[4]);
    epoll_fd = epoll_create1(0);
    build();
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    if (bind(listener, (void *)&a, sizeof a) || listen(listener, 4096)) return 1;
    getsockname(listener, (void *)&a, &len);
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int timeout = 100;
        if (heap_len) wait_for(heap[0].at - now_s(), &timeout);
        int n = epoll_wait(epoll_fd, events, 256, timeout);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) { accept_all(listener); continue; }
            if (events[i].events & EPOLLOUT) {
                struct epoll_event in = {.events = EPOLLIN, .data.fd = fd};
                epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &in);
                advance(fd);
            }
            if (events[i].events & ~EPOLLOUT) take(fd);
        }
        double now = now_s();
        for (int k = 0; k < 64 && heap_len && heap[0].at <= now; k++) advance(pop().fd);
    }
}
