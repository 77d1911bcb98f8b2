/* SPDX-License-Identifier: Apache-2.0 */
/* A small simulated network, for kernels without netem: network DELAYS_US LOST_OF_MILLION SEED COMMAND ARGUMENT ...
 *
 * Each of the DELAYS_US (such as 500,500,4500) is a node: a network namespace with the address 10.77.0.1, 10.77.0.2 ...
 * and a name, node1, node2 ... The one-way delay of a packet is the sum of the delays of both nodes. Packets are lost
 * at random; the kernel's TCP retransmits them. The command runs on node1 with the id of this process in the
 * environment variable KILN_NETWORK; enter.sh runs commands on other nodes. SIGUSR1 cuts the last node off for CUT_MS.
 * The exit status is that of the command, or 77 if this machine does not permit the set-up. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 4, PACKET = 1500, UNDERWAY = 4096, CUT_MS = 5000, NET_FD = 100, UTS_FD = 110 };

/* Packets in transit from one node to another, oldest first. */
static struct way {
  struct packet {
    int64_t due; /* ns */
    ssize_t bytes;
    unsigned char data[PACKET];
  } packets[UNDERWAY];
  uint32_t oldest, count;
} ways[NODES][NODES];

static int nodes, devices[NODES];
static int64_t delays[NODES], cut_until;
static uint64_t state, seen, lost;
static uint32_t lost_of_million;
static volatile sig_atomic_t is_cut, is_over;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void skip(const char *what) {
  printf("skipped: %s: %s\n", what, strerror(errno));
  exit(77);
}

static void set_up(int device, int control, const char *name, const char *address) {
  struct ifreq request = {0};
  struct sockaddr_in *place = (struct sockaddr_in *)&request.ifr_addr;
  strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (device >= 0) {
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (ioctl(device, TUNSETIFF, &request))
      skip("a device of tun");
    place->sin_family = AF_INET;
    inet_pton(AF_INET, address, &place->sin_addr);
    if (ioctl(control, SIOCSIFADDR, &request))
      skip("an address");
    inet_pton(AF_INET, "255.255.255.0", &place->sin_addr);
    if (ioctl(control, SIOCSIFNETMASK, &request))
      skip("a mask of addresses");
  }
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(control, SIOCSIFFLAGS, &request))
    skip("a device that is up");
}

/* Keeps the node's namespaces open as the descriptors NET_FD + node and UTS_FD + node. */
static void make_node(int node) {
  char name[16], address[16];
  snprintf(name, sizeof name, "node%d", node + 1);
  snprintf(address, sizeof address, "10.77.0.%d", node + 1);
  if (unshare(CLONE_NEWNET | CLONE_NEWUTS) || sethostname(name, strlen(name)))
    skip("a namespace");
  devices[node] = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  const int control = socket(AF_INET, SOCK_DGRAM, 0);
  if (devices[node] < 0 || control < 0)
    skip("/dev/net/tun");
  set_up(-1, control, "lo", NULL);
  set_up(devices[node], control, "kiln0", address);
  close(control);
  dup3(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), NET_FD + node, O_CLOEXEC);
  dup3(open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC), UTS_FD + node, O_CLOEXEC);
}

/* Returns a random number from 0 to 999,999 (xorshift64*, Vigna 2016). */
static uint32_t draw(void) {
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return (uint32_t)((state * 0x2545F4914F6CDD1DULL >> 32) % 1000000);
}

/* Queues the packets that a node has sent, by the last byte of the destination address, which is bytes 16 to 19 of an
 * IPv4 packet. */
static void take(int from) {
  static unsigned char data[PACKET];
  ssize_t bytes;
  while ((bytes = read(devices[from], data, sizeof data)) > 0) {
    const int to = data[19] - 1;
    if (bytes < 20 || data[0] >> 4 != 4 || to < 0 || to >= nodes)
      continue;
    struct way *way = &ways[from][to];
    const int is_lost = draw() < lost_of_million || way->count == UNDERWAY ||
                        (now() < cut_until && (from == nodes - 1 || to == nodes - 1));
    ++seen, lost += (uint64_t)is_lost;
    if (is_lost)
      continue;
    struct packet *packet = &way->packets[(way->oldest + way->count++) % UNDERWAY];
    packet->due = now() + delays[from] + delays[to];
    packet->bytes = bytes;
    memcpy(packet->data, data, (size_t)bytes);
  }
}

