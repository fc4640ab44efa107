/* Forks after a sum, and while other threads sum: parent and child go on with the right bits. */
#include <nbody.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 2000, THREADS = 3, FORKS = 12 };

static double x[N][3], q[N], expected[N][3];
static nbody_solver *solver;
static nbody_options options;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stop, sums;

/* Whether a sum of a new and of an old solver has the right bits. */
static int right(void) {
    double(*field)[3] = (double(*)[3])malloc(sizeof expected);
    int k, good = 1;

    for (k = 0; k < 2; k++) {
        int code = k ? nbody_evaluate(&options, N, x[0], q, N, NULL, NULL, field[0], NULL)
                     : nbody_solver_run(solver, N, x[0], q, N, NULL, NULL, field[0], NULL);
        good = good && code == NBODY_OK && memcmp(field, expected, sizeof expected) == 0;
        memset(field, 0, sizeof expected);
    }
    free(field);
    return good;
}

static void *loop(void *argument) {
    int done = 0;

    while (!done) {
        if (!right())
            *(int *)argument += 1;
        pthread_mutex_lock(&lock);
        sums++;
        done = stop;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* A child that sums, and forks a child of its own that does. */
static int child(int depth) {
    int status;
    pid_t id = fork();

    if (id < 0)
        return 1;
    if (id > 0)
        return waitpid(id, &status, 0) != id || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (!right() || (depth > 0 && child(depth - 1)))
        _exit(1);
    nbody_solver_free(solver);
    _exit(0);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

/* A sum that takes a while, with the times of its begin and end. */
struct timed {
    int code;
    double begun, ended;
};

static int begun;

static void *sum_long(void *argument) {
    enum { MANY = 12 * N };
    static double many[MANY][3], charge[MANY], potential[MANY];
    struct timed *timed = (struct timed *)argument;
    nbody_options o;
    int i;

    for (i = 0; i < MANY; i++) {
        charge[i] = 1;
        many[i][0] = x[i % N][0] + i / N;
        many[i][1] = x[i % N][1];
        many[i][2] = x[i % N][2];
    }
    nbody_options_init(&o, sizeof o);
    o.method = "direct";
    o.precision = "f64";
    o.threads = 1;
    timed->begun = seconds();
    pthread_mutex_lock(&lock);
    begun = 1;
    pthread_mutex_unlock(&lock);
    timed->code = nbody_evaluate(&o, MANY, many[0], charge, MANY, NULL, potential, NULL, NULL);
    timed->ended = seconds();
    return NULL;
}

/* Whether a fork during a sum returns after its end. A fork that comes before or after the sum is
   tried again. */
static int waits(void) {
    int try;

    for (try = 0; try < 20; try++) {
        struct timespec millisecond = {0, 1000000};
        struct timed timed;
        pthread_t thread;
        double called, returned;
        int ready = 0;
        pid_t id;

        begun = 0;
        if (pthread_create(&thread, NULL, sum_long, &timed) != 0)
            return 0;
        while (!ready) {
            nanosleep(&millisecond, NULL);
            pthread_mutex_lock(&lock);
            ready = begun;
            pthread_mutex_unlock(&lock);
        }
        nanosleep(&millisecond, NULL);
        called = seconds();
        id = fork();
        if (id == 0)
            _exit(0);
        returned = seconds();
        waitpid(id, NULL, 0);
        pthread_join(thread, NULL);
        if (timed.code != NBODY_OK)
            return 0;
        /* The sum goes on for a while after a fork that does not wait; a fork that comes before the
           sum holds the sum back, and returns at once. */
        if (timed.ended - returned < (timed.ended - timed.begun) / 2)
            return called < timed.ended;
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    int failures[THREADS] = {0}, failed = 0, i, k;

    srand(1);
    for (i = 0; i < N; i++) {
        q[i] = i % 2 ? 1 : -1;
        for (k = 0; k < 3; k++)
            x[i][k] = rand() / (RAND_MAX + 1.0);
    }
    nbody_options_init(&options, sizeof options);
    options.method = "fmm";
    options.threads = 2;
    options.box[0] = options.box[1] = options.box[2] = 1;
    if (nbody_solver_new(&solver, &options) != NBODY_OK ||
        nbody_solver_run(solver, N, x[0], q, N, NULL, NULL, expected[0], NULL) != NBODY_OK) {
        fprintf(stderr, "forks.c: %s\n", nbody_last_error());
        return 1;
    }
    failed += child(1);
    failed += !right();
    failed += !waits();

    for (i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, loop, &failures[i]) != 0)
            return 1;
    for (i = 0; i < FORKS; i++)
        failed += child(i % 3 == 0);
    pthread_mutex_lock(&lock);
    stop = 1;
    pthread_mutex_unlock(&lock);
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        failed += failures[i];
    }
    nbody_solver_free(solver);
    printf("%d failed, %s sums meanwhile\n", failed, sums >= THREADS ? "with" : "without");
    return failed || sums < THREADS ? 1 : 0;
}
