
/* Variances: of the process in a sample time, of the measurements, of the start. */
static const double process[N] = {
@PROCESS@
};
static const double measured[Y] = {
@MEASURED@
};
static const double start_mean[N] = {
@STARTMEAN@
};
static const double scale[N] = {
@SCALE@
};
static const double start_variance[N] = {
@STARTVARIANCE@
};
/* The state that a measurement shows as it is, or -1. */
static const int shows[Y] = {@SHOWS@};

enum { WAITING, GOING, RESTARTING };

void PRE_filter_begin(PRE_filter *f)
{
    int i;
    for (i = 0; i < K; i++)
        f->p[i] = PRE_learned[i];
    for (i = 0; i < ROOM; i++)
        f->u[i] = 0.0;
    for (i = 0; i < Y; i++)
        f->innovation[i] = NAN;
    f->t = 0.0;
    f->gate = @GATE@;
    f->refused = f->doubted = NAN;
    f->phase = WAITING;
}

/* The wide prior, with the measured states where y shows them. */
static void start_again(PRE_filter *f, const double *y)
{
    int i;
    for (i = 0; i < N; i++)
        f->x[i] = start_mean[i];
    for (i = 0; i < Y; i++)
        if (y && shows[i] >= 0 && !isnan(y[i]))
            f->x[shows[i]] = y[i];
    for (i = 0; i < N * N; i++)
        f->P[i] = 0.0;
    for (i = 0; i < N; i++) {
        f->P[i * N + i] = start_variance[i];
        f->foreseen[i] = f->x[i];
    }
}

static int is_lost(const PRE_filter *f)
{
    int i;
    for (i = 0; i < N; i++) {
        double v = f->P[i * N + i];
        if (!(fabs(f->x[i] - start_mean[i]) < @LOST@ * scale[i]) || !(v >= 0.0) || isinf(v))
            return 1;
    }
    return 0;
}

/* Whether the time of a sample is to be taken; one alone that is far off is not. */
static int takes(PRE_filter *f, double t)
{
    double gap = t - f->t, before = f->refused, earliest;
    if (gap > 0.0 && gap <= @LONGEST@ * PRE_sample_time)
        return 1;
    f->refused = t;
    if (gap == 0.0 || isnan(gap))
        return 0;
    earliest = gap > 0.0 ? f->t : f->doubted;
    return before > earliest && t > before;
}

int PRE_filter_predict(PRE_filter *f, double t, const double *u)
{
    double gap, length, samples, d;
    int i, j, k, steps;
    interval over;
    if (f->phase == WAITING) {
        f->phase = RESTARTING;
        f->doubted = -INFINITY;
    } else {
        if (!takes(f, t))
            return -1;
        gap = t - f->t;
        f->doubted = gap > @DOUBTED@ * PRE_sample_time ? f->t : NAN;
        f->phase = gap < 0.0 || gap > @LONGEST@ * PRE_sample_time ? RESTARTING : GOING;
        if (f->phase == GOING) {
            steps = steps_over(gap, &length, &samples);
            over.u = f->u;
            over.next = u;
            over.start = f->t;
            over.gap = length * steps;
            d = length / SUBSTEPS;
            for (i = 0; i < N * N; i++)
                f->m.F[i] = 0.0;
            for (i = 0; i < N; i++)
                f->m.F[i * N + i] = 1.0;
            for (i = 0; i < steps * SUBSTEPS; i++)
                sub_step_linear(f->p, f->t + i * d, d, &over, f->x, &f->m);
            /* P = F P F' + Q */
            multiply(f->m.F, f->P, f->m.W);
            for (i = 0; i < N; i++)
                for (j = 0; j <= i; j++) {
                    double sum = 0.0;
                    for (k = 0; k < N; k++)
                        sum += f->m.W[i * N + k] * f->m.F[j * N + k];
                    f->P[i * N + j] = f->P[j * N + i] = sum;
                }
            for (i = 0; i < N; i++) {
                f->P[i * N + i] += process[i] * samples;
                f->foreseen[i] = f->x[i];
            }
            if (is_lost(f))
                f->phase = RESTARTING;
        }
    }
    f->refused = NAN;
    f->t = t;
    for (i = 0; i < M; i++)
        f->u[i] = u[i];
    if (f->phase == RESTARTING)
        start_again(f, 0);
    return 0;
}

/* One channel of row h: P = (I - K h) P (I - K h)' + K r K'. */
static void correct_channel(PRE_filter *f, const double *h, double innovation, double r)
{
    double gain[N], own, *A = f->m.W, *P = f->P, s = 0.0;
    int i, j, k;
    for (i = 0; i < N; i++) {
        gain[i] = 0.0;
        for (j = 0; j < N; j++)
            if (h[j] != 0.0)
                gain[i] += P[i * N + j] * h[j];
    }
    for (j = 0; j < N; j++)
        if (h[j] != 0.0)
            s += gain[j] * h[j];
    s += r;
    for (i = 0; i < N; i++) {
        gain[i] /= s;
        f->x[i] += gain[i] * innovation;
    }
    for (i = 0; i < N; i++) {
        own = 1.0 - gain[i] * h[i];
        for (j = 0; j < N; j++)
            A[i * N + j] = own * P[i * N + j];
        for (k = 0; k < N; k++)
            if (k != i && h[k] != 0.0)
                for (j = 0; j < N; j++)
                    A[i * N + j] -= gain[i] * h[k] * P[k * N + j];
    }
    for (i = 0; i < N; i++)
        for (j = 0; j <= i; j++) {
            double rest = 0.0;
            for (k = 0; k < N; k++)
                if (k != j && h[k] != 0.0)
                    rest += gain[j] * h[k] * A[i * N + k];
            own = 1.0 - gain[j] * h[j];
            P[i * N + j] = P[j * N + i] = own * A[i * N + j] - rest + r * (gain[i] * gain[j]);
        }
}

static int correct_all(PRE_filter *f, const double *y)
{
    double output[Y];
    int c, i, j, limited = 0;
    linearise_outputs(PRE_learned, f->t, f->foreseen, f->u, output, f->H);
    for (c = 0; c < Y; c++) {
        const double *h = f->H + c * N;
        double moved = 0.0, spread = 0.0, r = measured[c], innovation, s;
        f->innovation[c] = y[c] - output[c];
        if (isnan(y[c]))
            continue;
        for (i = 0; i < N; i++)
            moved += h[i] * (f->x[i] - f->foreseen[i]);
        innovation = y[c] - output[c] - moved;
        for (i = 0; i < N; i++) {
            double sum = 0.0;
            for (j = 0; j < N; j++)
                sum += f->P[i * N + j] * h[j];
            spread += h[i] * sum;
        }
        s = spread + r;
        /* far off: no harder a pull than at the gate */
        if (innovation * innovation / s > f->gate * f->gate) {
            r = fabs(innovation) * sqrt(s) / f->gate - spread;
            limited++;
        }
        correct_channel(f, h, innovation, r);
    }
    return limited;
}

int PRE_filter_correct(PRE_filter *f, const double *y)
{
    int limited;
    if (f->phase == RESTARTING)
        start_again(f, y);
    limited = correct_all(f, y);
    if (is_lost(f)) {
        start_again(f, y);
        limited = correct_all(f, y);
    }
    f->phase = GOING;
    return limited;
}

int PRE_filter_step(PRE_filter *f, double t, const double *u, const double *y)
{
    return PRE_filter_predict(f, t, u) < 0 ? -1 : PRE_filter_correct(f, y);
}
