/* Sums what it reads from its standard input and writes potential, field and result to its standard
 * output, as raw numbers.
 *   bits KERNEL SOFTENING METHOD SIDE DIMENSION COLUMNS WIDTH N M PAIRS ENTRY
 * SIDE 0 is open space, M -1 sums at the sources, ENTRY is evaluate or solver. The input holds
 * sources, strengths, targets and pairs of sources.
 */
#include <nbody.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *numbers(int64_t count) {
    void *array = malloc(count ? 8 * (size_t)count : 1);
    if (!array || fread(array, 8, (size_t)count, stdin) != (size_t)count)
        exit(2);
    return array;
}

int main(int argc, char **argv) {
    nbody_options options;
    nbody_result result;
    nbody_solver *solver = NULL;
    int64_t n, m, pairs, dimension, columns, width;
    double *sources, *strengths, *targets = NULL, *potential = NULL, *field;
    int code, own;

    if (argc != 12)
        return 2;
    nbody_options_init(&options, sizeof options);
    options.kernel = argv[1];
    options.softening = argv[2];
    options.method = argv[3];
    options.box[0] = options.box[1] = options.box[2] = atof(argv[4]);
    options.tolerance = 1e-6;
    options.threads = 2;
    options.check = 50;
    dimension = options.dimension = atoi(argv[5]);
    columns = atoi(argv[6]);
    width = atoi(argv[7]);
    n = atoi(argv[8]);
    m = atoi(argv[9]);
    pairs = atoi(argv[10]);
    own = m < 0;
    if (own)
        m = n;
    sources = (double *)numbers(n * dimension);
    strengths = (double *)numbers(n * columns);
    if (!own)
        targets = (double *)numbers(m * dimension);
    options.exclusion_count = pairs;
    options.exclusions = (int64_t *)numbers(pairs * 2);
    /* Exactly as long as the results, so that a sanitizer sees a number too many. */
    if (strcmp(argv[1], "vortex") != 0 && strcmp(argv[1], "harmonic") != 0)
        potential = (double *)malloc(8 * (size_t)m);
    field = (double *)malloc(8 * (size_t)(m * width));

    result.size = sizeof result;
    if (strcmp(argv[11], "evaluate") == 0) {
        code = nbody_evaluate(&options, n, sources, strengths, m, targets, potential, field, &result);
    } else {
        code = nbody_solver_new(&solver, &options);
        /* The solver has copies of everything. */
        memset(argv[1], '?', strlen(argv[1]));
        memset((void *)options.exclusions, 1, 16 * (size_t)pairs);
        memset(&options, 0xA5, offsetof(nbody_options, exclusion_count));
        if (code == NBODY_OK)
            code = nbody_solver_run(solver, n, sources, strengths, m, targets, potential, field, &result);
        nbody_solver_free(solver);
    }
    if (code != NBODY_OK) {
        fprintf(stderr, "%d: %s\n", code, nbody_last_error());
        return 1;
    }
    if (potential)
        fwrite(potential, 8, (size_t)m, stdout);
    fwrite(field, 8, (size_t)(m * width), stdout);
    {
        const nbody_result *r = &result;
        const double known[] = {(double)r->coincident_pairs, (double)r->order, r->theta, (double)r->leaf_size,
                                (double)r->gpu, (double)r->sample, r->rms, r->median, r->p99, r->max,
                                r->l2, r->potential, (double)r->floored, r->rms_low, r->rms_high,
                                r->l2_low, r->l2_high};
        fwrite(known, sizeof known, 1, stdout);
        printf("%s %s\n", result.method, result.precision);
    }
    free(sources);
    free(strengths);
    free(targets);
    free((void *)options.exclusions);
    free(potential);
    free(field);
    return 0;
}
