/* The floor: run a DAG of shell commands with nothing but posix_spawn and wait.
 *
 *     climit JOBS FILE [LOGS]
 *
 * FILE has one step a line: the command, a tab, the numbers (from 0) of the steps it waits for, with blanks between.
 * Each command runs as /bin/sh -c COMMAND, at most JOBS at a time. No records, no reports, no timeouts.
 * With LOGS, an existing folder, both outputs of step N go to LOGS/N.log; otherwise they are inherited.
 * Ends with 0 when every step ended with 0 and every step was run.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct step {
    char *command;
    int waits_for; /* needs that have not ended */
    int *dependents;
    int dependent_count;
    pid_t pid;
};

static struct step *steps;
static int count;
static int *ready; /* a queue: every step enters it once */
static int ready_head, ready_tail;

static void *grown(void *block, size_t size)
{
    void *larger = realloc(block, size);
    if (larger == NULL)
        exit(3);
    return larger;
}

static void add_dependent(int need, int dependent)
{
    struct step *step = &steps[need];
    /* doubling at the powers of two */
    if ((step->dependent_count & (step->dependent_count - 1)) == 0)
        step->dependents = grown(step->dependents, sizeof(int) * (step->dependent_count ? 2 * step->dependent_count : 1));
    step->dependents[step->dependent_count++] = dependent;
}

static void read_steps(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        exit(2);
    char *line = NULL;
    size_t room = 0;
    int capacity = 0;
    while (getline(&line, &room, file) > 0) {
        char *tab = strchr(line, '\t');
        if (tab == NULL)
            exit(2);
        *tab = '\0';
        if (count == capacity)
            steps = grown(steps, sizeof *steps * (capacity = capacity ? 2 * capacity : 64));
        steps[count] = (struct step){.command = strdup(line)};
        for (char *word = strtok(tab + 1, " \n"); word != NULL; word = strtok(NULL, " \n")) {
            int need = atoi(word);
            if (need >= count)
                exit(2); /* a file names only earlier steps */
            add_dependent(need, count);
            steps[count].waits_for++;
        }
        count++;
    }
    fclose(file);
    free(line);
}

static pid_t started(int index, const char *logs)
{
    char *argv[] = {"sh", "-c", steps[index].command, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int failed;
    if (logs == NULL) {
        failed = posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
    } else {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d.log", logs, index);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&actions, 1, 2);
        failed = posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (failed)
        exit(3);
    return pid;
}

static void settle(struct step *step)
{
    step->pid = 0;
    for (int i = 0; i < step->dependent_count; i++)
        if (--steps[step->dependents[i]].waits_for == 0)
            ready[ready_tail++] = step->dependents[i];
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int jobs = atoi(argv[1]);
    const char *logs = argc > 3 ? argv[3] : NULL;
    read_steps(argv[2]);
    ready = grown(NULL, sizeof(int) * (count + 1));
    int *running = grown(NULL, sizeof(int) * (jobs + 1));
    for (int i = 0; i < count; i++)
        if (steps[i].waits_for == 0)
            ready[ready_tail++] = i;
    int live = 0, ended = 0;
    while (live || ready_head < ready_tail) {
        while (live < jobs && ready_head < ready_tail) {
            int index = ready[ready_head++];
            steps[index].pid = started(index, logs);
            running[live++] = index;
        }
        int status;
        pid_t pid = wait(&status);
        if (pid < 0 || status != 0)
            return 1;
        for (int i = 0; i < live; i++)
            if (steps[running[i]].pid == pid) {
                int index = running[i];
                running[i] = running[--live];
                settle(&steps[index]);
                ended++;
                break;
            }
    }
    return ended == count ? 0 : 1;
}
