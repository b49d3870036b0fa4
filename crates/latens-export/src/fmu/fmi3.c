/* FMI 3.0, model exchange and co-simulation. Types are those of fmi3PlatformTypes.h. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef void *fmi3Instance;
typedef void *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef const char *fmi3String;
typedef const uint8_t *fmi3Binary;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef int fmi3Enum;

EXPORT const char *fmi3GetVersion(void)
{
    return "3.0";
}

EXPORT fmi3Status fmi3SetDebugLogging(fmi3Instance c, bool on, size_t n, const fmi3String categories[])
{
    (void)c;
    (void)on;
    (void)n;
    (void)categories;
    return fmi3OK;
}

static fmi3Instance make(fmi3String token)
{
    instance *own;
    if (!token || strcmp(token, "@TOKEN@") != 0)
        return 0;
    own = (instance *)malloc(sizeof *own);
    if (own)
        begin(own);
    return own;
}

EXPORT fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, bool visible,
                                                 bool logging, void *environment, void *log)
{
    (void)name;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)environment;
    (void)log;
    return make(token);
}

EXPORT fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, bool visible,
                                                bool logging, bool events, bool early,
                                                const fmi3ValueReference required[], size_t n, void *environment,
                                                void *log, void *update)
{
    (void)name;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)events;
    (void)early;
    (void)required;
    (void)n;
    (void)environment;
    (void)log;
    (void)update;
    return make(token);
}

EXPORT fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources,
                                                      bool visible, bool logging, void *environment, void *log,
                                                      void *update, void *lock, void *unlock)
{
    (void)name;
    (void)token;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)environment;
    (void)log;
    (void)update;
    (void)lock;
    (void)unlock;
    return 0;
}

EXPORT void fmi3FreeInstance(fmi3Instance c)
{
    free(c);
}

EXPORT fmi3Status fmi3EnterInitializationMode(fmi3Instance c, bool tolerant, double tolerance, double start, bool stops,
                                              double stop)
{
    (void)tolerant;
    (void)tolerance;
    (void)stops;
    (void)stop;
    ((instance *)c)->t = start;
    return fmi3OK;
}

#define NOTHING(name)                      \
    EXPORT fmi3Status name(fmi3Instance c) \
    {                                      \
        (void)c;                           \
        return fmi3OK;                     \
    }
NOTHING(fmi3ExitInitializationMode)
NOTHING(fmi3EnterEventMode)
NOTHING(fmi3Terminate)
NOTHING(fmi3EnterConfigurationMode)
NOTHING(fmi3ExitConfigurationMode)
NOTHING(fmi3EvaluateDiscreteStates)
NOTHING(fmi3EnterContinuousTimeMode)
NOTHING(fmi3EnterStepMode)

EXPORT fmi3Status fmi3Reset(fmi3Instance c)
{
    begin((instance *)c);
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference r[], size_t n, double v[], size_t m)
{
    return m == n && get((instance *)c, r, n, v) ? fmi3OK : fmi3Error;
}

EXPORT fmi3Status fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference r[], size_t n, const double v[], size_t m)
{
    return m == n && set((instance *)c, r, n, v) ? fmi3OK : fmi3Error;
}

/* there are numbers of 64 bits alone */
#define NONE(name, type)                                                                            \
    EXPORT fmi3Status name(fmi3Instance c, const fmi3ValueReference r[], size_t n, type v[], size_t m) \
    {                                                                                               \
        (void)c;                                                                                    \
        (void)r;                                                                                    \
        (void)v;                                                                                    \
        return n == 0 && m == 0 ? fmi3OK : fmi3Error;                                               \
    }
