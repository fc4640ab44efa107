/* Eight threads with random calls: the right bits, and errors that stay with their thread. */
#include <nbody.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, CALLS = 150, N = 1500, CASES = 12 };

static double x[N][3], q[N], expected[CASES][N][3];
static nbody_solver *shared[CASES];

static int64_t count(int number) {
    static const int64_t counts[] = {1, 10, 300, N};
    return counts[number % 4];
}

static void options(int number, nbody_options *o) {
    nbody_options_init(o, sizeof *o);
    o->threads = number % 4;
    if (number % 3)
        o->method = "fmm";
    if (number % 3 == 2)
        o->box[0] = o->box[1] = o->box[2] = 1;
}

static void *calls(void *argument) {
    unsigned state = *(unsigned *)argument, wrong = 0, step;
    double(*field)[3] = (double(*)[3])malloc(sizeof expected[0]);
    double bad[3] = {NAN, 0, 0};
    char text[64];

    for (step = 0; step < CALLS; step++) {
        int number, code, kind;
        nbody_options o, plain;

        nbody_options_init(&plain, sizeof plain);
        state = state * 1664525u + 1013904223u;
        number = (int)(state >> 16) % CASES;
        kind = (int)(state >> 8) % 4;
        options(number, &o);
        if (kind == 0) {
            /* The text holds a number of this call. */
            o.order = -(int64_t)(state >> 4) - 1;
            sprintf(text, "order = %ld is", (long)o.order);
            wrong += nbody_evaluate(&o, N, x[0], q, N, NULL, NULL, field[0], NULL) != NBODY_ERROR_REQUEST;
            /* A sum of this thread that succeeds, and those of others that fail, leave the text. */
            wrong += nbody_evaluate(&plain, 300, x[0], q, 300, NULL, NULL, field[0], NULL) != NBODY_OK;
            wrong += strstr(nbody_last_error(), text) == NULL;
        } else if (kind == 1) {
            wrong += nbody_evaluate(&o, 1, bad, q, 1, NULL, NULL, field[0], NULL) != NBODY_ERROR_DATA;
            wrong += strstr(nbody_last_error(), "holds NaN") == NULL;
        } else {
            int64_t n = count(number);
            code = kind == 2 ? nbody_evaluate(&o, n, x[0], q, n, NULL, NULL, field[0], NULL)
                             : nbody_solver_run(shared[number], n, x[0], q, n, NULL, NULL, field[0], NULL);
            wrong += code != NBODY_OK || memcmp(field, expected[number], sizeof *field * (size_t)n) != 0;
        }
    }
    free(field);
    *(unsigned *)argument = wrong;
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    unsigned states[THREADS], wrong = 0, i, k;

    srand(1);
    for (i = 0; i < N; i++) {
        q[i] = i % 2 ? 1 : -1;
        for (k = 0; k < 3; k++)
            x[i][k] = rand() / (RAND_MAX + 1.0);
    }
    for (i = 0; i < CASES; i++) {
        nbody_options o;
        int64_t n = count((int)i);
        options((int)i, &o);
        if (nbody_evaluate(&o, n, x[0], q, n, NULL, NULL, expected[i][0], NULL) != NBODY_OK ||
            nbody_solver_new(&shared[i], &o) != NBODY_OK) {
            fprintf(stderr, "threads.c: %s\n", nbody_last_error());
            return 1;
        }
    }
    for (i = 0; i < THREADS; i++) {
        states[i] = i + 1;
        if (pthread_create(&threads[i], NULL, calls, &states[i]) != 0)
            return 1;
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong += states[i];
    }
    for (i = 0; i < CASES; i++)
        nbody_solver_free(shared[i]);
    printf("%u wrong\n", wrong);
    return wrong ? 1 : 0;
}
