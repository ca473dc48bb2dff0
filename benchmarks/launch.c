/* Run one program and say what it used: wall time, processor time, largest resident set.
 *
 *     launch RESULT STDOUT PROGRAM [ARGUMENT…]
 *
 * Both outputs of the program go to STDOUT. RESULT gets one line: wall ns, user us, system us, KiB, exit status
 * (128 + signal when it was killed). A small C program has to start what is measured, because Linux counts the
 * memory of the forking process into ru_maxrss of the forked one, and that of a Python process would hide a peer's.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

static void become(char **argv)
{
    int out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int nothing = open("/dev/null", O_RDONLY);
    if (out < 0 || nothing < 0 || dup2(nothing, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    close(out);
    close(nothing);
    execv(argv[3], argv + 3);
    _exit(127);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    long long begin = now();
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0)
        become(argv);
    int status;
    struct rusage used;
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
    fprintf(result, "%lld %lld %lld %ld %d\n", wall,
            used.ru_utime.tv_sec * 1000000LL + used.ru_utime.tv_usec,
            used.ru_stime.tv_sec * 1000000LL + used.ru_stime.tv_usec, kib,
            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    return fclose(result) == 0 ? 0 : 1;
}
