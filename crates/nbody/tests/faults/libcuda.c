/* A driver of one GPU that computes nothing: memory is the host's and starts as zeros, copies copy, kernels do nothing. It fails as the
   environment says:
     CUDA_DEVICES      number of GPUs (1)               CUDA_INIT     what cuInit answers (0)
     CUDA_CAPABILITY   compute capability times ten (90) CUDA_MODULE   what loading a module answers (0)
     CUDA_MEMORY       bytes of memory (2^30)            CUDA_ALLOC_AT the number of the allocation that finds no memory, from 1
     CUDA_SYNC_AT      the number of the wait that finds the GPU broken (700, an illegal address); from then on every call does
     CUDA_VERSION      release of CUDA, 1000 times the first number and 10 times the second (99990)
     CUDA_COUNT        a file that gets the numbers of allocations, waits and loaded modules at the end
   Functions that are not here are added by the test; they answer 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long pointer;
static long allocations, waits, modules, taken;
static int broken;

static long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

__attribute__((destructor)) static void tell(void) {
  const char *name = getenv("CUDA_COUNT");
  FILE *file = name ? fopen(name, "w") : NULL;
  if (file) fprintf(file, "%ld %ld %ld\n", allocations, waits, modules), fclose(file);
}

static int wait(void) {
  if (++waits == setting("CUDA_SYNC_AT", 0)) broken = 700;
  return broken;
}

int cuInit(unsigned flags) { return setting("CUDA_INIT", 0); }
int cuDriverGetVersion(int *version) { return *version = setting("CUDA_VERSION", 99990), 0; }
int cuDeviceGetCount(int *n) { return *n = setting("CUDA_DEVICES", 1), 0; }
int cuDeviceGet(int *device, int n) { return *device = n, 0; }
int cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "Fake GPU"), 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = setting("CUDA_MEMORY", 1L << 30), 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int capability = setting("CUDA_CAPABILITY", 90);
  switch (attribute) {
    case 75: *value = capability / 10; break;
    case 76: *value = capability % 10; break;
    case 16: *value = 100; break;
    default: *value = 1024;
  }
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &broken, broken; }
int cuCtxGetCurrent(void **context) { return *context = &broken, broken; }
int cuCtxCreate_v2(void **context, unsigned flags, int device) { return *context = &broken, broken; }
int cuCtxSetCurrent(void *context) { return broken; }
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, broken; }
int cuCtxSynchronize(void) { return wait(); }
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { return *stream = malloc(1), broken; }
int cuStreamSynchronize(void *stream) { return wait(); }
int cuEventCreate(void **event, unsigned flags) { return *event = malloc(1), broken; }
int cuEventElapsedTime(float *ms, void *a, void *b) { return *ms = 1, broken; }
int cuEventSynchronize(void *event) { return broken; }
int cuEventQuery(void *event) { return broken; }
int cuEventRecord(void *event, void *stream) { return broken; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { return broken; }
static int load(void **module) { return modules++, *module = malloc(1), setting("CUDA_MODULE", broken); }
int cuModuleLoadData(void **module, const void *image) { return load(module); }
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, void *options, void **values) { return load(module); }
int cuModuleGetFunction(void **function, void *module, const char *name) { return *function = strdup(name), broken; }
int cuFuncGetAttribute(int *value, int attribute, void *function) { return *value = 64, broken; }
int cuLaunchKernel(void) { return broken; }
int cuMemGetInfo_v2(size_t *bytes, size_t *total) {
  *total = setting("CUDA_MEMORY", 1L << 30);
  return *bytes = *total - taken, broken;
}
int cuMemAlloc_v2(pointer *memory, size_t bytes) {
  if (broken) return broken;
  if (++allocations == setting("CUDA_ALLOC_AT", 0) || taken + (long)bytes > setting("CUDA_MEMORY", 1L << 30)) return 2;
  /* Their size is kept before them. */
  char *start = calloc(1, bytes + 256);
  if (!start) return 2;
  *(size_t *)start = bytes;
  taken += bytes;
  return *memory = (pointer)(start + 256), 0;
}
int cuMemFree_v2(pointer memory) {
  if (!memory) return broken;
  taken -= *(size_t *)(memory - 256);
  return free((void *)(memory - 256)), broken;
}
int cuMemAllocHost_v2(void **memory, size_t bytes) { return *memory = calloc(1, bytes + 1), *memory ? broken : 2; }
int cuMemFreeHost(void *memory) { return free(memory), broken; }
static int copied(void *to, const void *from, size_t bytes) { return broken ? broken : (memcpy(to, from, bytes), 0); }
int cuMemcpyHtoD_v2(pointer to, const void *from, size_t bytes) { return copied((void *)to, from, bytes); }
int cuMemcpyDtoH_v2(void *to, pointer from, size_t bytes) { return copied(to, (void *)from, bytes); }
int cuMemcpyDtoD_v2(pointer to, pointer from, size_t bytes) { return copied((void *)to, (void *)from, bytes); }
int cuMemcpyHtoDAsync_v2(pointer to, const void *from, size_t bytes, void *s) { return copied((void *)to, from, bytes); }
int cuMemcpyDtoHAsync_v2(void *to, pointer from, size_t bytes, void *s) { return copied(to, (void *)from, bytes); }
int cuMemcpyDtoDAsync_v2(pointer to, pointer from, size_t bytes, void *s) { return copied((void *)to, (void *)from, bytes); }
static int filled(pointer to, int value, size_t n) { return broken ? broken : (memset((void *)to, value, n), 0); }
int cuMemsetD8_v2(pointer to, unsigned char value, size_t n) { return filled(to, value, n); }
int cuMemsetD8Async(pointer to, unsigned char value, size_t n, void *s) { return filled(to, value, n); }
int cuMemsetD32_v2(pointer to, unsigned value, size_t n) { return filled(to, value, 4 * n); }
int cuMemsetD32Async(pointer to, unsigned value, size_t n, void *s) { return filled(to, value, 4 * n); }
int cuGetErrorString(int error, const char **text) { return *text = "an error of the fake driver", 0; }
