/* Programs that know fewer or more members than the library. Prints the sizes of the structures. */
#include <nbody.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, nbody_last_error()); \
            return 1; \
        } \
    } while (0)

typedef struct newer_options {
    nbody_options known;
    double unknown[2];
} newer_options;

typedef struct newer_result {
    nbody_result known;
    double unknown[2];
} newer_result;

static const double x[2][3] = {{0, 0, 0}, {2, 0, 0}};
static const double q[2] = {1, -1};

/* The sum of two charges with these options. */
static int sum(const nbody_options *options, nbody_result *result) {
    double potential[2] = {0, 0}, field[2][3];
    int code = nbody_evaluate(options, 2, x[0], q, 2, NULL, potential, field[0], result);
    if (code == NBODY_OK && (potential[0] != -0.5 || potential[1] != 0.5))
        return -1;
    return code;
}

/* A program whose header ends before the member at `size`. */
static int older(size_t size) {
    union {
        nbody_options options;
        unsigned char bytes[sizeof(nbody_options)];
    } u;
    size_t i;

    memset(u.bytes, 0xA5, sizeof u.bytes);
    CHECK(nbody_options_init(&u.options, size) == NBODY_OK);
    CHECK(u.options.size == size);
    for (i = size; i < sizeof u.bytes; i++)
        CHECK(u.bytes[i] == 0xA5);
    CHECK(sum(&u.options, NULL) == NBODY_OK);
    return 0;
}

int main(void) {
    nbody_options options;
    newer_options newer;
    newer_result result;
    size_t size;
    const size_t bad[] = {0, 1, 7, 12, sizeof options + 4, 4104, (size_t)-8};

    for (size = 8; size <= sizeof options; size += 8)
        if (older(size) != 0)
            return 1;

    /* Members that are there still count. */
    CHECK(nbody_options_init(&options, offsetof(nbody_options, box)) == NBODY_OK);
    options.tolerance = 7;
    CHECK(sum(&options, NULL) == NBODY_ERROR_REQUEST && strstr(nbody_last_error(), "tolerance = 7"));

    memset(&newer, 0xA5, sizeof newer);
    CHECK(nbody_options_init(&newer.known, sizeof newer) == NBODY_OK);
    CHECK(newer.known.size == sizeof newer && newer.unknown[0] == 0 && newer.unknown[1] == 0);
    CHECK(sum(&newer.known, NULL) == NBODY_OK);
    newer.unknown[1] = 1;
    CHECK(sum(&newer.known, NULL) == NBODY_ERROR_REQUEST && strstr(nbody_last_error(), "does not know"));

    for (size = 0; size < sizeof bad / sizeof bad[0]; size++) {
        nbody_options_init(&options, sizeof options);
        CHECK(nbody_options_init(&options, bad[size]) == NBODY_ERROR_REQUEST);
        CHECK(options.size == sizeof options);
        options.size = bad[size];
        CHECK(sum(&options, NULL) == NBODY_ERROR_REQUEST && strstr(nbody_last_error(), "nbody_options.size"));
        result.known.size = bad[size];
        CHECK(sum(NULL, &result.known) == NBODY_ERROR_REQUEST && strstr(nbody_last_error(), "nbody_result.size"));
    }

    /* A result of two members, and one of more than the library has. */
    memset(&result, 0xA5, sizeof result);
    result.known.size = offsetof(nbody_result, check_seconds);
    CHECK(sum(NULL, &result.known) == NBODY_OK);
    CHECK(result.known.size == 16 && result.known.seconds > 0 && result.known.seconds < 60);
    CHECK(((unsigned char *)&result)[16] == 0xA5 && ((unsigned char *)&result)[sizeof result - 1] == 0xA5);
    result.known.size = sizeof result;
    CHECK(sum(NULL, &result.known) == NBODY_OK);
    CHECK(result.known.size == sizeof result && result.unknown[0] == 0 && result.unknown[1] == 0);
    CHECK(strcmp(result.known.method, "direct") == 0 && result.known.gpu == -1 && result.known.sample == 0);

    printf("%zu %zu\n", sizeof options, sizeof(nbody_result));
    return 0;
}
