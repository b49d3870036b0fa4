/* The inputs from one sample to the next. */
typedef struct {
    const double *u, *next;
    double start, gap;
} interval;

@HELD@
/* out = a b. */
static void multiply(const double *a, const double *b, double *restrict out)
{
    int i, j, k;
    for (i = 0; i < N * N; i++)
        out[i] = 0.0;
    for (i = 0; i < N; i++)
        for (k = 0; k < N; k++) {
            double v = a[i * N + k];
            if (v != 0.0)
                for (j = 0; j < N; j++)
                    out[i * N + j] += v * b[k * N + j];
        }
}

typedef PRE_matrices matrices;

@CHAIN@
@METHOD@
/* As many steps of the sample time as fit a gap, their length, and the gap in sample times. */
static int steps_over(double gap, double *length, double *samples)
{
    double steps = floor(gap / PRE_sample_time + 0.5);
    if (!(steps >= 1.0))
        steps = 1.0;
    *samples = gap / PRE_sample_time;
    *length = gap / steps;
    if (fabs(*samples - steps) <= @WHOLE@) {
        *samples = steps;
        *length = PRE_sample_time;
    }
    return (int)steps;
}

void PRE_advance(const double *p, double t, double gap, const double *x, const double *u, const double *u_next, double *next)
{
    double length, samples, d;
    int i, steps = steps_over(gap, &length, &samples);
    interval over;
    over.u = u;
    over.next = u_next;
    over.start = t;
    over.gap = length * steps;
    d = length / SUBSTEPS;
    for (i = 0; i < N; i++)
        next[i] = x[i];
    for (i = 0; i < steps * SUBSTEPS; i++)
        sub_step(p ? p : PRE_learned, t + i * d, d, &over, next);
}

void PRE_step(const double *p, double t, const double *x, const double *u, const double *u_next, double *next)
{
    PRE_advance(p, t, PRE_sample_time, x, u, u_next, next);
}
