/* The instance of a functional mock-up unit, and its variables by number:
   states, their derivatives, inputs, outputs, constants, the time. */
#include "@STEM@.h"

#include <stdlib.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

enum { N = PRE_STATES, M = PRE_INPUTS, Y = PRE_OUTPUTS, K = PRE_CONSTANTS };
enum { DERIVATIVES = N, INPUTS = 2 * N, OUTPUTS = INPUTS + M, CONSTANTS = OUTPUTS + Y, TIME = CONSTANTS + K };

typedef struct {
    double t, x[N], u[M + 1], p[K + 1];
} instance;

static void begin(instance *own)
{
    int i;
    own->t = 0.0;
    for (i = 0; i < N; i++)
        own->x[i] = PRE_start[i];
    for (i = 0; i < M; i++)
        own->u[i] = 0.0;
    for (i = 0; i < K; i++)
        own->p[i] = PRE_learned[i];
}

static int get(const instance *own, const unsigned *references, size_t count, double *values)
{
    double f[N], y[Y];
    int have_f = 0, have_y = 0;
    size_t i;
    for (i = 0; i < count; i++) {
        unsigned r = references[i];
        if (r < DERIVATIVES) {
            values[i] = own->x[r];
        } else if (r < INPUTS) {
            if (!have_f)
                PRE_derivative(own->p, own->t, own->x, own->u, f);
            have_f = 1;
            values[i] = f[r - DERIVATIVES];
        } else if (r < OUTPUTS) {
            values[i] = own->u[r - INPUTS];
        } else if (r < CONSTANTS) {
            if (!have_y)
                PRE_outputs(own->p, own->t, own->x, own->u, y);
            have_y = 1;
            values[i] = y[r - OUTPUTS];
        } else if (r < TIME) {
            values[i] = own->p[r - CONSTANTS];
        } else if (r == TIME) {
            values[i] = own->t;
        } else {
            return 0;
        }
    }
    return 1;
}

static int set(instance *own, const unsigned *references, size_t count, const double *values)
{
    size_t i;
    for (i = 0; i < count; i++) {
        unsigned r = references[i];
        if (r < DERIVATIVES)
            own->x[r] = values[i];
        else if (r >= INPUTS && r < OUTPUTS)
            own->u[r - INPUTS] = values[i];
        else if (r >= CONSTANTS && r < TIME)
            own->p[r - CONSTANTS] = values[i];
        else
            return 0;
    }
    return 1;
}

static void advance(instance *own, double t, double gap)
{
    double next[N];
    int i;
    PRE_advance(own->p, t, gap, own->x, own->u, 0, next);
    for (i = 0; i < N; i++)
        own->x[i] = next[i];
    own->t = t + gap;
}

static void copy(const double *from, double *to)
{
    int i;
    for (i = 0; i < N; i++)
        to[i] = from[i];
}