/* Delivers the packets that are due. Returns the time at which the next one is due, or INT64_MAX if there is none. */
static int64_t deliver(void) {
  int64_t next = INT64_MAX;
  for (int from = 0; from < nodes; ++from)
    for (int to = 0; to < nodes; ++to) {
      struct way *way = &ways[from][to];
      for (; way->count; way->oldest = (way->oldest + 1) % UNDERWAY, --way->count) {
        const struct packet *packet = &way->packets[way->oldest];
        if (packet->due > now()) {
          next = packet->due < next ? packet->due : next;
          break;
        }
        if (write(devices[to], packet->data, (size_t)packet->bytes) < 0)
          ++lost;
      }
    }
  return next;
}

static void on_signal(int number) {
  if (number == SIGUSR1)
    is_cut = 1;
  else if (number == SIGTERM)
    is_over = 1;
}

/* Forwards packets until the command ends, and returns its status. Signals are delivered only while it waits. */
static int forward(pid_t command, const sigset_t *waiting) {
  struct pollfd polled[NODES];
  for (int node = 0; node < nodes; ++node)
    polled[node] = (struct pollfd){.fd = devices[node], .events = POLLIN};
  for (;;) {
    const int64_t next = deliver(), left = next == INT64_MAX ? 1000000000 : next - now();
    const struct timespec time = {left > 0 ? left / 1000000000 : 0, left > 0 ? left % 1000000000 : 0};
    if (ppoll(polled, (nfds_t)nodes, &time, waiting) > 0)
      for (int node = 0; node < nodes; ++node)
        take(node);
    if (is_cut)
      is_cut = 0, cut_until = now() + CUT_MS * 1000000LL;
    if (is_over)
      is_over = 0, kill(command, SIGTERM);
    int status = 0;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) /* also reaps orphaned descendants */
      if (ended == command)
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

/* Starts the command on the first node. */
static pid_t start(char **command, const sigset_t *signals) {
  const pid_t started = fork();
  if (started == 0) {
    sigprocmask(SIG_SETMASK, signals, NULL);
    if (setns(NET_FD, CLONE_NEWNET) == 0 && setns(UTS_FD, CLONE_NEWUTS) == 0)
      execvp(command[0], command);
    _exit(127);
  }
  return started;
}

int main(int argc, char **argv) {
  const int signals[] = {SIGUSR1, SIGCHLD, SIGTERM};
  const struct sigaction action = {.sa_handler = on_signal};
  char process[16];
  sigset_t blocked, waiting;
  if (argc < 5)
    return fprintf(stderr, "usage: network DELAYS_US LOST_OF_MILLION SEED COMMAND ARGUMENT ...\n"), 2;
  for (char *at = strtok(argv[1], ","); at && nodes < NODES; at = strtok(NULL, ","))
    delays[nodes++] = atoll(at) * 1000;
  lost_of_million = (uint32_t)atoi(argv[2]);
  state = strtoull(argv[3], NULL, 10) * 2 + 1;
  snprintf(process, sizeof process, "%d", (int)getpid());
  setenv("KILN_NETWORK", process, 1);
  for (int node = 0; node < nodes; ++node)
    make_node(node);
  sigemptyset(&blocked);
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; ++i)
    sigaddset(&blocked, signals[i]), sigaction(signals[i], &action, NULL);
  sigprocmask(SIG_BLOCK, &blocked, &waiting);
  const pid_t command = start(&argv[4], &waiting);
  setpriority(PRIO_PROCESS, 0, -20); /* for punctuality next to ranks that poll; failure is tolerated */
  prctl(PR_SET_TIMERSLACK, 1);
  const int status = forward(command, &waiting);
  fprintf(stderr, "network: %llu of %llu packets lost\n", (unsigned long long)lost, (unsigned long long)seen);
  return status;
}
