/* nbody.h: fast sums of pairwise interactions, the C interface of libnbody.
 *
 * Gravity, Coulomb, screened, vortex and Gauss interactions of n sources at m targets, directly,
 * by treecode or by fast multipole method, on cores or on an NVIDIA GPU. You give the relative
 * error that you accept; method, order, opening angle and leaf size follow from it.
 *
 *     nbody_options options;
 *     nbody_options_init(&options, sizeof options);
 *     options.softening = "plummer:0.01";
 *     if (nbody_evaluate(&options, n, x, mass, n, NULL, potential, field, NULL) != NBODY_OK)
 *         fprintf(stderr, "%s\n", nbody_last_error());
 *
 * All functions may be called by any number of threads at once. Arrays are dense, rows one after
 * another: [n][3] is x, y, z of the first point, then of the second. docs/c.md is the guide.
 *
 * Made by cbindgen from crates/nbody-capi/src: change the text there. */

#ifndef NBODY_H
#define NBODY_H

#include <stddef.h>
#include <stdint.h>

/**
 * The call did what was asked.
 */
#define NBODY_OK 0

/**
 * An argument or option is wrong, or does not go together with the others.
 */
#define NBODY_ERROR_REQUEST 1

/**
 * The numbers in the arrays: values that are not finite, points that are too close, results
 * beyond the range of numbers.
 */
#define NBODY_ERROR_DATA 2

/**
 * The method and precision that were asked for do not reach the tolerance.
 */
#define NBODY_ERROR_TOLERANCE 3

/**
 * The device is not available, too small, or failed.
 */
#define NBODY_ERROR_DEVICE 4

/**
 * An error of the library, or the system refuses threads.
 */
#define NBODY_ERROR_INTERNAL 5

/**
 * Options that were checked, with the device that they name: see nbody_solver_new().
 */
typedef struct nbody_solver nbody_solver;

/**
 * Options of a sum. Set all members by nbody_options_init() before you change some.
 *
 * Later versions add members at the end; `size` says which of them a program knows. A text that
 * is NULL has its default. Texts end with 0 and have at most 255 bytes.
 */
typedef struct nbody_options {
  /**
   * sizeof(nbody_options) of the program, set by nbody_options_init().
   */
  size_t size;
  /**
   * What is summed: "laplace" (default), "yukawa:KAPPA", "log", "harmonic", "vortex" or
   * "gauss:SIGMA", with a number in place of KAPPA (1/length) and SIGMA (length).
   */
  const char *kernel;
  /**
   * Shape of the sources: "none" (default), "plummer:E", "spline:E" or "p1:E" for laplace, "p1:E"
   * for vortex, "algebraic:E" or "gaussian:E" for log and harmonic. E is a length.
   */
  const char *softening;
  /**
   * What all images of a box are embedded in: "tinfoil" (default), "vacuum" or a dielectric
   * constant such as "78.5". Only with a box.
   */
  const char *surroundings;
  /**
   * "auto" (default), "direct", "treecode", "fmm", or in a periodic box "mesh".
   */
  const char *method;
  /**
   * Arithmetic of the sum: "auto" (default), "f32", "mixed" or "f64". Results are double.
   */
  const char *precision;
  /**
   * "auto" (default), "cpu", "cuda", "cuda:N" with N the number of a GPU from 0, several of these with commas, "cuda:all".
   */
  const char *device;
  /**
   * Relative error of the field, rms and L2 over the targets (log and harmonic: L2 alone): 1e-14 to
   * 0.1, by default 1e-4. With gauss the largest error of a potential over the sum of |strengths|.
   */
  double tolerance;
  /**
   * Sides of a periodic box, a length each; all 0 (default) is open space. Only laplace.
   */
  double box[3];
  /**
   * Number of axes of positions: 1, 2 or 3 with gauss; 0 (default) is 3, and 2 with log and
   * harmonic.
   */
  int64_t dimension;
  /**
   * Order of the expansions, 1 to 30; 0 (default) follows from the tolerance.
   */
  int64_t order;
  /**
   * Opening angle, 0.2 to 1; 0 (default) follows from the tolerance.
   */
  double theta;
  /**
   * Largest number of particles in a leaf, 1 to 1000000; 0 (default) follows from the tolerance.
   */
  int64_t leaf_size;
  /**
   * Worker threads, 1 to 1024; 0 (default) is one for each core.
   */
  int64_t threads;
  /**
   * Number of targets whose field is compared with the direct sum in double precision; 0
   * (default) compares none. See nbody_result.
   */
  int64_t check;
  /**
   * Number of pairs of sources that do not interact; 0 (default) is none. Only laplace and
   * yukawa without targets.
   */
  int64_t exclusion_count;
  /**
   * The pairs: indices of sources from 0, [exclusion_count][2]; NULL if there are none.
   */
  const int64_t *exclusions;
} nbody_options;

/**
 * What is known of a sum besides potential and field. Set `size` before the call.
 *
 * Later versions add members at the end; `size` says which of them a program knows.
 */
