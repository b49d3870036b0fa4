/* A diagonally implicit Runge-Kutta method: a stage is r + z with z = d GAMMA f(r + z), solved by Newton's method.
   A step is halved where there is no solution or, with a tolerance, where the error is above it. */
enum { STAGES = @STAGES@, IN_HALVES = @HALVES@, ITERATIONS = @ITERATIONS@, FINEST = @FINEST@, ATTEMPTS = @ATTEMPTS@, HALVINGS = @HALVINGS@ };
static const double GAMMA = @GAMMA@, CONVERGED = @CONVERGED@, ROOM_TO_DOUBLE = @ROOM@, DOUBLED = @DOUBLED@;
/* 0 where there is none */
static const double TOLERANCE = @TOLERANCE@;
static const double NODES[STAGES] = {@NODES@};
static const double LOWER[STAGES][STAGES] = {@LOWER@};
static const double WEIGHTS[STAGES] = {@WEIGHTS@};
static const double ERRORS[STAGES] = {@ERRORS@};
static const double SIZES[N] = {
@SIZES@
};

/* b = inverse of a times b, with columns of b side by side; 0 where a has no inverse. */
static int solve(double *a, double *b, int columns)
{
    int c, i, j, k;
    for (c = 0; c < N; c++) {
        int pivot = c;
        for (i = c; i < N; i++)
            if (!(fabs(a[i * N + c]) < fabs(a[pivot * N + c])))
                pivot = i;
        if (!(fabs(a[pivot * N + c]) > 1e-300))
            return 0;
        if (pivot != c) {
            for (j = 0; j < N; j++) {
                double v = a[pivot * N + j];
                a[pivot * N + j] = a[c * N + j];
                a[c * N + j] = v;
            }
            for (j = 0; j < columns; j++) {
                double v = b[pivot * columns + j];
                b[pivot * columns + j] = b[c * columns + j];
                b[c * columns + j] = v;
            }
        }
        for (i = c + 1; i < N; i++) {
            double factor = a[i * N + c] / a[c * N + c];
            if (factor != 0.0) {
                for (j = c; j < N; j++)
                    a[i * N + j] -= factor * a[c * N + j];
                for (j = 0; j < columns; j++)
                    b[i * columns + j] -= factor * b[c * columns + j];
            }
        }
    }
    for (i = N - 1; i >= 0; i--)
        for (j = 0; j < columns; j++) {
            double v = b[i * columns + j];
            for (k = i + 1; k < N; k++)
                v -= a[i * N + k] * b[k * columns + j];
            b[i * columns + j] = v / a[i * N + i];
        }
    return 1;
}

/* a = I - length J. */
static void newton_matrix(const double *J, double length, double *a)
{
    int i;
    for (i = 0; i < N * N; i++)
        a[i] = -length * J[i];
    for (i = 0; i < N; i++)
        a[i * N + i] += 1.0;
}

/* r of a stage. */
static void base_of(int stage, const double *x, const double *z, double *r)
{
    int i, j;
    for (i = 0; i < N; i++)
        r[i] = x[i];
    for (j = 0; j < stage; j++)
        for (i = 0; i < N; i++)
            r[i] += LOWER[stage][j] * z[j * N + i];
}

/* All stages of a step and where it leads; 0 where there is no solution. J is that of the last stage. */
static int solve_stages(const double *p, double t, double d, const interval *over, const double *x, double *z, double *J,
                        double *a, double *next)
{
    double r[N], at[N], f[N], room[ROOM], length = d * GAMMA;
    int s, i, k;
    for (s = 0; s < STAGES; s++) {
        double *own = z + s * N, largest = 1.0;
        base_of(s, x, z, r);
        for (i = 0; i < N; i++)
            own[i] = s > 0 ? z[(s - 1) * N + i] : 0.0;
        for (k = 0; k < ITERATIONS && largest > CONVERGED; k++) {
            double time = t + NODES[s] * d;
            for (i = 0; i < N; i++)
                at[i] = r[i] + own[i];
            linearise(p, time, at, held(over, time, room), f, J);
            newton_matrix(J, length, a);
            for (i = 0; i < N; i++)
                f[i] = length * f[i] - own[i];
            if (!solve(a, f, 1))
                return 0;
            largest = 0.0;
            for (i = 0; i < N; i++) {
                double size = fabs(f[i]) / (fabs(at[i]) + SIZES[i]);
                if (!isfinite(size))
                    return 0;
                own[i] += f[i];
                if (size > largest)
                    largest = size;
            }
        }
        if (largest > CONVERGED)
            return 0;
    }
    for (i = 0; i < N; i++)
        next[i] = x[i];
    for (s = 0; s < STAGES; s++)
        for (i = 0; i < N; i++)
            next[i] += WEIGHTS[s] * z[s * N + i];
    return 1;
}

