static const double shift[4] = {0.0, 0.5, 0.5, 1.0};
static const double weight[4] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0};

static void sub_step(const double *p, double t, double d, const interval *over, double *x)
{
    double f[N] = {0.0}, stage[N], sum[N], room[ROOM];
    int i, k;
    for (i = 0; i < N; i++)
        sum[i] = x[i];
    for (k = 0; k < 4; k++) {
        for (i = 0; i < N; i++)
            stage[i] = x[i] + shift[k] * d * f[i];
        PRE_derivative(p, t + shift[k] * d, stage, held(over, t + shift[k] * d, room), f);
        for (i = 0; i < N; i++)
            sum[i] += weight[k] * d * f[i];
    }
    for (i = 0; i < N; i++)
        x[i] = sum[i];
}

/* The same with F, the derivative of what came of it by where it began. */
static void sub_step_linear(const double *p, double t, double d, const interval *over, double *x, matrices *m)
{
    double f[N] = {0.0}, stage[N], sum[N], room[ROOM];
    int i, k;
    for (i = 0; i < N; i++)
        sum[i] = x[i];
    for (i = 0; i < N * N; i++) {
        m->K[i] = 0.0;
        m->S[i] = 0.0;
    }
    for (k = 0; k < 4; k++) {
        for (i = 0; i < N; i++)
            stage[i] = x[i] + shift[k] * d * f[i];
        linearise(p, t + shift[k] * d, stage, held(over, t + shift[k] * d, room), f, m->J);
        /* K = J (I + a d K) */
        for (i = 0; i < N * N; i++)
            m->K[i] *= shift[k] * d;
        for (i = 0; i < N; i++)
            m->K[i * N + i] += 1.0;
        multiply(m->J, m->K, m->W);
        for (i = 0; i < N * N; i++) {
            m->K[i] = m->W[i];
            m->S[i] += weight[k] * d * m->W[i];
        }
        for (i = 0; i < N; i++)
            sum[i] += weight[k] * d * f[i];
    }
    for (i = 0; i < N; i++) {
        x[i] = sum[i];
        m->S[i * N + i] += 1.0;
    }
    chain(m->S, m);
}