typedef struct nbody_result {
  /**
   * sizeof(nbody_result) of the program, set by the program.
   */
  size_t size;
  /**
   * Wall time of the sum in seconds.
   */
  double seconds;
  /**
   * Wall time of the direct sums that errors were measured with, in seconds; 0 without `check`.
   */
  double check_seconds;
  /**
   * Pairs at distance 0 that contributed nothing. A source's own pair does not count.
   */
  int64_t coincident_pairs;
  /**
   * "direct", "treecode", "fmm" or "mesh". The text lives as long as the program.
   */
  const char *method;
  /**
   * "f32", "mixed" or "f64". The text lives as long as the program.
   */
  const char *precision;
  /**
   * Order of the expansions; 0 in direct sums.
   */
  int64_t order;
  /**
   * Opening angle; 0 in direct sums and with gauss.
   */
  double theta;
  /**
   * Largest number of particles in a leaf.
   */
  int64_t leaf_size;
  /**
   * Number of the GPU that summed, or -1 for the cores.
   */
  int64_t gpu;
  /**
   * Targets that were compared with the direct sum; 0 without `check`, and the members below too.
   */
  int64_t sample;
  /**
   * Root mean square of the relative errors of the field (gauss: of the potential, relative to the sum
   * of |strengths|, here and below).
   */
  double rms;
  /**
   * Half of the targets have at most this relative error.
   */
  double median;
  /**
   * 99 % of the targets have at most this relative error.
   */
  double p99;
  /**
   * The largest relative error.
   */
  double max;
  /**
   * Norm of all errors over the norm of all fields.
   */
  double l2;
  /**
   * Relative error of the potential in periodic boxes, L2; 0 elsewhere.
   */
  double potential;
  /**
   * Targets whose field nearly vanishes: their error is relative to the largest contribution.
   */
  int64_t floored;
  /**
   * Lower end of the interval that holds `rms` of all targets with a probability of about 95 %; equal
   * to `rms` where all targets were compared.
   */
  double rms_low;
  /**
   * Upper end of that interval.
   */
  double rms_high;
  /**
   * Lower end of the interval of `l2`, likewise.
   */
  double l2_low;
  /**
   * Upper end of that interval.
   */
  double l2_high;
} nbody_result;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the version of the library, such as "0.1.0". The text lives as long as the program.
 */
const char *nbody_version(void);

/**
 * Returns the text of the last call of this thread that failed, or "" if none has.
 *
 * The text names the argument and what is allowed. It is valid until another call of this thread
 * fails. It is UTF-8, and never NULL.
 */
const char *nbody_last_error(void);

/**
 * Sets all options to their defaults.
 *
 * @param options the options
 * @param size sizeof(nbody_options), which is less in programs that know fewer options
 * @return NBODY_OK, or NBODY_ERROR_REQUEST if options is NULL or the size impossible
 */
int nbody_options_init(struct nbody_options *options, size_t size);

/**
 * Sums the interactions of n sources at m targets.
 *
 * With r the distance of target and source, and no constants of nature:
 *
 *    kernel       sum                           strengths potential field
 *    laplace      q / r                         [n]       [m]       [m][3], minus the gradient
 *    yukawa:KAPPA q exp(-KAPPA r) / r           [n]       [m]       [m][3], minus the gradient
 *    log          q log(r), in the plane        [n]       [m]       [m][2], minus the gradient
 *    harmonic     q / (z_j - z), z = x + i y    [n][2]    none      [m][2], real and imaginary part
 *    vortex       -(x - x_j) x w_j / (4 pi r^3) [n][3]    none      [m][3], the velocity
 *    gauss:SIGMA  q exp(-r^2 / (2 SIGMA^2))     [n]       [m]       [m][d], minus the gradient
 *
 * Sources, targets and strengths are read and not changed. Nobody may write to them during the
 * call. Results are written if the sum succeeds and are left alone otherwise. The same input gives
 * the same bits on any number of threads.
 *
 * @param options options, or NULL for the defaults
 * @param n number of sources, 0 or more
 * @param sources positions [n][d] in any unit of length; d is 3, 2 with log and harmonic, or
 *        options->dimension with gauss
 * @param strengths charges, masses or vorticities as in the table; [n][2] are the real and the
 *        imaginary part
 * @param m number of targets, 0 or more
 * @param targets positions [m][d]; NULL sums at the sources, none of which acts on itself (but
 *        with gauss it does), and m is then n
 * @param potential [m], or NULL if it is not wanted or the kernel has none
 * @param field [m][3], [m][2] or [m][d] as in the table, or NULL if it is not wanted
 * @param result what else is known of the sum, or NULL; set result->size before
 * @return NBODY_OK or an error, whose text nbody_last_error() returns
 */
int nbody_evaluate(const struct nbody_options *options,
                   int64_t n,
                   const double *sources,
                   const double *strengths,
                   int64_t m,
                   const double *targets,
                   double *potential,
                   double *field,
                   struct nbody_result *result);

/**
 * Makes a solver, which reads and keeps options and keeps a GPU open between sums.
 *
 * Options, texts and exclusions are copied: the caller may change or free them afterwards.
 *
 * @param solver the new solver, or NULL after an error; nbody_solver_free() frees it
 * @param options options, or NULL for the defaults
 * @return NBODY_OK or an error, whose text nbody_last_error() returns
 */
int nbody_solver_new(struct nbody_solver **solver, const struct nbody_options *options);

/**
 * Sums with the options of a solver. Arguments, results and errors are those of nbody_evaluate().
 *
 * Threads may share a solver: their sums run one after another.
 */
int nbody_solver_run(const struct nbody_solver *solver,
                     int64_t n,
                     const double *sources,
                     const double *strengths,
                     int64_t m,
                     const double *targets,
                     double *potential,
                     double *field,
                     struct nbody_result *result);

/**
 * Frees a solver, which no thread may use any more. NULL is ignored.
 */
void nbody_solver_free(struct nbody_solver *solver);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NBODY_H */