#define NEITHER(kind, type)    \
    NONE(fmi3Get##kind, type)  \
    NONE(fmi3Set##kind, const type)
NEITHER(Float32, float)
NEITHER(Int8, int8_t)
NEITHER(UInt8, uint8_t)
NEITHER(Int16, int16_t)
NEITHER(UInt16, uint16_t)
NEITHER(Int32, int32_t)
NEITHER(UInt32, uint32_t)
NEITHER(Int64, int64_t)
NEITHER(UInt64, uint64_t)
NEITHER(Boolean, bool)
NEITHER(String, fmi3String)

#define BINARY(name, sizes, values)                                                                      \
    EXPORT fmi3Status name(fmi3Instance c, const fmi3ValueReference r[], size_t n, sizes s[], values v[], size_t m) \
    {                                                                                                    \
        (void)c;                                                                                         \
        (void)r;                                                                                         \
        (void)s;                                                                                         \
        (void)v;                                                                                         \
        return n == 0 && m == 0 ? fmi3OK : fmi3Error;                                                    \
    }
BINARY(fmi3GetBinary, size_t, fmi3Binary)
BINARY(fmi3SetBinary, const size_t, const fmi3Binary)

#define CLOCK(name, type)                                                                   \
    EXPORT fmi3Status name(fmi3Instance c, const fmi3ValueReference r[], size_t n, type v[]) \
    {                                                                                       \
        (void)c;                                                                            \
        (void)r;                                                                            \
        (void)v;                                                                            \
        return n == 0 ? fmi3OK : fmi3Error;                                                 \
    }
CLOCK(fmi3GetClock, bool)
CLOCK(fmi3SetClock, const bool)
CLOCK(fmi3GetShiftDecimal, double)
CLOCK(fmi3SetIntervalDecimal, const double)
CLOCK(fmi3SetShiftDecimal, const double)

EXPORT fmi3Status fmi3GetIntervalDecimal(fmi3Instance c, const fmi3ValueReference r[], size_t n, double v[], fmi3Enum q[])
{
    (void)c;
    (void)r;
    (void)v;
    (void)q;
    return n == 0 ? fmi3OK : fmi3Error;
}

EXPORT fmi3Status fmi3GetIntervalFraction(fmi3Instance c, const fmi3ValueReference r[], size_t n, uint64_t v[],
                                          uint64_t w[], fmi3Enum q[])
{
    (void)c;
    (void)r;
    (void)v;
    (void)w;
    (void)q;
    return n == 0 ? fmi3OK : fmi3Error;
}

#define FRACTION(name, type)                                                                           \
    EXPORT fmi3Status name(fmi3Instance c, const fmi3ValueReference r[], size_t n, type v[], type w[]) \
    {                                                                                                  \
        (void)c;                                                                                       \
        (void)r;                                                                                       \
        (void)v;                                                                                       \
        (void)w;                                                                                       \
        return n == 0 ? fmi3OK : fmi3Error;                                                            \
    }
FRACTION(fmi3GetShiftFraction, uint64_t)
FRACTION(fmi3SetIntervalFraction, const uint64_t)
FRACTION(fmi3SetShiftFraction, const uint64_t)

EXPORT fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance c, fmi3ValueReference r, size_t *n)
{
    (void)c;
    (void)r;
    *n = 0;
    return fmi3Error;
}

EXPORT fmi3Status fmi3GetVariableDependencies(fmi3Instance c, fmi3ValueReference r, size_t a[], fmi3ValueReference b[],
                                              size_t d[], fmi3Enum k[], size_t n)
{
    (void)c;
    (void)r;
    (void)a;
    (void)b;
    (void)d;
    (void)k;
    (void)n;
    return fmi3Error;
}

EXPORT fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *state)
{
    if (!*state)
        *state = malloc(sizeof(instance));
    if (!*state)
        return fmi3Error;
    memcpy(*state, c, sizeof(instance));
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState state)
{
    memcpy(c, state, sizeof(instance));
    return fmi3OK;
}

EXPORT fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *state)
{
    (void)c;
    free(*state);
    *state = 0;
    return fmi3OK;
}

EXPORT fmi3Status fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState state, size_t *size)
{
    (void)c;
    (void)state;
    *size = sizeof(instance);
    return fmi3OK;
}

