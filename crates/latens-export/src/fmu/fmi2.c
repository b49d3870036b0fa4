/* FMI 2.0, model exchange and co-simulation. Types are those of fmi2TypesPlatform.h, "default". */
#include <string.h>

typedef void *fmi2Component;
typedef void *fmi2ComponentEnvironment;
typedef void *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef char fmi2Char;
typedef const fmi2Char *fmi2String;
typedef char fmi2Byte;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } fmi2StatusKind;
typedef struct {
    fmi2Boolean newDiscreteStatesNeeded, terminateSimulation, nominalsOfContinuousStatesChanged;
    fmi2Boolean valuesOfContinuousStatesChanged, nextEventTimeDefined;
    fmi2Real nextEventTime;
} fmi2EventInfo;

EXPORT const char *fmi2GetTypesPlatform(void)
{
    return "default";
}

EXPORT const char *fmi2GetVersion(void)
{
    return "2.0";
}

EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t count, const fmi2String categories[])
{
    (void)c;
    (void)on;
    (void)count;
    (void)categories;
    return fmi2OK;
}

EXPORT fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                                     const void *functions, fmi2Boolean visible, fmi2Boolean logging)
{
    instance *own;
    (void)name;
    (void)type;
    (void)resources;
    (void)functions;
    (void)visible;
    (void)logging;
    if (!guid || strcmp(guid, "@TOKEN@") != 0)
        return 0;
    own = (instance *)malloc(sizeof *own);
    if (own)
        begin(own);
    return own;
}

EXPORT void fmi2FreeInstance(fmi2Component c)
{
    free(c);
}

EXPORT fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolerant, fmi2Real tolerance, fmi2Real start,
                                      fmi2Boolean stops, fmi2Real stop)
{
    (void)tolerant;
    (void)tolerance;
    (void)stops;
    (void)stop;
    ((instance *)c)->t = start;
    return fmi2OK;
}

#define NOTHING(name)                           \
    EXPORT fmi2Status name(fmi2Component c)     \
    {                                           \
        (void)c;                                \
        return fmi2OK;                          \
    }
NOTHING(fmi2EnterInitializationMode)
NOTHING(fmi2ExitInitializationMode)
NOTHING(fmi2Terminate)
NOTHING(fmi2EnterEventMode)
NOTHING(fmi2EnterContinuousTimeMode)
NOTHING(fmi2CancelStep)

EXPORT fmi2Status fmi2Reset(fmi2Component c)
{
    begin((instance *)c);
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2Real v[])
{
    return get((instance *)c, r, n, v) ? fmi2OK : fmi2Error;
}

EXPORT fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2Real v[])
{
    return set((instance *)c, r, n, v) ? fmi2OK : fmi2Error;
}

/* there are real numbers alone */
#define NONE(name, type)                                                                \
    EXPORT fmi2Status name(fmi2Component c, const fmi2ValueReference r[], size_t n, type v[]) \
    {                                                                                   \
        (void)c;                                                                        \
        (void)r;                                                                        \
        (void)v;                                                                        \
        return n == 0 ? fmi2OK : fmi2Error;                                             \
    }
NONE(fmi2GetInteger, fmi2Integer)
NONE(fmi2GetBoolean, fmi2Boolean)
NONE(fmi2GetString, fmi2String)
NONE(fmi2SetInteger, const fmi2Integer)
NONE(fmi2SetBoolean, const fmi2Boolean)
NONE(fmi2SetString, const fmi2String)

EXPORT fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state)
{
    if (!*state)
        *state = malloc(sizeof(instance));
    if (!*state)
        return fmi2Error;
    memcpy(*state, c, sizeof(instance));
    return fmi2OK;
}

EXPORT fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state)
{
    memcpy(c, state, sizeof(instance));
    return fmi2OK;
}

EXPORT fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state)
{
    (void)c;
    free(*state);
    *state = 0;
    return fmi2OK;
}

EXPORT fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size)
{
    (void)c;
    (void)state;
    *size = sizeof(instance);
    return fmi2OK;
}

EXPORT fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size)
{
    (void)c;
    if (size < sizeof(instance))
        return fmi2Error;
    memcpy(bytes, state, sizeof(instance));
    return fmi2OK;
}

EXPORT fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state)
{
    if (size != sizeof(instance) || fmi2GetFMUstate(c, state) != fmi2OK)
        return fmi2Error;
    memcpy(*state, bytes, size);
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference unknowns[], size_t n,
                                               const fmi2ValueReference knowns[], size_t m, const fmi2Real seed[],
                                               fmi2Real out[])
{
    (void)c;
    (void)unknowns;
    (void)n;
    (void)knowns;
    (void)m;
    (void)seed;
    (void)out;
    return fmi2Error;
}

EXPORT fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info)
{
    (void)c;
    memset(info, 0, sizeof *info);
    return fmi2OK;
}

EXPORT fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean last, fmi2Boolean *event, fmi2Boolean *stop)
{
    (void)c;
    (void)last;
    *event = 0;
    *stop = 0;
    return fmi2OK;
}

EXPORT fmi2Status fmi2SetTime(fmi2Component c, fmi2Real t)
{
    ((instance *)c)->t = t;
    return fmi2OK;
}

EXPORT fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n)
{
    if (n != N)
        return fmi2Error;
    copy(x, ((instance *)c)->x);
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n)
{
    if (n != N)
        return fmi2Error;
    copy(((instance *)c)->x, x);
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real f[], size_t n)
{
    instance *own = (instance *)c;
    if (n != N)
        return fmi2Error;
    PRE_derivative(own->p, own->t, own->x, own->u, f);
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real z[], size_t n)
{
    (void)c;
    (void)z;
    return n == 0 ? fmi2OK : fmi2Error;
}

EXPORT fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x[], size_t n)
{
    static const double nominal[] = {@NOMINAL@};
    (void)c;
    if (n != N)
        return fmi2Error;
    copy(nominal, x);
    return fmi2OK;
}

EXPORT fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference r[], size_t n,
                                              const fmi2Integer order[], const fmi2Real v[])
{
    (void)c;
    (void)r;
    (void)order;
    (void)v;
    return n == 0 ? fmi2OK : fmi2Error;
}

EXPORT fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference r[], size_t n,
                                               const fmi2Integer order[], fmi2Real v[])
{
    (void)c;
    (void)r;
    (void)order;
    (void)v;
    return n == 0 ? fmi2OK : fmi2Error;
}

EXPORT fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real gap, fmi2Boolean final)
{
    (void)final;
    if (!(gap > 0.0))
        return gap == 0.0 ? fmi2OK : fmi2Error;
    advance((instance *)c, t, gap);
    return fmi2OK;
}

#define STATUS(name, type)                                                    \
    EXPORT fmi2Status name(fmi2Component c, const fmi2StatusKind kind, type *v) \
    {                                                                         \
        (void)c;                                                              \
        (void)kind;                                                           \
        (void)v;                                                              \
        return fmi2Discard;                                                   \
    }
STATUS(fmi2GetStatus, fmi2Status)
STATUS(fmi2GetRealStatus, fmi2Real)
STATUS(fmi2GetIntegerStatus, fmi2Integer)
STATUS(fmi2GetBooleanStatus, fmi2Boolean)
STATUS(fmi2GetStringStatus, fmi2String)
