/* Four threads that sum with one set of options each, and one solver that all of them share.
 *
 *     cc solver.c $(pkg-config --cflags --libs nbody) -lpthread -o solver && ./solver
 */
#include <nbody.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, N = 1000, STEPS = 3 };

typedef struct work {
    int number;
    const nbody_solver *shared;
    int failed;
} work;

static double position[N][3], charge[N];

static void *sums(void *argument) {
    work *mine = (work *)argument;
    static double fields[THREADS][2][N][3];
    double(*field)[N][3] = fields[mine->number];
    nbody_options options;
    nbody_solver *solver;
    int step;

    /* A solver reads its options once and keeps a GPU open between sums. */
    nbody_options_init(&options, sizeof options);
    options.method = "fmm";
    options.threads = 2;
    mine->failed = 1;
    if (nbody_solver_new(&solver, &options) != NBODY_OK) {
        fprintf(stderr, "solver: %s\n", nbody_last_error());
        return NULL;
    }
    for (step = 0; step < STEPS; step++) {
        if (nbody_solver_run(solver, N, position[0], charge, N, NULL, NULL, field[0][0], NULL) != NBODY_OK ||
            nbody_solver_run(mine->shared, N, position[0], charge, N, NULL, NULL, field[1][0], NULL) != NBODY_OK) {
            /* The text belongs to this thread. */
            fprintf(stderr, "solver: %s\n", nbody_last_error());
            break;
        }
    }
    nbody_solver_free(solver);
    /* Equal options give equal bits, on any number of threads. */
    mine->failed = step < STEPS || memcmp(field[0], field[1], sizeof field[0]) != 0;
    return NULL;
}

int main(void) {
    nbody_options options;
    nbody_solver *shared;
    pthread_t threads[THREADS];
    work works[THREADS];
    int i, failed = 0;

    for (i = 0; i < N; i++) {
        position[i][0] = i % 10;
        position[i][1] = i / 10 % 10;
        position[i][2] = 0.5 * (i / 100);
        charge[i] = i % 2 ? 1.0 : -1.0;
    }
    nbody_options_init(&options, sizeof options);
    options.method = "fmm";
    if (nbody_solver_new(&shared, &options) != NBODY_OK) {
        fprintf(stderr, "solver: %s\n", nbody_last_error());
        return 1;
    }
    for (i = 0; i < THREADS; i++) {
        works[i].number = i;
        works[i].shared = shared;
        if (pthread_create(&threads[i], NULL, sums, &works[i]) != 0)
            return 1;
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        failed += works[i].failed;
    }
    nbody_solver_free(shared);
    printf("%d threads, %d failed\n", THREADS, failed);
    return failed ? 1 : 0;
}
