/*
 * @ORIGIN@.
 * @DESCRIPTION@
 *
 * C99, without dependencies and without allocation. All numbers are double; @TIME@.
 * x are states, u inputs, y outputs (what is measured), p constants; their places are below.
 * Where p is 0, the constants are the learned ones. Where there are no inputs, u may be 0.
 */
#ifndef @GUARD@
#define @GUARD@

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PRE_STATES = @N_STATES@,
    PRE_INPUTS = @N_INPUTS@,
    PRE_OUTPUTS = @N_OUTPUTS@,
    PRE_CONSTANTS = @N_CONSTANTS@
};

@PLACES@extern const double PRE_sample_time;
/* Where the fit found its first record to begin. */
extern const double PRE_start[PRE_STATES];
/* The learned constants. */
extern const double PRE_learned[PRE_CONSTANTS > 0 ? PRE_CONSTANTS : 1];

/* f = dx/dt. */
void PRE_derivative(const double *p, double t, const double *x, const double *u, double *f);

/* What is measured. */
void PRE_outputs(const double *p, double t, const double *x, const double *u, double *y);

/* The states one sample time later, by the method that the model was learned with.
   @HOLD@ */
void PRE_step(const double *p, double t, const double *x, const double *u, const double *u_next, double *next);

/* The same over any gap, in as many steps of the sample time as fit it. */
void PRE_advance(const double *p, double t, double gap, const double *x, const double *u, const double *u_next,
                 double *next);

/* Room for matrices. */
typedef struct {
    double F[PRE_STATES * PRE_STATES], J[PRE_STATES * PRE_STATES], W[PRE_STATES * PRE_STATES];
    double K[PRE_STATES * PRE_STATES], S[PRE_STATES * PRE_STATES];
@STAGEROOM@} PRE_matrices;

/* The filter of `latens stream`, without learning: the states from samples as they come. */
typedef struct {
    double x[PRE_STATES];              /* the estimate */
    double P[PRE_STATES * PRE_STATES]; /* its covariance, row by row */
    double t;                          /* time of the last sample */
    double u[PRE_INPUTS + 1];          /* inputs from then on; a controller may set them after the sample */
    double p[PRE_CONSTANTS + 1];       /* constants */
    double innovation[PRE_OUTPUTS];    /* measured less foreseen; NaN where nothing was measured */
    double gate;                       /* a measurement this many deviations off pulls no harder than one there */
    /* its own */
    double foreseen[PRE_STATES], H[PRE_OUTPUTS * PRE_STATES], refused, doubted;
    int phase;
    PRE_matrices m;
} PRE_filter;

/* Before the first sample. */
void PRE_filter_begin(PRE_filter *f);

/* To the time of a sample with the inputs u. -1: the time cannot follow the last one, nothing is changed. */
int PRE_filter_predict(PRE_filter *f, double t, const double *u);

/* With what is measured then, NaN where nothing is; the number of measurements beyond the gate. */
int PRE_filter_correct(PRE_filter *f, const double *y);

/* Both. */
int PRE_filter_step(PRE_filter *f, double t, const double *u, const double *y);

#ifdef __cplusplus
}
#endif

#endif