EXPORT fmi3Status fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState state, uint8_t bytes[], size_t size)
{
    (void)c;
    if (size < sizeof(instance))
        return fmi3Error;
    memcpy(bytes, state, sizeof(instance));
    return fmi3OK;
}

EXPORT fmi3Status fmi3DeserializeFMUState(fmi3Instance c, const uint8_t bytes[], size_t size, fmi3FMUState *state)
{
    if (size != sizeof(instance) || fmi3GetFMUState(c, state) != fmi3OK)
        return fmi3Error;
    memcpy(*state, bytes, size);
    return fmi3OK;
}

#define DERIVATIVE(name)                                                                                     \
    EXPORT fmi3Status name(fmi3Instance c, const fmi3ValueReference a[], size_t n, const fmi3ValueReference b[], \
                           size_t m, const double seed[], size_t s, double out[], size_t o)                 \
    {                                                                                                        \
        (void)c;                                                                                             \
        (void)a;                                                                                             \
        (void)n;                                                                                             \
        (void)b;                                                                                             \
        (void)m;                                                                                             \
        (void)seed;                                                                                          \
        (void)s;                                                                                             \
        (void)out;                                                                                           \
        (void)o;                                                                                             \
        return fmi3Error;                                                                                    \
    }
DERIVATIVE(fmi3GetDirectionalDerivative)
DERIVATIVE(fmi3GetAdjointDerivative)

EXPORT fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, bool *discrete, bool *stop, bool *nominals, bool *values,
                                           bool *defined, double *next)
{
    (void)c;
    *discrete = *stop = *nominals = *values = *defined = false;
    *next = 0.0;
    return fmi3OK;
}

EXPORT fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, bool last, bool *event, bool *stop)
{
    (void)c;
    (void)last;
    *event = *stop = false;
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetTime(fmi3Instance c, double t)
{
    ((instance *)c)->t = t;
    return fmi3OK;
}

EXPORT fmi3Status fmi3SetContinuousStates(fmi3Instance c, const double x[], size_t n)
{
    if (n != N)
        return fmi3Error;
    copy(x, ((instance *)c)->x);
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetContinuousStates(fmi3Instance c, double x[], size_t n)
{
    if (n != N)
        return fmi3Error;
    copy(((instance *)c)->x, x);
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance c, double f[], size_t n)
{
    instance *own = (instance *)c;
    if (n != N)
        return fmi3Error;
    PRE_derivative(own->p, own->t, own->x, own->u, f);
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetEventIndicators(fmi3Instance c, double z[], size_t n)
{
    (void)c;
    (void)z;
    return n == 0 ? fmi3OK : fmi3Error;
}

EXPORT fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance c, double x[], size_t n)
{
    static const double nominal[] = {@NOMINAL@};
    (void)c;
    if (n != N)
        return fmi3Error;
    copy(nominal, x);
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t *n)
{
    (void)c;
    *n = 0;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t *n)
{
    (void)c;
    *n = N;
    return fmi3OK;
}

EXPORT fmi3Status fmi3GetOutputDerivatives(fmi3Instance c, const fmi3ValueReference r[], size_t n,
                                           const int32_t order[], double v[], size_t m)
{
    (void)c;
    (void)r;
    (void)order;
    (void)v;
    return n == 0 && m == 0 ? fmi3OK : fmi3Error;
}

EXPORT fmi3Status fmi3DoStep(fmi3Instance c, double t, double gap, bool final, bool *event, bool *stop, bool *early,
                             double *last)
{
    (void)final;
    *event = *stop = *early = false;
    *last = t;
    if (!(gap >= 0.0))
        return fmi3Error;
    if (gap > 0.0)
        advance((instance *)c, t, gap);
    *last = t + gap;
    return fmi3OK;
}

EXPORT fmi3Status fmi3ActivateModelPartition(fmi3Instance c, fmi3ValueReference r, double t)
{
    (void)c;
    (void)r;
    (void)t;
    return fmi3Error;
}
