/* Wrong arguments and options: each has a code and a text that names it. Results are left alone. */
#include <nbody.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4 };

static double x[N][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, q[N] = {1, 1, 1, 1};
static double potential[N], field[N][3];
static int failures;

static void refused(int line, int code, int expected, const char *text) {
    const char *found = nbody_last_error();
    int i;

    if (code != expected || strstr(found, text) == NULL) {
        fprintf(stderr, "attack.c:%d: code %d, expected %d\n  found    \"%s\"\n  expected \"%s\"\n", line, code, expected,
                found, text);
        failures++;
    }
    for (i = 0; i < N; i++)
        if (potential[i] != 77 || field[i][2] != 77) {
            fprintf(stderr, "attack.c:%d: a result was written\n", line);
            failures++;
            potential[i] = field[i][2] = 77;
        }
}

/* A call of nbody_evaluate(). */
#define CALL(code, text, ...) refused(__LINE__, nbody_evaluate(__VA_ARGS__), code, text)

/* A sum with one option changed. */
#define OPTION(code, text, change) \
    do { \
        nbody_options_init(&o, sizeof o); \
        o.change; \
        CALL(code, text, &o, N, x[0], q, N, NULL, potential, field[0], NULL); \
    } while (0)

static void arguments(void) {
    const double *none = NULL, *odd = (const double *)((const char *)x + 4);
    const int64_t huge = INT64_MAX, wide = INT64_MAX / 8 / 3 + 1;
    nbody_result results[2];
    nbody_result *unaligned = (nbody_result *)((char *)results + 2);
    nbody_options *displaced = (nbody_options *)((char *)results + 4);

    CALL(1, "n = -1 is negative", NULL, -1, x[0], q, -1, NULL, potential, field[0], NULL);
    CALL(1, "m = -2 is negative", NULL, N, x[0], q, -2, x[0], potential, field[0], NULL);
    CALL(1, "n = -9223372036854775808", NULL, INT64_MIN, x[0], q, 0, x[0], potential, field[0], NULL);
    CALL(1, "m = 3, but targets is NULL", NULL, N, x[0], q, 3, NULL, potential, field[0], NULL);
    CALL(1, "allowed: m = 4", NULL, N, x[0], q, 0, NULL, potential, field[0], NULL);
    CALL(1, "sources is NULL; 4 rows of 3", NULL, N, none, q, N, NULL, potential, field[0], NULL);
    CALL(1, "strengths is NULL; 4 rows of 1", NULL, N, x[0], none, N, NULL, potential, field[0], NULL);
    CALL(1, "sources: 9223372036854775807 rows of 3", NULL, huge, x[0], q, 1, x[0], potential, field[0], NULL);
    CALL(1, "sources: 384307168202282326 rows of 3", NULL, wide, x[0], q, 1, x[0], potential, field[0], NULL);
    CALL(1, "potential: 9223372036854775807 rows", NULL, N, x[0], q, huge, x[0], potential, field[0], NULL);
    CALL(1, "field: 384307168202282326 rows of 3", NULL, N, x[0], q, wide, x[0], potential, field[0], NULL);
    CALL(1, "allowed: up to 384307168202282325", NULL, N, x[0], q, wide, x[0], NULL, NULL, NULL);
    CALL(1, "sources: the address", NULL, 1, odd, q, N, x[0], potential, field[0], NULL);
    CALL(1, "is not a multiple of 8", NULL, N, x[0], q, 1, odd, potential, field[0], NULL);
    CALL(1, "potential: the address", NULL, N, x[0], q, N, NULL, (double *)((char *)potential + 1), field[0], NULL);
    CALL(1, "nbody_result: the address", NULL, N, x[0], q, N, NULL, potential, field[0], unaligned);

    refused(__LINE__, nbody_options_init(NULL, sizeof(nbody_options)), 1, "options is NULL");
    refused(__LINE__, nbody_options_init(displaced, sizeof *displaced), 1, "nbody_options: the address");
    CALL(1, "nbody_options: the address", displaced, N, x[0], q, N, NULL, potential, field[0], NULL);
    refused(__LINE__, nbody_solver_new(NULL, NULL), 1, "solver is NULL");
    refused(__LINE__, nbody_solver_run(NULL, N, x[0], q, N, NULL, potential, field[0], NULL), 1, "solver is NULL");
    nbody_solver_free(NULL);
}

static void options(void) {
    nbody_options o;
    nbody_solver *solver;
    static char endless[1000];
    static const int64_t far[2] = {0, 4}, back[2] = {-1, 0}, same[2] = {1, 1}, twice[4] = {0, 1, 1, 0};

    memset(endless, 'a', sizeof endless - 1);
    OPTION(1, "kernel: allowed: laplace, yukawa:KAPPA, log", kernel = "stokes");
    OPTION(1, "kernel: allowed: laplace", kernel = "");
    OPTION(1, "kernel: its width is missing", kernel = "gauss");
    OPTION(1, "kappa \"two\" is not a number", kernel = "yukawa:two");
    OPTION(1, "kappa = -1", kernel = "yukawa:-1");
    OPTION(1, "kernel: a text of more than 255 bytes", kernel = endless);
    OPTION(1, "is not UTF-8", method = "\xff");
    OPTION(1, "softening: allowed: none, plummer:E", softening = "plumer:1");
    OPTION(1, "softening: its length is missing", softening = "plummer");
    OPTION(1, "softening: with kernel laplace", softening = "gaussian:1");
    OPTION(1, "surroundings: only with a box", surroundings = "vacuum");
    OPTION(1, "method: \"pm\" is unknown; allowed: auto, direct", method = "pm");
    OPTION(1, "precision: \"f16\" is unknown", precision = "f16");
    OPTION(1, "device: allowed: auto, cpu", device = "gpu");
    OPTION(4, "device = cuda:4711", device = "cuda:4711");
    OPTION(1, "tolerance = 0.5 is outside 1e-14 to 0.1", tolerance = 0.5);
    OPTION(1, "tolerance = 0", tolerance = 0);
    OPTION(1, "tolerance = NaN", tolerance = NAN);
    OPTION(1, "side", box[1] = -1);
    OPTION(1, "side", box[0] = NAN);
    OPTION(1, "dimension = 2; with kernel laplace allowed: 0 (chosen by the library), 3", dimension = 2);
    OPTION(1, "order = -1 is negative", order = -1);
    OPTION(1, "order = 99 is outside", order = 99; o.method = "fmm");
    OPTION(1, "theta = 2 is outside", theta = 2; o.method = "fmm");
    OPTION(1, "theta = NaN", theta = NAN; o.method = "fmm");
    OPTION(1, "leaf_size = -5 is negative", leaf_size = -5);
    OPTION(1, "leaf_size = 2000000 is outside", leaf_size = 2000000; o.method = "fmm");
    OPTION(1, "threads: 1025 is outside 1 to 1024", threads = 1025);
    OPTION(1, "threads = -1 is negative", threads = -1);
    OPTION(1, "check = -1 is negative", check = -1);
    OPTION(1, "exclusion_count = -1 is negative", exclusion_count = -1);
    OPTION(1, "exclusions is NULL; 1 rows of 2", exclusion_count = 1);
    OPTION(1, "exclusions: 9223372036854775807 rows", exclusions = far; o.exclusion_count = INT64_MAX);
    OPTION(1, "exclusions: 4 is not one of 4 sources", exclusions = far; o.exclusion_count = 1);
    OPTION(1, "exclusions: -1 is not one of 4 sources", exclusions = back; o.exclusion_count = 1);
    OPTION(1, "exclusions: the pair 1, 1", exclusions = same; o.exclusion_count = 1);
    OPTION(1, "is given twice", exclusions = twice; o.exclusion_count = 2);
    OPTION(1, "potential: the kernel vortex has none; allowed: NULL", kernel = "vortex");

    nbody_options_init(&o, sizeof o);
    o.exclusions = far;
    o.exclusion_count = 1;
    CALL(1, "exclusions: not available with targets", &o, N + 1, x[0], q, 1, x[0], NULL, NULL, NULL);

    solver = (nbody_solver *)&o;
    nbody_options_init(&o, sizeof o);
    o.kernel = "stokes";
    refused(__LINE__, nbody_solver_new(&solver, &o), 1, "kernel: allowed");
    if (solver != NULL)
        refused(__LINE__, 0, 1, "a solver after an error");
}

static void data(void) {
    nbody_options o;
    double at[2][3] = {{0, 0, 0}, {0, 0, 0}};

    nbody_options_init(&o, sizeof o);
    x[2][1] = NAN;
    CALL(2, "sources: row 2 (counted from 0) holds NaN", &o, N, x[0], q, N, NULL, potential, field[0], NULL);
    x[2][1] = 1;
    q[3] = INFINITY;
    CALL(2, "strengths: row 3 (counted from 0) holds inf", &o, N, x[0], q, N, NULL, potential, field[0], NULL);
    q[3] = 1;
    at[1][0] = -INFINITY;
    CALL(2, "targets: row 1 (counted from 0) holds -inf", &o, N, x[0], q, 2, at[0], potential, field[0], NULL);
    x[1][0] = 1e101;
    CALL(2, "coordinate", &o, N, x[0], q, N, NULL, potential, field[0], NULL);
    x[1][0] = 1e-90;
    q[1] = 1e300;
    CALL(2, "beyond the range", &o, N, x[0], q, N, NULL, potential, field[0], NULL);
    x[1][0] = q[1] = 1;
    o.box[0] = o.box[1] = o.box[2] = 3;
    o.surroundings = "vacuum";
    CALL(2, "strengths add up to", &o, N, x[0], q, N, NULL, potential, field[0], NULL);
}

/* A crystal of alternating charges on top of large equal ones. The fields of the large charges
   cancel, and single precision does not resolve the rest. */
static void tolerance(void) {
    enum { SIDE = 14, MANY = SIDE * SIDE * SIDE };
    static double many[MANY][3], charge[MANY];
    nbody_options o;
    int i, k;

    for (i = 0; i < MANY; i++) {
        const int place[3] = {i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE};
        charge[i] = (place[0] + place[1] + place[2]) % 2 ? 999 : 1001;
        for (k = 0; k < 3; k++)
            many[i][k] = place[k];
    }
    nbody_options_init(&o, sizeof o);
    o.box[0] = o.box[1] = o.box[2] = SIDE;
    o.method = "fmm";
    o.precision = "f32";
    o.tolerance = 1e-5;
    CALL(3, "tolerance 1e-5 is not reached", &o, MANY, many[0], charge, MANY, NULL, NULL, NULL, NULL);
}

int main(void) {
    int i;

    for (i = 0; i < N; i++)
        potential[i] = field[i][0] = field[i][1] = field[i][2] = 77;
    if (strcmp(nbody_last_error(), "") != 0)
        failures++;
    arguments();
    options();
    data();
    tolerance();

    /* After all that a sum is right; what is not wanted may be NULL, and sets may be empty. */
    if (nbody_evaluate(NULL, 2, x[0], q, 2, NULL, potential, NULL, NULL) != NBODY_OK || potential[0] != 1 ||
        nbody_evaluate(NULL, 2, x[0], q, 2, NULL, NULL, field[0], NULL) != NBODY_OK || field[1][0] != 1 ||
        nbody_evaluate(NULL, 2, x[0], q, 2, NULL, NULL, NULL, NULL) != NBODY_OK ||
        nbody_evaluate(NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL) != NBODY_OK ||
        nbody_evaluate(NULL, 2, x[0], q, 0, x[0], NULL, NULL, NULL) != NBODY_OK ||
        nbody_evaluate(NULL, 0, NULL, NULL, 1, x[0], potential, field[0], NULL) != NBODY_OK || potential[0] != 0) {
        fprintf(stderr, "attack.c: a correct sum failed: %s\n", nbody_last_error());
        failures++;
    }
    printf("%d failures\n", failures);
    return failures ? 1 : 0;
}
