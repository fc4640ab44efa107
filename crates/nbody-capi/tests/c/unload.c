/* Loads the library, sums on worker threads and unloads it, twice, as programs with plugins do. */
#include <dlfcn.h>
#include <nbody.h>
#include <stdio.h>
#include <time.h>

enum { N = 1500 };

static double x[N][3], q[N], potential[N];

typedef int (*evaluate)(const nbody_options *, int64_t, const double *, const double *, int64_t, const double *,
                        double *, double *, nbody_result *);

int main(void) {
    const struct timespec pause = {0, 20000000};
    int i;

    for (i = 0; i < N; i++) {
        x[i][0] = i % 10;
        x[i][1] = i / 10 % 10;
        x[i][2] = i / 100;
        q[i] = 1;
    }
    for (i = 0; i < 2; i++) {
        void *library = dlopen("libnbody.so.0", RTLD_NOW | RTLD_LOCAL);
        evaluate sum;
        const char *(*version)(void);

        if (!library) {
            fprintf(stderr, "unload.c: %s\n", dlerror());
            return 1;
        }
        *(void **)&sum = dlsym(library, "nbody_evaluate");
        *(void **)&version = dlsym(library, "nbody_version");
        if (!version)
            return 1;
        printf("%s\n", version());
        if (!sum || sum(NULL, N, x[0], q, N, NULL, potential, NULL, NULL) != NBODY_OK || dlclose(library) != 0)
            return 1;
        /* The workers wake up now and then. */
        nanosleep(&pause, NULL);
    }
    return 0;
}
