/* Gravity of random bodies: potential, energy and the error of the forces.
 *
 *     cc sum.c $(pkg-config --cflags --libs nbody) -o sum && ./sum
 */
#include <nbody.h>
#include <stdio.h>

enum { N = 2000 };

static double position[N][3], mass[N], potential[N], field[N][3];

/* A number from 0 to 1. */
static double uniform(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

int main(void) {
    nbody_options options;
    nbody_result result;
    double energy = 0.0;
    int i, k;

    for (i = 0; i < N; i++) {
        mass[i] = 1.0 / N;
        for (k = 0; k < 3; k++)
            position[i][k] = uniform();
    }

    nbody_options_init(&options, sizeof options);
    options.softening = "plummer:0.01";
    options.tolerance = 1e-6;
    options.check = 100;
    result.size = sizeof result;
    /* Without targets (NULL) the sums are those at the bodies, and no body acts on itself. */
    if (nbody_evaluate(&options, N, position[0], mass, N, NULL, potential, field[0], &result) != NBODY_OK) {
        fprintf(stderr, "sum: %s\n", nbody_last_error());
        return 1;
    }

    /* With G = 1 the gravitational potential is -potential, the acceleration -field. */
    for (i = 0; i < N; i++)
        energy -= 0.5 * mass[i] * potential[i];
    printf("energy %.12f by %s in %s, %.3f s\n", energy, result.method, result.precision, result.seconds);
    printf("error of the forces, rms: %.1e of %.1e\n", result.rms, options.tolerance);
    return result.rms <= options.tolerance ? 0 : 1;
}