/* Tries a step: its error over the tolerance, 0 where there is none, -1 where there is no solution. */
static double attempt(const double *p, double t, double d, const interval *over, const double *x, double *z, double *J,
                      double *a, double *next)
{
    double e[N], coarse[N], worst = 0.0;
    int s, i;
    if (!solve_stages(p, t, d, over, x, z, J, a, next))
        return -1.0;
    if (TOLERANCE == 0.0)
        return 0.0;
    for (i = 0; i < N; i++) {
        coarse[i] = next[i];
        e[i] = 0.0;
    }
    if (IN_HALVES) {
        double middle[N];
        if (!solve_stages(p, t, d / 2.0, over, x, z, J, a, middle) ||
            !solve_stages(p, t + d / 2.0, d / 2.0, over, middle, z, J, a, next))
            return -1.0;
        for (i = 0; i < N; i++)
            e[i] = (next[i] - coarse[i]) / 3.0;
    } else {
        for (s = 0; s < STAGES; s++)
            for (i = 0; i < N; i++)
                e[i] += ERRORS[s] * z[s * N + i];
        newton_matrix(J, d * GAMMA, a);
        if (!solve(a, e, 1))
            return -1.0;
    }
    for (i = 0; i < N; i++) {
        double from = fabs(x[i]), to = fabs(next[i]);
        double error = fabs(e[i]) / (TOLERANCE * ((from > to ? from : to) + SIZES[i]));
        if (isnan(error))
            return INFINITY;
        if (error > worst)
            worst = error;
    }
    return worst;
}

/* F = derivative of a step that was solved, times F; 0 where a matrix has no inverse. */
static int differentiate(const double *p, double t, double d, const interval *over, const double *x, const double *z,
                         matrices *m)
{
    double r[N], f[N], room[ROOM];
    int s, i, j;
    for (s = 0; s < STAGES; s++) {
        double time = t + NODES[s] * d;
        base_of(s, x, z, r);
        for (i = 0; i < N; i++)
            r[i] += z[s * N + i];
        linearise(p, time, r, held(over, time, room), f, m->J);
        for (i = 0; i < N * N; i++)
            m->W[i] = m->F[i];
        for (j = 0; j < s; j++)
            for (i = 0; i < N * N; i++)
                m->W[i] += LOWER[s][j] * m->Z[j * N * N + i];
        for (i = 0; i < N * N; i++)
            m->S[i] = m->W[i];
        newton_matrix(m->J, d * GAMMA, m->K);
        if (!solve(m->K, m->S, N))
            return 0;
        for (i = 0; i < N * N; i++)
            m->Z[s * N * N + i] = m->S[i] - m->W[i];
    }
    for (s = 0; s < STAGES; s++)
        for (i = 0; i < N * N; i++)
            m->F[i] += WEIGHTS[s] * m->Z[s * N * N + i];
    return 1;
}

/* The same for a step that was accepted, whose halves count where there are halves. */
static int differentiate_step(const double *p, double t, double d, const interval *over, const double *x, double *z,
                              matrices *m)
{
    double middle[N], end[N], J[N * N], a[N * N];
    if (!IN_HALVES || TOLERANCE == 0.0)
        return differentiate(p, t, d, over, x, z, m);
    return solve_stages(p, t, d / 2.0, over, x, z, J, a, middle) &&
           differentiate(p, t, d / 2.0, over, x, z, m) &&
           solve_stages(p, t + d / 2.0, d / 2.0, over, middle, z, J, a, end) &&
           differentiate(p, t + d / 2.0, d / 2.0, over, middle, z, m);
}

/* A sub-step, in pieces where need be, with F where m is not 0; to NaN where there is no solution. */
static void walk(const double *p, double t, double d, const interval *over, double *x, matrices *m)
{
    double z[STAGES * N], next[N], J[N * N], a[N * N];
    /* the next piece is number `position` of 2^level */
    unsigned long long position = 0;
    int level = 0, tries, i;
    for (tries = 0; tries < ATTEMPTS; tries++) {
        double length = d / (double)(1ULL << level), begin = t + (double)position * length;
        double error = attempt(p, begin, length, over, x, z, J, a, next);
        if (error < 0.0 || !(error <= 1.0)) {
            int halvings = 1;
            double left = error / DOUBLED;
            for (; left > 1.0 && halvings < HALVINGS; halvings++)
                left /= DOUBLED;
            level += halvings;
            position <<= halvings;
            if (level > FINEST)
                break;
            continue;
        }
        if (m && !differentiate_step(p, begin, length, over, x, z, m))
            break;
        for (i = 0; i < N; i++)
            x[i] = next[i];
        if (++position == 1ULL << level)
            return;
        if (error * DOUBLED < ROOM_TO_DOUBLE && position % 2 == 0) {
            level--;
            position /= 2;
        }
    }
    for (i = 0; i < N; i++)
        x[i] = NAN;
}

static void sub_step(const double *p, double t, double d, const interval *over, double *x)
{
    walk(p, t, d, over, x, 0);
}

/* The same with F, the derivative of what came of it by where it began. */
static void sub_step_linear(const double *p, double t, double d, const interval *over, double *x, matrices *m)
{
    walk(p, t, d, over, x, m);
}
