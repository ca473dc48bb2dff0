/* Run one program and say what it used: wall time, processor time, largest resident set.
 *
 *     launch RESULT STDOUT PROGRAM [ARGUMENT…]
 *
 * Both outputs of the program go to the file STDOUT, or, for `-`, to a new terminal, which is read as fast as possible.
 * RESULT gets one line: wall ns, user us, system us, own us, KiB, exit status (128 + signal when it was killed).
 * User and system include all children; own is the time of the program's process alone, 0 where it is unknown.
 * A small C program has to start what is measured, because Linux counts the memory of the forking process into
 * ru_maxrss of the forked one, and that of a Python process would hide a peer's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
    struct timespec moment;
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return moment.tv_sec * 1000000000LL + moment.tv_nsec;
}

static void become(int out, char **argv)
{
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    close(out);
    close(nothing);
    execv(argv[0], argv);
    _exit(127);
}

/* Open a new terminal of 80 columns; return the end for the program, and in `leader` the one to read. */
static int terminal(int *leader)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    *leader = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*leader < 0 || grantpt(*leader) < 0 || unlockpt(*leader) < 0)
        return -1;
    int out = open(ptsname(*leader), O_RDWR | O_NOCTTY | O_CLOEXEC);
    return out < 0 || ioctl(out, TIOCSWINSZ, &size) < 0 ? -1 : out;
}

/* Processor time of a process that has ended and was not yet waited for, without its children. */
static long long own_us(pid_t child)
{
#ifdef __linux__
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(child, &clock) == 0 && clock_gettime(clock, &used) == 0)
        return used.tv_sec * 1000000LL + used.tv_nsec / 1000;
#endif
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int leader = -1;
    int out = strcmp(argv[2], "-") == 0 ? terminal(&leader) : open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0)
        return 1;
    long long begin = now();
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0)
        become(out, argv + 3);
    close(out);
    static char shown[1 << 16];
    while (leader >= 0 && read(leader, shown, sizeof shown) > 0)
        ; /* until its last writer has closed it */
    siginfo_t ended;
    int status;
    struct rusage used;
    if (waitid(P_PID, child, &ended, WEXITED | WNOWAIT) < 0)
        return 1;
    long long own = own_us(child);
    if (wait4(child, &status, 0, &used) < 0)
        return 1;
    long long wall = now() - begin;
    FILE *result = fopen(argv[1], "w");
    if (result == NULL)
        return 1;
#ifdef __APPLE__
    long kib = used.ru_maxrss / 1024; /* bytes there */
#else
    long kib = used.ru_maxrss;
#endif
    fprintf(result, "%lld %lld %lld %lld %ld %d\n", wall,
            used.ru_utime.tv_sec * 1000000LL + used.ru_utime.tv_usec,
            used.ru_stime.tv_sec * 1000000LL + used.ru_stime.tv_usec, own, kib,
            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    return fclose(result) == 0 ? 0 : 1;
}
