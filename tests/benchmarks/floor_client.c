/* What reading a stream costs at the very least: each chunk is received when it comes, its time taken, and thrown away.
 *
 *   cc -O2 -o floor_client floor_client.c && ./floor_client PORT STREAMS REQUESTS OUT
 *
 * Nothing is parsed, counted or kept, so no client that takes the time of each chunk gets below its CPU time. One
 * thread, epoll, kept-alive connections, a closed loop; writes {"wall_s": ..., "done": ...} to OUT. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define END "\r\n0\r\n\r\n"
#define END_BYTES 7

static const char body[] =
    "{\"model\":\"default\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"word word word word\"}]}";
static char request[512], buffer[65536];
static int request_len, left, done;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void ask(int fd) {
    if (left-- > 0 && send(fd, request, request_len, 0) != request_len) exit(3);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int streams = atoi(argv[2]), requests = left = atoi(argv[3]), epoll_fd = epoll_create1(0), one = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event events[256];
    int *fds = malloc(sizeof(int) * streams);
    volatile double arrived = 0;
    request_len = snprintf(request, sizeof request,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    for (int i = 0; i < streams; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fds[i], (void *)&to, sizeof to)) return 1;
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fds[i]};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fds[i], &e);
    }
    double start = now_s();
    for (int i = 0; i < streams; i++) ask(fds[i]);
    while (done < requests) {
        int n = epoll_wait(epoll_fd, events, 256, 1000);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            arrived = now_s();
            ssize_t size = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
            if (size <= 0) return 4;
            if (size >= END_BYTES && !memcmp(buffer + size - END_BYTES, END, END_BYTES)) {
                done++;
                ask(fd);
            }
        }
    }
    FILE *out = fopen(argv[4], "w");
    if (!out) return 5;
    fprintf(out, "{\"wall_s\": %.6f, \"done\": %d}", arrived - start, done);
    return fclose(out);
}
